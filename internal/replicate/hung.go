package replicate

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

// A broker that hangs neither answers nor ends its connections. What waits for it
// must go on where its partitions have gone meanwhile, and must not be disturbed
// where they have not: the broker may yet answer, and what is sent again only
// costs the path. So a connection is cut when its broker is silent and a partition
// that it is about is led by another. What was under way is then sent again by the
// usual way, under the same sequences, to whoever leads.

const (
	hungEvery = time.Second
	// hungPause bounds the pause between two questions about what does not move.
	hungPause = 10 * time.Second
)

// held is a connection to a broker that hangs.
type held struct {
	node    int32
	awaited []kafka.TopicPartition
	cut     func()
}

// movedOn reports whether any of the awaited partitions is led by another broker. A
// partition without a leader has not moved.
func (h held) movedOn(leader func(kafka.TopicPartition) (node int32, ok bool)) bool {
	for _, tp := range h.awaited {
		if node, ok := leader(tp); ok && node != h.node {
			return true
		}
	}
	return false
}

// leaveHung looks after connections to brokers that hang, until ctx ends.
func (t *Task) leaveHung(ctx context.Context) {
	for pause := hungEvery; ctx.Err() == nil; {
		sleep(ctx, pause)
		onSource, onTarget := t.hung()
		if len(onSource)+len(onTarget) == 0 {
			pause = hungEvery
			continue
		}
		pause = min(2*pause, hungPause)
		var wg sync.WaitGroup
		wg.Go(func() { cutMoved(ctx, t.source, onSource) })
		wg.Go(func() { cutMoved(ctx, t.target, onTarget) })
		wg.Wait()
	}
}

// hung are the connections that wait for a silent broker.
func (t *Task) hung() (onSource, onTarget []held) {
	t.mu.Lock()
	sources, sinks := slices.Collect(maps.Values(t.sources)), slices.Collect(maps.Values(t.sinks))
	t.mu.Unlock()
	for _, s := range sources {
		if t.source.Silent(s.node) {
			onSource = append(onSource, s.held()...)
		}
	}
	for _, s := range sinks {
		if t.target.Silent(s.node) {
			onTarget = append(onTarget, s.held()...)
		}
	}
	return onSource, onTarget
}

// cutMoved asks who leads what is waited for, and cuts what waits at the wrong broker.
func cutMoved(ctx context.Context, c Topology, conns []held) {
	if len(conns) == 0 {
		return
	}
	topics := map[string]struct{}{}
	for _, h := range conns {
		for _, tp := range h.awaited {
			topics[tp.Topic] = struct{}{}
		}
	}
	names := slices.Collect(maps.Keys(topics))
	ctx, cancel := context.WithTimeout(ctx, stewardTimeout)
	defer cancel()
	if c.RefreshMetadata(ctx, names...) != nil {
		return // the next round asks again
	}
	leader := func(tp kafka.TopicPartition) (int32, bool) {
		node, _, _, ok := c.Leader(tp)
		return node, ok
	}
	for _, h := range conns {
		if h.movedOn(leader) {
			h.cut()
		}
	}
}

// held is the source's connection with what is read over it; none while there is none.
func (s *source) held() []held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	h := held{node: s.node, cut: s.conn.Close}
	for tp := range s.tracks {
		h.awaited = append(h.awaited, tp)
	}
	return []held{h}
}

// held is the sink's connection with the partitions that an answer is owed for.
func (s *sink) held() []held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	h := held{node: s.node, cut: s.conn.Close}
	for req := range s.unanswered {
		for _, o := range req.outlets {
			h.awaited = append(h.awaited, o.tp)
		}
	}
	return []held{h}
}
