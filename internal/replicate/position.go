package replicate

import (
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// entryFor is what one track has to write down: its position, and the chunks of
// the offset map that changed since the last time.
type entryFor struct {
	position kafka.Record
	chunks   []kafka.Record
}

// snapshot takes what the tracks have to write down. The positions never pass
// what the chunks cover: both are taken under the track's lock.
func (l *Lane) snapshot(tracks []*Track, clean bool, now int64) (positions, chunks []kafka.Record) {
	for _, tr := range tracks {
		e := tr.snapshot(clean, now)
		positions = append(positions, e.position)
		chunks = append(chunks, e.chunks...)
	}
	return positions, chunks
}

// snapshot takes the track's position as MirrorMaker's record with our facts in
// a header, and the map's changed chunks.
func (tr *Track) snapshot(clean bool, now int64) entryFor {
	producer := tr.lane.producer()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.dirty, tr.forgotten = false, false
	o := &tr.task.opts
	key := mirror.PositionKey{
		Connector: mirror.SourceConnector, Cluster: o.Flow.Source,
		Topic: tr.spec.Source.Topic, Partition: tr.spec.Source.Partition,
	}
	facts := mirror.PositionFacts{
		Clean: clean && tr.app.idle(), ProducerID: producer.ID, ProducerEpoch: producer.Epoch,
		NextTarget:    tr.write,
		SourceCluster: o.SourceClusterID, TargetCluster: o.TargetClusterID,
		SourceTopicID: tr.spec.SourceID, TargetTopicID: tr.spec.TargetID,
		SourceEpoch: tr.epoch, Mode: ModeDefault,
	}
	if tr.lane.transactional() {
		facts.Mode = ModeExactlyOnce
	}
	return entryFor{
		position: kafka.Record{
			Key:     key.AppendTo(nil),
			Value:   mirror.AppendPositionValue(nil, tr.position-1),
			Headers: facts.AppendHeader(nil), Timestamp: now,
		},
		chunks: tr.changedChunks(now),
	}
}

// changedChunks encodes the chunks of the offset map that have new runs, and
// tombstones for those that were let go.
func (tr *Track) changedChunks(now int64) []kafka.Record {
	if !tr.runsChanged {
		return nil
	}
	tr.runsChanged = false
	var out []kafka.Record
	record := func(chunk int64, value []byte) {
		key := offsets.ChunkKey{Topic: tr.spec.Source.Topic, TopicID: tr.spec.SourceID, Partition: tr.spec.Source.Partition, Chunk: chunk}
		out = append(out, kafka.Record{Key: key.AppendTo(nil), Value: value, Timestamp: now})
	}
	if tr.firstChunk < tr.runs.FirstChunk() {
		record(offsets.AnchorsChunk, tr.runs.Anchors())
	}
	for ; tr.firstChunk < tr.runs.FirstChunk(); tr.firstChunk++ {
		record(tr.firstChunk, nil)
	}
	for tr.lastChunk = max(tr.lastChunk, tr.runs.FirstChunk()); ; tr.lastChunk++ {
		if value := tr.runs.Chunk(tr.lastChunk); value != nil {
			record(tr.lastChunk, value)
		}
		if tr.lastChunk >= tr.runs.LastChunk() {
			return out
		}
	}
}

// mapRun adds acknowledged records to the offset map.
func (tr *Track) mapRun(u mirror.UpstreamOffset, d mirror.DownstreamOffset, n int32) {
	run := offsets.Run{Up: u, Down: d, Count: int64(n)}
	started, err := tr.runs.Append(run)
	if err != nil {
		// One of the logs went back. What the map knew no longer holds.
		tr.runs.Clear()
		started, _ = tr.runs.Append(run)
	}
	tr.runsChanged = tr.runsChanged || started
}

// Translate tells where on the target a reader goes on that wants source offset
// u next, for partitions whose lane is owned here. It knows what was copied
// since the map was begun; what is older is for offset syncs.
func (t *Task) Translate(tp kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	tr := t.track(tp)
	if tr == nil {
		return offsets.Translation{}
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.runs.Len() == 0 && !tr.spec.Known {
		return offsets.Translation{} // nothing was mirrored: as with MirrorMaker, nothing is said of any group
	}
	position, end := tr.position, tr.write
	if tr.lane.transactional() {
		position, end = tr.visible, tr.visibleWrite
	}
	return tr.runs.Translate(u, position, end)
}

// Copies reports whether a partition is copied here.
func (t *Task) Copies(tp kafka.TopicPartition) bool { return t.track(tp) != nil }

// Known is the last record in front of source offset u whose place on the target
// the offset map knows, with the partition it belongs to. It reports false for
// partitions that are not copied here, and for what is not copied yet; where only
// the map does not know, the record's offsets are -1.
//
//nolint:revive // a pair of offsets, whose it is, and whether there is one
func (t *Task) Known(tp kafka.TopicPartition, u mirror.UpstreamOffset) (Replica, mirror.UpstreamOffset, mirror.DownstreamOffset, bool) {
	tr := t.track(tp)
	if tr == nil {
		return Replica{}, 0, 0, false
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if u >= tr.position {
		return Replica{}, 0, 0, false
	}
	up, down, ok := tr.runs.Known(u)
	if !ok {
		up, down = -1, -1
	}
	return tr.spec.Replica, up, down, true
}

func (t *Task) track(tp kafka.TopicPartition) *Track {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byPartition[tp]
}
