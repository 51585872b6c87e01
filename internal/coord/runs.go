package coord

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/plan"
)

// storedRuns are the chunks of the offset map by source partition and number.
type storedRuns map[kafka.TopicPartition]map[int64]chunk

type chunk struct {
	id   kafka.TopicID
	runs []offsets.Run
}

// runsPartition is the lane's partition of the offset map.
func (b Books) runsPartition(lane int32) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: b.RunsTopic, Partition: lane % max(1, b.RunsPartitions)}
}

// readRuns reads the lane's part of the offset map.
func (b Books) readRuns(ctx context.Context, lane int32) (storedRuns, error) {
	tp := b.runsPartition(lane)
	tps := []kafka.TopicPartition{tp}
	start := b.Reader.ListOffsets(ctx, tps, kafka.Earliest, kafka.ReadCommitted)[tp]
	end := b.Reader.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadCommitted)[tp]
	if err := errors.Join(start.Err, end.Err); err != nil {
		return nil, fmt.Errorf("bounds of %s: %w", tp, err)
	}
	found := storedRuns{}
	if start.Offset >= end.Offset {
		return found, nil
	}
	err := b.Reader.ReadRecords(ctx, tp, start.Offset, end.Offset, kafka.ReadCommitted, func(r kafka.Record) error {
		key, err := offsets.DecodeChunkKey(r.Key)
		if err != nil {
			b.Log.Warn("a chunk of the offset map cannot be read", "topic", tp.Topic, "partition", tp.Partition, "offset", r.Offset, "err", err)
			return nil
		}
		of := kafka.TopicPartition{Topic: key.Topic, Partition: key.Partition}
		if r.Value == nil {
			delete(found[of], key.Chunk)
			return nil
		}
		runs, err := offsets.DecodeChunk(r.Value)
		if err != nil {
			b.Log.Warn("a chunk of the offset map cannot be read", "topic", tp.Topic, "partition", tp.Partition, "offset", r.Offset, "err", err)
			return nil
		}
		if found[of] == nil {
			found[of] = map[int64]chunk{}
		}
		found[of][key.Chunk] = chunk{key.TopicID, runs}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("offset map in %s: %w", tp, err)
	}
	return found, nil
}

// runMap makes the map of a partition, as far as the stored chunks agree with
// its stored position. It is nil where there is nothing to go by.
func (o *ownedLane) runMap(r Replica) *offsets.RunMap {
	s, ok := o.stored[r.Source]
	chunks := o.chunks[r.Source]
	if len(chunks) == 0 {
		return nil
	}
	if !ok || s.Facts == nil {
		// What is stored belongs to an earlier life of the partition.
		return offsets.NewRunMap(max(slices.Max(slices.Collect(maps.Keys(chunks))), 0) + 1)
	}
	return loadRuns(chunks, r.SourceID, s.Stored)
}

// loadRuns makes a map of the chunks of a topic with that id, up to a position
// that has facts.
func loadRuns(chunks map[int64]chunk, id kafka.TopicID, s plan.Stored) *offsets.RunMap {
	same := map[int64][]offsets.Run{}
	for n, c := range chunks {
		if c.id == id {
			same[n] = c.runs
		}
	}
	return offsets.LoadRuns(same, firstUnsettled(s), s.Facts.NextTarget)
}

// firstUnsettled is the first source offset that a position does not cover.
func firstUnsettled(s plan.Stored) mirror.UpstreamOffset {
	if !s.Committed {
		return 0
	}
	return s.Last + 1
}

// mapFound adds to a map the records that a scan found behind the position, pair
// by pair.
func mapFound(m *offsets.RunMap, pairs []pair) *offsets.RunMap {
	if m == nil {
		m = &offsets.RunMap{}
	}
	for _, p := range pairs {
		if _, err := m.Append(offsets.Run{Up: p.up, Down: p.down, Count: 1}); err != nil {
			m.Clear()
			_, _ = m.Append(offsets.Run{Up: p.up, Down: p.down, Count: 1}) // the first of a map always fits
		}
	}
	return m
}
