package daemon

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
)

// wantedOf makes wanted flows of a file with three clusters. Its Flow pointers are new.
func wantedOf(t *testing.T, lines ...string) []Wanted {
	t.Helper()
	text := "clusters = A, B, C\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:2\nC.bootstrap.servers = 127.0.0.1:3\n" +
		"emit.heartbeats.enabled = false\n" + strings.Join(lines, "\n")
	dep := config.Load(config.Source{Name: "test.properties", Bytes: []byte(text)})
	if err := dep.Err(); err != nil {
		t.Fatal(err)
	}
	return WantedOf(dep)
}

func TestEffectsOfChanges(t *testing.T) {
	base := []string{"A->B.enabled = true", "A->B.topics = orders.*"}
	cases := []struct {
		name string
		more []string
		want EffectKind
		why  string
	}{
		{"the same again", nil, EffectNone, ""},
		{"another topic", []string{"A->B.topics = orders.*, payments"}, EffectLive, "topics"},
		{"fewer groups", []string{"A->B.groups.exclude = x.*"}, EffectLive, "groups.exclude"},
		{"settings left out", []string{"A->B.config.properties.exclude = retention.ms"}, EffectLive, "config.properties.exclude"},
		{"its own cap", []string{"A->B.heliograph.rate.bytes.per.second = 1MiB"}, EffectLive, "heliograph.rate.bytes.per.second"},
		{"a cluster's cap", []string{"A.heliograph.rate.bytes.per.second = 1MiB"}, EffectLive, "shared caps"},
		{"another name", []string{"A->B.replication.policy.separator = _"}, EffectRestart, "replication.policy.separator"},
		{"another interval", []string{"A->B.refresh.topics.interval.seconds = 77"}, EffectRestart, "refresh.topics.interval.seconds"},
		{"other brokers", []string{"B.bootstrap.servers = 127.0.0.1:4"}, EffectRestart, "bootstrap.servers"},
		{"exactly-once", []string{"B.exactly.once.source.support = enabled"}, EffectRestart, "exactly.once"},
	}
	d := NewEmpty(config.Process{}, Options{Log: slog.New(slog.DiscardHandler)})
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			old, next := wantedOf(t, base...), wantedOf(t, append(slices.Clone(base), tt.more...)...)
			got := d.Effect(&old[0], &next[0])
			if got.Kind != tt.want || !strings.Contains(got.Why, tt.why) {
				t.Errorf("%+v, want %s because of %s", got, tt.want, tt.why)
			}
		})
	}
}

func TestARotatedPasswordRestartsTheFlowsThatUseIt(t *testing.T) {
	login := func(password string) []Wanted {
		return wantedOf(t, "A->B.enabled = true", "C->B.enabled = true", "A.security.protocol = SASL_PLAINTEXT", "A.sasl.mechanism = PLAIN",
			`A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="`+password+`";`)
	}
	d := NewEmpty(config.Process{}, Options{Log: slog.New(slog.DiscardHandler)})
	old, next := login("one"), login("two")
	if got := d.Effect(&old[0], &next[0]); got.Kind != EffectRestart || strings.Contains(got.Why, "two") {
		t.Errorf("A->B: %+v", got)
	}
	if got := d.Effect(&old[1], &next[1]); got.Kind != EffectNone {
		t.Errorf("C->B: %+v", got)
	}
}

// record notes what happens to the flows of a daemon whose flows are fakes.
type record struct {
	mu     sync.Mutex
	events []string
}

func (r *record) add(what string, id mirror.FlowID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, what+" "+id.String())
}

func (r *record) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.events)
	all := strings.Join(r.events, ", ")
	r.events = nil
	return all
}

type recordedFlow struct {
	id mirror.FlowID
	r  *record
}

func (f *recordedFlow) Run(ctx context.Context) error {
	f.r.add("start", f.id)
	<-ctx.Done()
	time.Sleep(time.Second) // draining
	f.r.add("stop", f.id)
	return nil
}

func (f *recordedFlow) Status() flow.Status   { return flow.Status{ID: f.id, State: flow.Running} }
func (f *recordedFlow) Update(spec flow.Spec) { f.r.add("update", spec.ID) }

// fakes replaces the flows of a daemon.
func (r *record) fakes(d *Daemon) {
	d.runner = func(s *slot) runner { return &recordedFlow{s.id, r} }
}

func TestOnlyTouchedFlowsAreDisturbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		d := NewEmpty(config.Process{}, Options{Log: slog.New(slog.DiscardHandler), StopWithin: time.Minute})
		r.fakes(d)
		apply := func(wanted []Wanted) string {
			t.Helper()
			if err := d.Apply(wanted); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(2 * time.Second) // what stops has drained
			synctest.Wait()
			return r.take()
		}
		check := func(got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
		both := wantedOf(t, "A->B.enabled = true", "A->C.enabled = true")
		check(apply(both), "") // not running yet
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		check(r.take(), "start A->B, start A->C")
		check(apply(wantedOf(t, "A->B.enabled = true", "A->C.enabled = true")), "")
		check(apply(wantedOf(t, "A->B.enabled = true", "A->C.enabled = true", "A->B.topics = x")), "update A->B")
		check(apply(wantedOf(t, "A->B.enabled = true", "A->C.enabled = true", "A->B.topics = x", "A->C.replication.factor = 1")), "start A->C, stop A->C")
		paused := wantedOf(t, "A->B.enabled = true", "A->C.enabled = true", "A->B.topics = x", "A->C.replication.factor = 1")
		paused[0].Paused = true
		check(apply(paused), "stop A->B")
		if s, _ := d.StatusOf(paused[0].Flow.ID); s.State != flow.Paused || !d.Health().Ready {
			t.Errorf("paused: %s, ready %v", s.State, d.Health().Ready)
		}
		check(apply(wantedOf(t, "A->B.enabled = true", "B->C.enabled = true")), "start A->B, start B->C, stop A->C")
		if err := d.Restart(mirror.FlowID{Source: "A", Target: "B"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		check(r.take(), "") // the new one waits for the old one to drain
		time.Sleep(2 * time.Second)
		check(r.take(), "start A->B, stop A->B")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		check(r.take(), "stop A->B, stop B->C")
	})
}

func TestAChangeThatCannotBeMadeLeavesTheFlowRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		d := NewEmpty(config.Process{}, Options{Log: slog.New(slog.DiscardHandler), StopWithin: time.Minute})
		r.fakes(d)
		if err := d.Apply(wantedOf(t, "A->B.enabled = true")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		r.take()
		err := d.Apply(wantedOf(t, "A->B.enabled = true", "A.security.protocol = SSL", "A.ssl.truststore.location = /nowhere/ca.pem"))
		if err == nil || !strings.Contains(err.Error(), "/nowhere/ca.pem") {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if got := r.take(); got != "" {
			t.Errorf("the flow was disturbed: %s", got)
		}
		if s := d.Status()[0]; s.State != flow.Running || !strings.Contains(s.Reason, "runs as before") {
			t.Errorf("%s, %q", s.State, s.Reason)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
