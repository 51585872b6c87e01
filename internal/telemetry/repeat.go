package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxRemembered bounds the lines that repeatHandler watches at a time. The
// oldest is forgotten first, which at worst writes a line again too early.
const maxRemembered = 256

// repeatHandler writes a line once and counts equal ones for a while: a broker
// that is down for an hour is a handful of lines with a count, not thousands.
//
// Two lines are equal if level, message and all attributes are. Lines below
// INFO are never counted: who asked for DEBUG wants them all. Counts whose time
// is up are written when the next line comes, whichever it is, and by flush.
type repeatHandler struct {
	next   slog.Handler
	prefix string // attributes and groups bound to this handler, as part of the key
	seen   *repeats
}

// repeats is shared by a handler and all that were derived from it.
type repeats struct {
	every time.Duration
	mu    struct {
		sync.Mutex
		lines map[string]*repeat
	}
}

type repeat struct {
	since time.Time
	times int
	next  slog.Handler
	last  slog.Record
}

func newRepeatHandler(next slog.Handler, every time.Duration) *repeatHandler {
	r := &repeats{every: every}
	r.mu.lines = map[string]*repeat{}
	return &repeatHandler{next: next, seen: r}
}

// Enabled asks the handler below.
func (h *repeatHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.next.Enabled(ctx, l)
}

// Handle writes the record, or counts it.
func (h *repeatHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.next.Handle(ctx, r)
	}
	due, first := h.seen.note(h.key(r), h.next, r)
	err := write(ctx, due)
	if !first {
		return err
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs binds attributes; they count for equality.
func (h *repeatHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.prefix)
	for _, a := range attrs {
		appendAttr(&b, a)
	}
	return &repeatHandler{next: h.next.WithAttrs(attrs), prefix: b.String(), seen: h.seen}
}

// WithGroup opens a group; it counts for equality.
func (h *repeatHandler) WithGroup(name string) slog.Handler {
	return &repeatHandler{next: h.next.WithGroup(name), prefix: h.prefix + "\x01" + name, seen: h.seen}
}

func (h *repeatHandler) flush() {
	// The context only carries values for handlers that want some; ours want none.
	_ = write(context.Background(), h.seen.takeAll())
}

func (h *repeatHandler) key(r slog.Record) string {
	var b strings.Builder
	b.WriteString(r.Level.String())
	b.WriteByte(0)
	b.WriteString(r.Message)
	b.WriteString(h.prefix)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, a)
		return true
	})
	return b.String()
}

func appendAttr(b *strings.Builder, a slog.Attr) {
	b.WriteByte(0)
	b.WriteString(a.Key)
	b.WriteByte('=')
	b.WriteString(a.Value.Resolve().String())
}

// note counts the line, returns the counts whose time is up, and says whether
// this line is to be written now.
func (s *repeats) note(key string, next slog.Handler, r slog.Record) (due []repeat, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, l := range s.mu.lines {
		if r.Time.Sub(l.since) >= s.every {
			delete(s.mu.lines, k)
			if l.times > 0 {
				due = append(due, *l)
			}
		}
	}
	if l := s.mu.lines[key]; l != nil {
		l.times++
		l.last = r.Clone()
		return due, false
	}
	if len(s.mu.lines) >= maxRemembered {
		if l := s.evictOldestLocked(); l.times > 0 {
			due = append(due, *l)
		}
	}
	s.mu.lines[key] = &repeat{since: r.Time, next: next}
	return inOrder(due), true
}

func (s *repeats) evictOldestLocked() *repeat {
	var oldest string
	for k, l := range s.mu.lines {
		if o, ok := s.mu.lines[oldest]; !ok || l.since.Before(o.since) {
			oldest = k
		}
	}
	l := s.mu.lines[oldest]
	delete(s.mu.lines, oldest)
	return l
}

func (s *repeats) takeAll() []repeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []repeat
	for _, l := range s.mu.lines {
		if l.times > 0 {
			due = append(due, *l)
		}
	}
	clear(s.mu.lines)
	return inOrder(due)
}

func inOrder(due []repeat) []repeat {
	slices.SortFunc(due, func(a, b repeat) int { return a.last.Time.Compare(b.last.Time) })
	return due
}

// write writes counted lines, outside the lock: an output that blocks must not
// stop who only wants to count.
func write(ctx context.Context, due []repeat) error {
	var first error
	for _, l := range due {
		l.last.AddAttrs(slog.Int(KeyRepeated, l.times))
		if err := l.next.Handle(ctx, l.last); err != nil && first == nil {
			first = err
		}
	}
	return first
}
