package syncer

import (
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	latencySamples = 1024
	latencyWindow  = 10 * time.Minute
)

// latency measures the time from a group's commit on the source to the same
// place on the target, the exact one. Brokers do not tell when a group committed, so that it is
// counted from the last look that did not see the commit yet: the true time is
// up to one interval shorter.
type latency struct {
	sync.Mutex
	pending map[string]time.Time
	samples []latencySample // a ring
	next    int
}

type latencySample struct {
	at   time.Time
	took time.Duration
}

// begin notes that a group has moved since a look at the given time.
func (l *latency) begin(group string, since time.Time) {
	l.Lock()
	defer l.Unlock()
	if l.pending == nil {
		l.pending = map[string]time.Time{}
	}
	if _, waits := l.pending[group]; !waits {
		l.pending[group] = since
	}
}

// end notes that the group stands on the target where it should, or, if not
// arrived, that it is left alone there.
func (l *latency) end(group string, now time.Time, arrived bool) {
	l.Lock()
	defer l.Unlock()
	since, waits := l.pending[group]
	if !waits {
		return
	}
	delete(l.pending, group)
	if !arrived {
		return
	}
	s := latencySample{now, now.Sub(since)}
	if len(l.samples) < latencySamples {
		l.samples = append(l.samples, s)
		return
	}
	l.samples[l.next] = s
	l.next = (l.next + 1) % latencySamples
}

// keep forgets the moves of groups that are not followed any more.
func (l *latency) keep(followed map[string]bool) {
	l.Lock()
	defer l.Unlock()
	maps.DeleteFunc(l.pending, func(group string, _ time.Time) bool { return !followed[group] })
}

// GroupLatency are quantiles of the last ten minutes; Count is of how many moves.
type GroupLatency struct {
	Count         int
	P50, P99, Max time.Duration
}

func (l *latency) quantiles(now time.Time) GroupLatency {
	l.Lock()
	defer l.Unlock()
	var took []time.Duration
	for _, s := range l.samples {
		if now.Sub(s.at) <= latencyWindow {
			took = append(took, s.took)
		}
	}
	if len(took) == 0 {
		return GroupLatency{}
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[min(int(q*float64(len(took))), len(took)-1)] }
	return GroupLatency{Count: len(took), P50: at(0.5), P99: at(0.99), Max: took[len(took)-1]}
}

// Latency tells how long groups took to arrive on the target.
func (g *GroupSync) Latency() GroupLatency { return g.latency.quantiles(g.o.Now()) }
