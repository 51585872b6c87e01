package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/offsets"
)

// Rebuilt is what Rebuild made of one partition.
type Rebuilt struct {
	Flow      string `json:"flow"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// From is the first source offset that the map knows now; unset where nothing
	// was rebuilt, for the reason.
	From   *int64 `json:"from,omitempty"`
	Runs   int    `json:"runs"`
	Reason string `json:"reason"`
}

// Rebuild makes the offset map of the flows reach back over what was copied before
// it was begun, by MirrorMaker usually: both logs are matched record by record.
// Nobody may run the flows meanwhile: see [Workers].
func Rebuild(ctx context.Context, dep *config.Deployment, name string, log *slog.Logger) ([]Rebuilt, error) {
	flows, err := copying(dep, name)
	if err != nil {
		return nil, err
	}
	var all []Rebuilt
	for _, f := range flows {
		some, err := rebuildFlow(ctx, f, log)
		all = append(all, some...)
		if err != nil {
			return all, fmt.Errorf("flow %s: %w", f.ID, err)
		}
	}
	return all, nil
}

func rebuildFlow(ctx context.Context, f *config.Flow, log *slog.Logger) ([]Rebuilt, error) {
	sides, err := askingBoth(f, log)
	if err != nil {
		return nil, err
	}
	defer sides.close()
	topics, err := sides.target.Topics(ctx)
	if err != nil {
		return nil, err
	}
	b := books(f, sides.target, topics, log)
	if b.RunsPartitions == 0 {
		return nil, errors.New("heliograph has not run this flow yet, and keeps no map of it: take it over first")
	}
	positions, err := b.Positions(ctx)
	if err != nil {
		return nil, err
	}
	var tps []kafka.TopicPartition
	for tp := range positions {
		if ok, _ := f.Selection.Replicates(tp.Topic); ok && !f.Policy.IsHeartbeatsTopic(tp.Topic) {
			tps = append(tps, tp)
		}
	}
	slices.SortFunc(tps, kafka.TopicPartition.Compare)
	maps, err := b.Maps(ctx, tps)
	if err != nil {
		return nil, err
	}
	re := rebuilding{books: b, sides: sides}
	re.syncs, _ = readSyncs(ctx, f, sides)
	logs := newExactly(f, sides)
	var all []Rebuilt
	for _, tp := range tps {
		r := Rebuilt{Flow: f.ID.String(), Topic: tp.Topic, Partition: tp.Partition}
		if err := re.partition(ctx, &r, maps[tp], logs.logs(ctx, tp)); err != nil {
			return all, fmt.Errorf("%s: %w", tp, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// rebuilding is the work for one flow.
type rebuilding struct {
	books coord.Books
	syncs *offsets.SyncStore // nil where they cannot be read
	sides pair
}

// partition matches one partition's logs and writes the map that comes of it, all of
// it in one batch: a part of a map would be a wrong one.
func (re *rebuilding) partition(ctx context.Context, r *Rebuilt, m coord.StoredMap, l bothLogs) error {
	tp := kafka.TopicPartition{Topic: r.Topic, Partition: r.Partition}
	switch {
	case l.err != nil:
		return l.err
	case m.Runs == nil:
		r.Reason = "its position is Java MirrorMaker's: take the flow over first"
		return nil
	case m.Runs.Thinned():
		r.Reason = "the map reaches back to its first record, thinned; reading both logs makes it exact where it is asked"
		return nil
	}
	r.Runs = m.Runs.Len()
	if oldest, ok := m.Runs.Oldest(); ok && (oldest.Up <= l.up || oldest.Down <= l.down) {
		r.From, r.Reason = new(int64(oldest.Up)), "the map reaches back as far as both logs do"
		return nil
	}
	places := []coord.Place{{Up: l.up, Down: l.down}}
	if re.syncs != nil {
		known := re.syncs.Syncs(tp)
		for _, s := range slices.Backward(known) {
			if s.Upstream >= l.up && s.Downstream >= l.down {
				places = append(places, coord.Place{Up: s.Upstream, Down: s.Downstream})
			}
		}
	}
	l.SourceEnd, l.CopyEnd = min(l.SourceEnd, int64(m.Position())), min(l.CopyEnd, int64(m.Stored.Facts.NextTarget))
	past, ok, err := l.Rebuild(ctx, places, m.Runs)
	if err != nil {
		return err
	}
	if !ok {
		r.Reason = "both logs do not go on in step up to the map's first record: offsets in front of it are answered by offset syncs"
		return nil
	}
	all, err := m.Runs.Behind(past)
	if err != nil {
		return err
	}
	at, records := re.books.Chunks(tp, m, all, time.Now().UnixMilli())
	if _, err := re.sides.target.WriteRecords(ctx, at, records); err != nil {
		return err
	}
	oldest, _ := all.Oldest()
	r.From, r.Runs = new(int64(oldest.Up)), all.Len()
	r.Reason = fmt.Sprintf("matched %d runs in front of the map", len(past))
	return nil
}
