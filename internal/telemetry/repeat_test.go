package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script drives the handler with its own clock: the records carry their times.
type script struct {
	out   bytes.Buffer
	h     *repeatHandler
	start time.Time
}

func newScript() *script {
	s := &script{start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.h = newRepeatHandler(slog.NewJSONHandler(&s.out, &slog.HandlerOptions{Level: slog.LevelDebug}), time.Minute)
	return s
}

func (s *script) at(t *testing.T, after time.Duration, h slog.Handler, l slog.Level, msg string, args ...any) {
	t.Helper()
	r := slog.NewRecord(s.start.Add(after), l, msg, 0)
	r.Add(args...)
	if err := h.Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

// lines gives what was written so far, one "message repeated" each.
func (s *script) lines(t *testing.T) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(s.out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		text := m["msg"].(string)
		if n, ok := m[KeyRepeated].(float64); ok {
			text += " x" + strconv.Itoa(int(n))
		}
		out = append(out, text)
	}
	return out
}

func TestEqualLinesAreCountedAndToldWhenTheirTimeIsUp(t *testing.T) {
	s := newScript()
	for i := range 10 {
		s.at(t, time.Duration(i)*time.Second, s.h, slog.LevelWarn, "cluster unreachable", KeyCluster, "A")
	}
	s.at(t, 20*time.Second, s.h, slog.LevelInfo, "other")
	s.at(t, 61*time.Second, s.h, slog.LevelInfo, "later")
	want := []string{"cluster unreachable", "other", "cluster unreachable x9", "later"}
	if d := cmp.Diff(want, s.lines(t)); d != "" {
		t.Error(d)
	}
}

func TestLinesThatDifferInAnyAttributeAreNotEqual(t *testing.T) {
	s := newScript()
	flow := s.h.WithAttrs([]slog.Attr{slog.String(KeyFlow, "A->B")})
	s.at(t, 0, s.h, slog.LevelInfo, "x", KeyTopic, "a")
	s.at(t, 0, s.h, slog.LevelInfo, "x", KeyTopic, "b")
	s.at(t, 0, s.h, slog.LevelWarn, "x", KeyTopic, "a")
	s.at(t, 0, flow, slog.LevelInfo, "x", KeyTopic, "a")
	s.at(t, 0, s.h.WithGroup("g"), slog.LevelInfo, "x", KeyTopic, "a")
	if n := len(s.lines(t)); n != 5 {
		t.Errorf("%d lines written, want 5", n)
	}
}

func TestFlushTellsWhatIsOnlyCounted(t *testing.T) {
	s := newScript()
	for range 3 {
		s.at(t, 0, s.h, slog.LevelError, "parked")
	}
	s.h.flush()
	s.h.flush()
	if d := cmp.Diff([]string{"parked", "parked x2"}, s.lines(t)); d != "" {
		t.Error(d)
	}
}

func TestDebugLinesAreNeverCounted(t *testing.T) {
	s := newScript()
	for range 3 {
		s.at(t, 0, s.h, slog.LevelDebug, "batch")
	}
	if n := len(s.lines(t)); n != 3 {
		t.Errorf("%d lines written, want 3", n)
	}
}

func TestTheNumberOfRememberedLinesIsBounded(t *testing.T) {
	s := newScript()
	s.at(t, 0, s.h, slog.LevelInfo, "oldest")
	s.at(t, 0, s.h, slog.LevelInfo, "oldest")
	for i := range 2 * maxRemembered {
		s.at(t, time.Duration(i+1)*time.Millisecond, s.h, slog.LevelInfo, "line", KeyCount, i)
	}
	if n := len(s.h.seen.mu.lines); n != maxRemembered {
		t.Errorf("%d lines remembered, want %d", n, maxRemembered)
	}
	if !strings.Contains(s.out.String(), `"msg":"oldest","repeated_times":1`) {
		t.Error("a forgotten line's count was lost")
	}
}
