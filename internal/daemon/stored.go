package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// asking opens a side for a few questions.
func asking(f *config.Flow, side Side, log *slog.Logger) (*cluster.Client, error) {
	return OpenSide(f.ID, side.hurried(), nil, log)
}

// askingBoth opens both sides of a flow for a few questions.
func askingBoth(f *config.Flow, log *slog.Logger) (pair, error) {
	from, to := Sides(f)
	return openPair(f.ID, from.hurried(), to.hurried(), nil, log)
}

// hurried is the side for who asks and waits: a cluster that is away is told soon.
func (s Side) hurried() Side {
	s.Client.RequestTimeout = config.Opt[time.Duration]{Value: min(askWithin, s.Client.RequestTimeout.Or(askWithin)), Set: true}
	return s
}

// books are where a flow's positions and offset map lie, given the target's topics.
func books(f *config.Flow, target *cluster.Client, topics []kafka.TopicDetail, log *slog.Logger) coord.Books {
	count := func(name string) int32 {
		for _, t := range topics {
			if t.Name == name {
				return int32(len(t.Partitions))
			}
		}
		return 0
	}
	b := coord.Books{Source: f.ID.Source, PositionsTopic: f.Positions.Topic, RunsTopic: mirror.OffsetRunsTopic(f.ID.Source), Reader: target, Log: log}
	b.Lanes, b.RunsPartitions = count(b.PositionsTopic), count(b.RunsTopic)
	return b
}

// readLog calls fn for each record that a partition holds now.
func readLog(ctx context.Context, c *cluster.Client, tp kafka.TopicPartition, fn func(kafka.Record) error) error {
	tps := []kafka.TopicPartition{tp}
	start := c.ListOffsets(ctx, tps, kafka.Earliest, kafka.ReadCommitted)[tp]
	end := c.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadCommitted)[tp]
	switch {
	case start.Err != nil:
		return start.Err
	case end.Err != nil:
		return end.Err
	}
	return c.ReadRecords(ctx, tp, start.Offset, end.Offset, kafka.ReadCommitted, fn)
}

