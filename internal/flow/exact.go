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

// exact makes translations exact that the offset map and the offset syncs leave
// coarse: groups far behind, on records that MirrorMaker copied or that the map
// has thinned. Both logs are read for that, one offset at a time and in the
// background; until then the coarse answer holds.
type exact struct {
	translator
	f     *Flow
	ready func() // is told that answers have become better
	asked chan exactKey

	mu      sync.Mutex
	answers map[exactKey]offsets.Translation // Unknown: the logs do not tell
	waiting map[exactKey]bool
}

type exactKey struct {
	tp kafka.TopicPartition
	u  mirror.UpstreamOffset
}

const (
	exactAsked  = 10_000          // offsets that wait at most
	exactKept   = 50_000          // answers that are remembered at most
	exactWithin = 2 * time.Minute // for one offset
)

func newExact(f *Flow, t translator, ready func()) *exact {
	return &exact{
		translator: t, f: f, ready: ready, asked: make(chan exactKey, exactAsked),
		answers: map[exactKey]offsets.Translation{}, waiting: map[exactKey]bool{},
	}
}

// Translate answers at once, and better the next time.
func (e *exact) Translate(source kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	coarse := e.translator.Translate(source, u)
	if coarse.Quality >= offsets.Next {
		return coarse
	}
	key := exactKey{source, u}
	e.mu.Lock()
	defer e.mu.Unlock()
	if got, ok := e.answers[key]; ok {
		if got.Known() {
			return got
		}
		return coarse
	}
	if _, _, _, copied := e.task.Known(source, u); copied && !e.waiting[key] {
		select {
		case e.asked <- key:
			e.waiting[key] = true
		default: // it is asked again in the next round
		}
	}
	return coarse
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
	r, up, down, ok := e.task.Known(key.tp, key.u)
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
