package coord

import (
	"context"
	"log/slog"
	"slices"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/plan"
)

// BookReader is what reading the books needs of the target.
type BookReader interface {
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
	ReadRecords(ctx context.Context, tp kafka.TopicPartition, from, to int64, iso kafka.Isolation, fn func(kafka.Record) error) error
}

// Books are the positions and the offset map of all flows from one source, as
// they lie on the target. Reading them changes nothing.
type Books struct {
	Source         mirror.ClusterAlias
	PositionsTopic string
	Lanes          int32  // partitions of the position topic; 0 where there is none yet
	RunsTopic      string // the offset map
	RunsPartitions int32  // 0 where there is none yet
	Reader         BookReader
	// Log is told of records that cannot be read and are passed over.
	Log *slog.Logger
}

func booksOf(o Options, target BookReader, log *slog.Logger) Books {
	return Books{
		Source: o.Flow.Source, PositionsTopic: o.PositionsTopic, Lanes: o.Lanes,
		RunsTopic: o.RunsTopic, RunsPartitions: o.RunsPartitions, Reader: target, Log: log,
	}
}

func (b Books) allLanes() []int32 {
	lanes := make([]int32, b.Lanes)
	for i := range lanes {
		lanes[i] = int32(i)
	}
	return lanes
}

// laneOf is the lane a source partition belongs to.
func (b Books) laneOf(tp kafka.TopicPartition) int32 {
	key := mirror.PositionKey{Connector: mirror.SourceConnector, Cluster: b.Source, Topic: tp.Topic, Partition: tp.Partition}
	return mirror.PartitionFor(key.AppendTo(nil), b.Lanes)
}

// Positions reads every stored position.
func (b Books) Positions(ctx context.Context) (map[kafka.TopicPartition]plan.Stored, error) {
	found, err := b.readPositions(ctx, b.allLanes())
	if err != nil {
		return nil, err
	}
	out := make(map[kafka.TopicPartition]plan.Stored, len(found))
	for tp, s := range found {
		out[tp] = s.Stored
	}
	return out, nil
}

// StoredMap is what is written down of one partition: how far it was copied and
// what became of its offsets. It is as old as the position.
type StoredMap struct {
	Stored plan.Stored
	// Runs is nil where the position is Java MirrorMaker's, which keeps no map.
	Runs *offsets.RunMap
}

// Maps reads what is stored of the partitions. Those without a position are left out.
func (b Books) Maps(ctx context.Context, partitions []kafka.TopicPartition) (map[kafka.TopicPartition]StoredMap, error) {
	positions, err := b.Positions(ctx)
	if err != nil {
		return nil, err
	}
	out := map[kafka.TopicPartition]StoredMap{}
	byLane := map[int32][]kafka.TopicPartition{}
	for _, tp := range partitions {
		s, ok := positions[tp]
		if !ok {
			continue
		}
		out[tp] = StoredMap{Stored: s}
		if s.Facts != nil {
			at := b.runsPartition(b.laneOf(tp)).Partition
			byLane[at] = append(byLane[at], tp)
		}
	}
	for at, tps := range byLane {
		chunks := storedRuns{}
		if b.RunsPartitions > 0 {
			if chunks, err = b.readRuns(ctx, at); err != nil {
				return nil, err
			}
		}
		for _, tp := range slices.Compact(tps) {
			s := positions[tp]
			out[tp] = StoredMap{Stored: s, Runs: loadRuns(chunks[tp], s.Facts.SourceTopicID, s)}
		}
	}
	return out, nil
}

// HasRuns tells of which partitions the offset map holds runs, with a position or without.
func (b Books) HasRuns(ctx context.Context, partitions []kafka.TopicPartition) (map[kafka.TopicPartition]bool, error) {
	has, read := map[kafka.TopicPartition]bool{}, map[int32]storedRuns{}
	if b.RunsPartitions == 0 || b.Lanes == 0 {
		return has, nil
	}
	for _, tp := range partitions {
		at := b.runsPartition(b.laneOf(tp)).Partition
		if _, ok := read[at]; !ok {
			runs, err := b.readRuns(ctx, at)
			if err != nil {
				return nil, err
			}
			read[at] = runs
		}
		has[tp] = len(read[at][tp]) > 0
	}
	return has, nil
}

// Position is the first source offset that is not copied.
func (m StoredMap) Position() mirror.UpstreamOffset { return firstUnsettled(m.Stored) }

// answers reports whether there is a map, and anything was mirrored.
func (m StoredMap) answers() bool {
	return m.Runs != nil && (m.Runs.Len() > 0 || m.Stored.Committed)
}

// Translate tells where on the target a reader goes on that wants source offset
// u next, as far as the map tells.
func (m StoredMap) Translate(u mirror.UpstreamOffset) offsets.Translation {
	if !m.answers() {
		return offsets.Translation{}
	}
	return m.Runs.Translate(u, m.Position(), m.Stored.Facts.NextTarget)
}

// Reverse tells where on the source a reader goes on that wants target offset d
// next, as far as the map tells.
func (m StoredMap) Reverse(d mirror.DownstreamOffset) offsets.Origin {
	if !m.answers() {
		return offsets.Origin{}
	}
	return m.Runs.Reverse(d, m.Stored.Facts.NextTarget, m.Position())
}

// Chunks are the records that store a new map of a partition in place of the old
// one, and where they belong.
func (b Books) Chunks(tp kafka.TopicPartition, old StoredMap, m *offsets.RunMap, now int64) (kafka.TopicPartition, []kafka.Record) {
	var records []kafka.Record
	record := func(chunk int64, value []byte) {
		key := offsets.ChunkKey{Topic: tp.Topic, TopicID: old.Stored.Facts.SourceTopicID, Partition: tp.Partition, Chunk: chunk}
		records = append(records, kafka.Record{Key: key.AppendTo(nil), Value: value, Timestamp: now})
	}
	for n := m.FirstChunk(); n <= m.LastChunk(); n++ {
		record(n, m.Chunk(n))
	}
	record(offsets.AnchorsChunk, m.Anchors())
	for n := old.Runs.FirstChunk(); n <= old.Runs.LastChunk(); n++ {
		record(n, nil)
	}
	return b.runsPartition(b.laneOf(tp)), records
}