// readSyncs reads the flow's offset syncs. The text says why there are none.
func readSyncs(ctx context.Context, f *config.Flow, sides pair) (*offsets.SyncStore, string) {
	if !f.OffsetSyncs.Enabled {
		return nil, "offset syncs are off (emit.offset-syncs.enabled = false)"
	}
	on, other := sides.target, f.ID.Source
	if f.OffsetSyncs.OnSource {
		on, other = sides.source, f.ID.Target
	}
	topic := f.Policy.OffsetSyncsTopic(other)
	store := offsets.NewSyncStore(false)
	err := readLog(ctx, on, kafka.TopicPartition{Topic: topic}, func(r kafka.Record) error {
		// What cannot be decoded is somebody else's record, or a tombstone.
		if s, err := mirror.DecodeOffsetSync(r.Key, r.Value); err == nil {
			store.Apply(s)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Sprintf("the offset syncs were not read: %v", err)
	}
	store.ReadToEnd()
	return store, ""
}

// storedTranslator answers from what is written down: the offset map on the
// target, and where that does not tell, the offset syncs, as MirrorMaker does.
type storedTranslator struct {
	maps  map[kafka.TopicPartition]coord.StoredMap
	syncs *offsets.SyncStore // nil where they cannot be read
	// sharpen and sharpenBack read both logs where neither tells; nil does not.
	sharpen     func(kafka.TopicPartition, coord.StoredMap, mirror.UpstreamOffset) (offsets.Translation, basis)
	sharpenBack func(kafka.TopicPartition, coord.StoredMap, mirror.DownstreamOffset) (offsets.Origin, basis)
}

// readingLogs is t with both logs read where what is written down does not tell.
func (t storedTranslator) readingLogs(ctx context.Context, e *exactly) storedTranslator {
	type question struct {
		tp kafka.TopicPartition
		at int64
	}
	type answer struct {
		offsets.Translation
		basis
	}
	told := map[question]answer{}
	t.sharpen = func(tp kafka.TopicPartition, m coord.StoredMap, u mirror.UpstreamOffset) (offsets.Translation, basis) {
		q := question{tp, int64(u)}
		if _, ok := told[q]; !ok {
			got, b := e.sharpen(ctx, tp, m, t.syncs, u)
			told[q] = answer{got, b}
		}
		return told[q].Translation, told[q].basis
	}
	t.sharpenBack = func(tp kafka.TopicPartition, m coord.StoredMap, d mirror.DownstreamOffset) (offsets.Origin, basis) {
		return e.sharpenBack(ctx, tp, m, t.syncs, d)
	}
	return t
}

// Translate is answer without its words.
func (t storedTranslator) Translate(source kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	got, _ := t.answer(source, u)
	return got
}

// The sources of an answer.
const (
	byMap   = "offset map"
	bySyncs = "offset syncs"
)

// basis says what an answer rests on, for people.
type basis struct {
	by     string // byMap, bySyncs, or "" where nothing answers
	reason string
	// atMost is how many source offsets lie between the one asked for and the one
	// answered, where the answer is further back than it could be.
	atMost int64
}

// answer translates a source offset and says why so.
func (t storedTranslator) answer(source kafka.TopicPartition, u mirror.UpstreamOffset) (offsets.Translation, basis) {
	m, stored := t.maps[source]
	got, b := t.written(source, m, stored, u)
	if got.Quality < offsets.Next && stored && u < m.Position() && t.sharpen != nil {
		if exact, eb := t.sharpen(source, m, u); exact.Known() {
			return exact, eb
		}
	}
	return got, b
}

// written translates by what is written down.
func (t storedTranslator) written(source kafka.TopicPartition, m coord.StoredMap, stored bool, u mirror.UpstreamOffset) (offsets.Translation, basis) {
	exact := m.Translate(u)
	synced, sync := t.bySync(source, u)
	switch {
	case exact.Quality >= offsets.Next:
		return exact, basis{by: byMap, reason: mapReason(exact.Quality)}
	case exact.Quality == offsets.Before && u < m.Position() && (!synced.Known() || synced.Offset <= exact.Offset):
		up, _, _ := m.Runs.Known(u)
		return exact, basis{
			by: byMap, atMost: max(int64(u-up)-1, 0),
			reason: fmt.Sprintf("the map has thinned there: behind the last record it knows, at source offset %d", up),
		}
	case exact.Quality == offsets.Before && (!synced.Known() || synced.Offset <= exact.Offset):
		return exact, basis{
			by: byMap, atMost: int64(u - m.Position()),
			reason: fmt.Sprintf("not copied yet: the flow has stored its position at source offset %d", m.Position()),
		}
	case synced.Known():
		return synced, basis{
			by: bySyncs, atMost: max(int64(u-sync.Upstream)-1, 0),
			reason: syncReason(synced.Quality, int64(u-sync.Upstream)) + "; " + t.noMap(m, stored),
		}
	}
	why := t.noMap(m, stored)
	switch {
	case t.syncs == nil:
	case synced.Quality == offsets.TooOld:
		why += "; older than every offset sync"
	default:
		why += "; no offset sync of the partition"
	}
	return offsets.Translation{}, basis{reason: why}
}

// bySync translates by the offset syncs, with the sync that the answer is from.
func (t storedTranslator) bySync(source kafka.TopicPartition, u mirror.UpstreamOffset) (offsets.Translation, mirror.OffsetSync) {
	if t.syncs == nil {
		return offsets.Translation{}, mirror.OffsetSync{}
	}
	for _, s := range t.syncs.Syncs(source) {
		if s.Upstream <= u {
			return t.syncs.Translate(source, u), s
		}
	}
	return t.syncs.Translate(source, u), mirror.OffsetSync{}
}

// origin translates a target offset back and says why so.
func (t storedTranslator) origin(source kafka.TopicPartition, d mirror.DownstreamOffset) (offsets.Origin, basis) {
	m, stored := t.maps[source]
	got, b := t.writtenBack(source, m, stored, d)
	if got.Quality < offsets.Next && stored && t.sharpenBack != nil {
		if exact, eb := t.sharpenBack(source, m, d); exact.Known() {
			return exact, eb
		}
	}
	return got, b
}

// writtenBack translates back by what is written down.
func (t storedTranslator) writtenBack(source kafka.TopicPartition, m coord.StoredMap, stored bool, d mirror.DownstreamOffset) (offsets.Origin, basis) {
	exact := m.Reverse(d)
	if exact.Quality >= offsets.Next {
		return exact, basis{by: byMap, reason: mapReason(exact.Quality)}
	}
	synced, sync := t.bySyncBack(source, d)
	switch {
	case exact.Quality == offsets.Before && (!synced.Known() || synced.Offset <= exact.Offset):
		return exact, basis{by: byMap, reason: fmt.Sprintf("behind what the flow has written: its position stands at target offset %d", m.Stored.Facts.NextTarget)}
	case synced.Known():
		return synced, basis{by: bySyncs, reason: syncReason(synced.Quality, int64(d-sync.Downstream)) + "; " + t.noMap(m, stored)}
	}
	return offsets.Origin{}, basis{reason: t.noMap(m, stored)}
}

// bySyncBack translates back by the offset syncs, with the sync that the answer is from.
func (t storedTranslator) bySyncBack(source kafka.TopicPartition, d mirror.DownstreamOffset) (offsets.Origin, mirror.OffsetSync) {
	if t.syncs == nil {
		return offsets.Origin{}, mirror.OffsetSync{}
	}
	for _, s := range t.syncs.Syncs(source) {
		if s.Downstream <= d {
			return t.syncs.Reverse(source, d), s
		}
	}
	return t.syncs.Reverse(source, d), mirror.OffsetSync{}
}

func mapReason(q offsets.Quality) string {
	if q == offsets.Next {
		return "no record of this offset was copied (a marker, an aborted or compacted record): the next one that was"
	}
	return "the record at the one offset is the record at the other"
}

func syncReason(q offsets.Quality, distance int64) string {
	switch q {
	case offsets.Exact:
		return "the offset sync of this record"
	case offsets.Next:
		return "right behind the record of an offset sync"
	default:
		return fmt.Sprintf("right behind the nearest offset sync, which lies %d offsets back", distance)
	}
}

// noMap says why the offset map does not answer.
func (t storedTranslator) noMap(m coord.StoredMap, stored bool) string {
	switch {
	case !stored:
		return "no position of the partition is stored"
	case m.Runs == nil:
		return "the position is Java MirrorMaker's, which keeps no offset map"
	case m.Runs.Len() == 0 && !m.Stored.Committed:
		return "nothing of the partition was copied yet"
	}
	return "older than the offset map"
}
