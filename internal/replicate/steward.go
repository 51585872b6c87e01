package replicate

import (
	"context"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

// ailment is what a troubled track waits for.
type ailment uint8

const (
	ailSource ailment = iota // the source partition's leader
	ailTarget                // the target partition's leader
	ailRange                 // the bounds of the source's log
	ailLoss                  // the loss ledger
	ailDenied                // a right on the source
)

const (
	// deniedPause is how often a missing right is tried again.
	deniedPause = 10 * time.Second
	// stewardTimeout bounds one round of questions to a cluster.
	stewardTimeout = 15 * time.Second
)

// steward brings troubled tracks back. It asks the clusters once for all that
// are due, so that an outage of thousands of partitions costs one metadata
// request a round and no herd follows.
type steward struct {
	task *Task

	mu   sync.Mutex
	due  map[*Track]visit
	wake chan struct{}
}

type visit struct {
	at  time.Time
	ail ailment
}

func newSteward(t *Task) *steward {
	return &steward{task: t, due: map[*Track]visit{}, wake: make(chan struct{}, 1)}
}

// watch asks for a visit after the track's own, growing pause. It is called
// with the track's lock held.
func (w *steward) watch(tr *Track, a ailment) {
	pause := backoff(tr.tries)
	if a == ailDenied {
		pause = deniedPause
	}
	tr.tries++
	w.mu.Lock()
	if v, ok := w.due[tr]; !ok || v.ail != ailTarget {
		w.due[tr] = visit{time.Now().Add(pause), a}
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run visits until ctx ends.
func (w *steward) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := w.round(ctx)
		select {
		case <-ctx.Done():
		case <-w.wake:
			sleep(ctx, 5*time.Millisecond) // let a whole broker's tracks arrive
		case <-time.After(pause):
		}
	}
}

// round visits all that is due and returns the pause until the next.
func (w *steward) round(ctx context.Context) time.Duration {
	now := time.Now()
	next := time.Hour
	var visits [ailDenied + 1][]*Track
	w.mu.Lock()
	for tr, v := range w.due {
		if wait := v.at.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		visits[v.ail] = append(visits[v.ail], tr)
		delete(w.due, tr)
	}
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, stewardTimeout)
	defer cancel()
	var wg sync.WaitGroup
	if sick := append(visits[ailSource], visits[ailDenied]...); len(sick) > 0 {
		wg.Go(func() { w.visitSource(ctx, sick) })
	}
	if sick := visits[ailTarget]; len(sick) > 0 {
		wg.Go(func() { w.visitTarget(ctx, sick) })
	}
	if sick := visits[ailRange]; len(sick) > 0 {
		wg.Go(func() { w.visitRange(ctx, sick) })
	}
	if sick := visits[ailLoss]; len(sick) > 0 {
		wg.Go(func() { w.visitLosses(ctx, sick) })
	}
	wg.Wait()
	return next
}

func (w *steward) visitSource(ctx context.Context, sick []*Track) {
	err := refresh(ctx, w.task.source, sick, func(tr *Track) (string, bool) {
		return tr.spec.Source.Topic, !tr.denied && tr.from != nil && moved(w.task.source, tr.spec.Source, tr.from.node)
	})
	for _, tr := range sick {
		tr.mu.Lock()
		switch {
		case tr.closed || tr.state == TrackParked && !tr.denied:
		case tr.denied && (err != nil || !w.task.routeSourceLocked(tr)):
			w.watch(tr, ailDenied)
		case tr.denied:
			tr.probing = true
			tr.from.touch(tr)
		case err != nil:
			tr.waitLocked("source: " + err.Error())
			w.watch(tr, ailSource)
		case w.task.routeSourceLocked(tr):
			if tr.app.phase == flowing {
				tr.runLocked()
			} else {
				w.watch(tr, ailSource) // the target's trouble may end without a visit
			}
		default:
			w.watch(tr, ailSource)
		}
		tr.mu.Unlock()
	}
}

func (w *steward) visitTarget(ctx context.Context, sick []*Track) {
	err := refresh(ctx, w.task.target, sick, func(tr *Track) (string, bool) {
		return tr.tp.Topic, tr.sink != nil && moved(w.task.target, tr.tp, tr.sink.node)
	})
	for _, tr := range sick {
		tr.mu.Lock()
		switch {
		case tr.closed || tr.state == TrackParked:
		case err != nil:
			tr.waitLocked("target: " + err.Error())
			w.watch(tr, ailTarget)
		case w.task.routeTargetLocked(&tr.outlet):
			if !tr.sameTargetLocked() {
				break
			}
			if tr.unsureLocked(time.Now()) {
				tr.lane.reopen("an answer was lost and the target may have forgotten our writes since: " + tr.reason)
				break
			}
			tr.app.resume()
			if tr.from == nil && !w.task.routeSourceLocked(tr) {
				w.watch(tr, ailSource)
			} else {
				tr.runLocked()
			}
			tr.kickLocked()
		default:
			tr.waitLocked("target: partition " + tr.tp.String() + " has no leader")
			w.watch(tr, ailTarget)
		}
		tr.mu.Unlock()
	}
}

func (w *steward) visitRange(ctx context.Context, sick []*Track) {
	tps := make([]kafka.TopicPartition, len(sick))
	for i, tr := range sick {
		tps[i] = tr.spec.Source
	}
	starts := w.task.source.ListOffsets(ctx, tps, kafka.Earliest, kafka.ReadUncommitted)
	ends := w.task.source.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadUncommitted)
	for i, tr := range sick {
		tr.outOfRange(starts[tps[i]], ends[tps[i]])
	}
}

// moved reports whether a partition is known to be led by another node than this one.
func moved(of Topology, tp kafka.TopicPartition, node int32) bool {
	now, _, _, ok := of.Leader(tp)
	return ok && now != node
}

// refresh asks a cluster for the topics of tracks, each once. A track whose leader has
// moved since, as an answer told (KIP-951), need not be asked about.
func refresh(ctx context.Context, of Topology, tracks []*Track, fate func(*Track) (topic string, gone bool)) error {
	seen := map[string]struct{}{}
	var topics []string
	for _, tr := range tracks {
		tr.mu.Lock()
		topic, gone := fate(tr)
		tr.mu.Unlock()
		if _, ok := seen[topic]; !ok && !gone {
			seen[topic] = struct{}{}
			topics = append(topics, topic)
		}
	}
	if len(topics) == 0 {
		return nil
	}
	return of.RefreshMetadata(ctx, topics...)
}
