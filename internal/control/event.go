package control

import (
	"context"
	"sync"
	"time"
)

// Event is something that happened. Events are for watching, not for counting: a
// subscriber that is too slow loses some and is told with the kind "lost".
type Event struct {
	// Seq grows by one with each event. It begins with the time at which the process began, so that
	// a number from before a restart is behind all that came since.
	Seq      uint64
	Time     time.Time
	Kind     string // "cluster.put", "cluster.deleted", "flow.put", "flow.deleted", "flow.state", "flow.paused", "flow.resumed", "flow.restarted", "document.put", "document.deleted", "lost"
	Resource string // "cluster A", "flow A->B", "document kind/id"
	Actor    string
	Message  string
	Revision Revision
	// tenants may see it; an event of the server's own resources has one empty name.
	tenant string
}

// keptEvents is how many events a late subscriber can still get.
const keptEvents = 1000

// events are the last ones and those who listen.
type events struct {
	first uint64 // of the first event

	mu   sync.Mutex
	last uint64
	kept []Event // oldest first
	subs map[chan Event]Actor
}

func (e *events) publish(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = max(e.last+1, e.first)
	ev.Seq = e.last
	if ev.Time.IsZero() {
		ev.Time = time.Now()
	}
	if len(e.kept) >= keptEvents {
		e.kept = append(e.kept[:0:0], e.kept[keptEvents/4:]...)
	}
	e.kept = append(e.kept, ev)
	for ch, actor := range e.subs {
		if !actor.Sees(ev.tenant) {
			continue
		}
		select {
		case ch <- ev:
		default: // one place is always free for this word; see subscribe
			select {
			case <-ch:
			default:
			}
			select {
			case ch <- Event{Seq: ev.Seq, Time: ev.Time, Kind: "lost", Message: "the subscriber was too slow; read the state anew"}:
			default:
			}
		}
	}
}

// Subscribe delivers what happens from now on until ctx ends, and before it the
// kept events behind after that the actor may see. It never blocks the server.
func (c *Control) Subscribe(ctx context.Context, after uint64) <-chan Event {
	return c.events.subscribe(ctx, after)
}

// Events are the kept events behind after that the actor may see, oldest first.
func (c *Control) Events(ctx context.Context, after uint64) []Event {
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	return c.events.visible(ActorOf(ctx), after)
}

func (e *events) visible(a Actor, after uint64) []Event {
	var out []Event
	for _, ev := range e.kept {
		if ev.Seq > after && a.Sees(ev.tenant) {
			out = append(out, ev)
		}
	}
	return out
}

func (e *events) subscribe(ctx context.Context, after uint64) <-chan Event {
	actor := ActorOf(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.visible(actor, after)
	ch := make(chan Event, len(before)+256)
	for _, ev := range before {
		ch <- ev
	}
	if e.subs == nil {
		e.subs = map[chan Event]Actor{}
	}
	e.subs[ch] = actor
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.subs, ch)
		close(ch)
	})
	return ch
}
