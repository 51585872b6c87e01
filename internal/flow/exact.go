package flow

import (
	"context"
	"sync"
	"time"

	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/replicate"
	"heliograph/internal/syncer"
)

// exact makes translations exact that this instance's offset map and the offset
// syncs leave coarse. Of partitions that another instance copies it reads the map
// as that one has stored it. Where no map tells, for groups far behind, on records
// that MirrorMaker copied or that the map has thinned, both logs are read, one
// offset at a time. All of it happens in the background; until then the coarse
// answer holds.
type exact struct {
	translator
	f      *Flow
	keeper *coord.Keeper
	ready  func() // is told that answers have become better
	asked  chan exactKey

	mu      sync.Mutex
	answers map[exactKey]offsets.Translation // Unknown: the logs do not tell
	waiting map[exactKey]bool
	// elsewhere are partitions that another instance copies, asked for lately, and
	// stored their maps as that one wrote them last.
	elsewhere map[kafka.TopicPartition]time.Time
	stored    map[kafka.TopicPartition]coord.StoredMap
}

type exactKey struct {
	tp kafka.TopicPartition
	u  mirror.UpstreamOffset
}

const (
	exactAsked  = 10_000          // offsets that wait at most
	exactKept   = 50_000          // answers that are remembered at most
	exactWithin = 2 * time.Minute // for one offset
	storedEvery = 5 * time.Second // the maps of other instances are read
	storedFor   = 5 * time.Minute // after a partition was last asked for
)

func newExact(f *Flow, t translator, keeper *coord.Keeper, ready func()) *exact {
	return &exact{
		translator: t, f: f, keeper: keeper, ready: ready, asked: make(chan exactKey, exactAsked),
		answers: map[exactKey]offsets.Translation{}, waiting: map[exactKey]bool{},
		elsewhere: map[kafka.TopicPartition]time.Time{}, stored: map[kafka.TopicPartition]coord.StoredMap{},
	}
}

// Translate answers at once, and better the next time.
func (e *exact) Translate(source kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	coarse := e.translator.Translate(source, u)
	if e.task.Copies(source) && coarse.Quality >= offsets.Next {
		return coarse
	}
	key := exactKey{source, u}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.task.Copies(source) {
		e.elsewhere[source] = time.Now()
		if got := e.stored[source].Translate(u); got.Quality >= offsets.Next {
			return got
		}
	}
	if coarse.Quality >= offsets.Next {
		return coarse
	}
	if got, ok := e.answers[key]; ok {
		if got.Known() {
			return got
		}
		return coarse
	}
	if _, _, _, copied := e.known(key); copied && !e.waiting[key] {
		select {
		case e.asked <- key:
			e.waiting[key] = true
		default: // it is asked again in the next round
		}
	}
	return coarse
}

// known is the last place in front of an offset that a map knows, with the
// partition; false where it is not copied yet, or not known to be. Called with the
// lock held.
//
//nolint:revive // as replicate.Task.Known
func (e *exact) known(key exactKey) (replicate.Replica, mirror.UpstreamOffset, mirror.DownstreamOffset, bool) {
	if e.task.Copies(key.tp) {
		return e.task.Known(key.tp, key.u)
	}
	m, ok := e.stored[key.tp]
	r, wanted := e.keeper.Replica(key.tp)
	if !ok || !wanted || key.u >= m.Position() {
		return replicate.Replica{}, 0, 0, false
	}
	up, down := mirror.UpstreamOffset(-1), mirror.DownstreamOffset(-1)
	if m.Runs != nil {
		if a, b, has := m.Runs.Known(key.u); has {
			up, down = a, b
		}
	}
	return r.Replica, up, down, true
}

// follow reads the maps of partitions that other instances copy until ctx ends.
func (e *exact) follow(ctx context.Context) {
	for sleep(ctx, storedEvery) {
		var tps []kafka.TopicPartition
		e.mu.Lock()
		for tp, at := range e.elsewhere {
			if time.Since(at) > storedFor || e.task.Copies(tp) {
				delete(e.elsewhere, tp)
				delete(e.stored, tp)
				continue
			}
			tps = append(tps, tp)
		}
		e.mu.Unlock()
		if len(tps) == 0 {
			continue
		}
		maps, err := e.keeper.Books().Maps(ctx, tps)
		if err != nil {
			e.f.deps.Log.Debug("the offset maps of other instances were not read", "err", err)
			continue
		}
		e.mu.Lock()
		e.stored = maps
		e.mu.Unlock()
	}
}

// run answers what was asked until ctx ends.
func (e *exact) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-e.asked:
			got := e.look(ctx, key)
			e.mu.Lock()
			if len(e.answers) >= exactKept {
				clear(e.answers)
			}
			delete(e.waiting, key)
			e.answers[key] = got
			e.mu.Unlock()
			if got.Known() && len(e.asked) == 0 {
				e.ready()
			}
		}
	}
}

func (e *exact) look(ctx context.Context, key exactKey) offsets.Translation {
	ctx, cancel := context.WithTimeout(ctx, exactWithin)
	defer cancel()
	e.mu.Lock()
	r, up, down, ok := e.known(key)
	e.mu.Unlock()
	if !ok {
		return offsets.Translation{}
	}
	if sync, has := e.tail.Before(key.tp, key.u); has && sync.Upstream > up {
		up, down = sync.Upstream, sync.Downstream
	}
	logs, start, err := e.f.logs(ctx, r)
	if err != nil {
		return offsets.Translation{}
	}
	if up < start.up || down < start.down {
		up, down = start.up, start.down
	}
	got, _, err := logs.Translate(ctx, up, down, key.u)
	if err != nil {
		e.f.deps.Log.Debug("an offset was not made exact", "topic", key.tp.Topic, "partition", key.tp.Partition, "offset", int64(key.u), "err", err)
	}
	return got
}

// place is where the logs of a partition and its copy begin.
type place struct {
	up   mirror.UpstreamOffset
	down mirror.DownstreamOffset
}

// logs are a partition and its copy as they are now.
func (f *Flow) logs(ctx context.Context, r replicate.Replica) (coord.Logs, place, error) {
	source, target := []kafka.TopicPartition{r.Source}, []kafka.TopicPartition{r.Target}
	bounds := [4]kafka.PartitionOffset{
		f.source.ListOffsets(ctx, source, kafka.Earliest, kafka.ReadUncommitted)[r.Source],
		f.source.ListOffsets(ctx, source, kafka.Latest, f.spec.Data.Isolation)[r.Source],
		f.target.ListOffsets(ctx, target, kafka.Earliest, kafka.ReadUncommitted)[r.Target],
		f.target.ListOffsets(ctx, target, kafka.Latest, kafka.ReadCommitted)[r.Target],
	}
	for _, b := range bounds {
		if b.Err != nil {
			return coord.Logs{}, place{}, b.Err
		}
	}
	return coord.Logs{
		Source: f.source, Target: f.target, Partition: r.Source, Copy: r.Target,
		SourceEnd: bounds[1].Offset, CopyEnd: bounds[3].Offset, Isolation: f.spec.Data.Isolation, Times: !r.Demands.LogAppendTime,
	}, place{mirror.UpstreamOffset(bounds[0].Offset), mirror.DownstreamOffset(bounds[2].Offset)}, nil
}

var _ syncer.Translator = (*exact)(nil)
