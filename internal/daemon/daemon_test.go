package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
)

// fakeFlow runs until it is told to stop, or breaks by itself after a time.
type fakeFlow struct {
	id     mirror.FlowID
	breaks error         // what Run returns after lives; nil runs until told to stop
	lives  time.Duration // until breaks
	drains time.Duration // how long the stop takes
}

func (f *fakeFlow) Run(ctx context.Context) error {
	if f.breaks != nil {
		select {
		case <-time.After(f.lives):
			return f.breaks
		case <-ctx.Done():
			return nil
		}
	}
	<-ctx.Done()
	time.Sleep(f.drains)
	return nil
}

func (f *fakeFlow) Update(flow.Spec) {}

func (f *fakeFlow) Status() flow.Status { return flow.Status{ID: f.id, State: flow.Running} }

// starts counts how often a slot's flow was started.
type starts struct {
	mu sync.Mutex
	at []time.Time
}

func (s *starts) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

func slotOf(name string, f fakeFlow, s *starts) *slot {
	source, target, _ := strings.Cut(name, "->")
	f.id = mirror.FlowID{Source: mirror.ClusterAlias(source), Target: mirror.ClusterAlias(target)}
	return &slot{id: f.id, log: slog.New(slog.DiscardHandler), done: make(chan struct{}), fresh: func() runner {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at = append(s.at, time.Now())
		return &f
	}}
}

func daemonOf(o Options, slots ...*slot) *Daemon {
	o.Log = slog.New(slog.DiscardHandler)
	if o.StopWithin == 0 {
		o.StopWithin = 30 * time.Second
	}
	d := NewEmpty(config.Process{}, o)
	for _, s := range slots {
		d.add(s)
	}
	return d
}

var errBroken = errors.New("the target's disk is full")

func TestAFlowThatBreaksIsStartedAgainAndTheOthersRunOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken, well starts
		d := daemonOf(Options{},
			slotOf("A->B", fakeFlow{breaks: errBroken, lives: time.Second}, &broken),
			slotOf("C->B", fakeFlow{}, &well))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()

		time.Sleep(2 * time.Second)
		synctest.Wait()
		s := d.Status()
		if s[0].State != flow.Failed || !strings.Contains(s[0].Reason, errBroken.Error()) {
			t.Errorf("broken flow: %s, %q; want failed with the error", s[0].State, s[0].Reason)
		}
		if s[1].State != flow.Running {
			t.Errorf("the other flow is %s", s[1].State)
		}
		if h := d.Health(); h.Ready || !h.Alive || len(h.Parts) != 2 || h.Parts[0].Ready || !h.Parts[1].Ready {
			t.Errorf("health %+v; want alive, not ready because of A->B alone", h)
		}
		time.Sleep(10 * time.Minute)
		if n := broken.count(); n < 5 || n > 20 {
			t.Errorf("started %d times in ten minutes, want a pause that grows to a minute", n)
		}
		if well.count() != 1 {
			t.Errorf("the other flow was started %d times", well.count())
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a clean stop returned %v", err)
		}
		if h := d.Health(); h.Alive || h.Ready {
			t.Errorf("health after the stop: %+v", h)
		}
	})
}

func TestUnderMirrorMakersMannersTheFirstBreakEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken, well starts
		d := daemonOf(Options{FirstErrorStops: true},
			slotOf("A->B", fakeFlow{breaks: errBroken, lives: time.Second}, &broken),
			slotOf("C->B", fakeFlow{}, &well))
		err := d.Run(t.Context())
		if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "A->B") {
			t.Errorf("got %v, want the flow and its error", err)
		}
		if broken.count() != 1 {
			t.Errorf("started %d times", broken.count())
		}
	})
}

func TestAStopIsBoundedAndNamesWhatWasNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, slow starts
		d := daemonOf(Options{StopWithin: 30 * time.Second},
			slotOf("A->B", fakeFlow{drains: time.Second}, &quick),
			slotOf("C->B", fakeFlow{drains: time.Hour}, &slow))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := d.Run(ctx)
		if !errors.Is(err, ErrStopBound) || !strings.Contains(err.Error(), "C->B") || strings.Contains(err.Error(), "A->B") {
			t.Errorf("got %v, want the bound with C->B alone", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("the stop took %v", took)
		}
		time.Sleep(2 * time.Hour) // the slow flow ends at last; the bubble must be empty
	})
}

func TestProgressIsToldWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starts
		told := 0
		d := daemonOf(Options{WatchEvery: time.Second, Watch: func(_ time.Time, flows []flow.Status) { told += len(flows) }},
			slotOf("A->B", fakeFlow{}, &s))
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		if err := d.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if told != 3 {
			t.Errorf("told %d times in 3.5 s, want 3", told)
		}
	})
}

func TestNewRefusesADeploymentWithoutFlows(t *testing.T) {
	_, err := New(&config.Deployment{}, Options{})
	if err == nil || err.Error() != "no source->target replication flows in the file" {
		t.Errorf("got %v", err)
	}
}

// deployment loads a small file.
func deployment(t *testing.T, more ...string) *config.Deployment {
	t.Helper()
	text := "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:2\nA->B.enabled = true\n" + strings.Join(more, "\n")
	dep := config.Load(config.Source{Name: "test.properties", Bytes: []byte(text)})
	if err := dep.Err(); err != nil {
		t.Fatal(err)
	}
	return dep
}

func TestATargetThatDoesNotAnswerIsAnErrorOnlyForWhoAsks(t *testing.T) {
	d, err := New(deployment(t), Options{Log: slog.New(slog.DiscardHandler), Targets: []mirror.ClusterAlias{"B"}})
	if err != nil {
		t.Fatalf("nothing may be contacted by New: %v", err)
	}
	defer d.Close()
	err = d.AwaitTargets(t.Context(), 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "target cluster B cannot be reached: no answer within 100ms") {
		t.Errorf("got %v", err)
	}
}

func TestInstancesOfOneDeploymentTakeDifferentPlaces(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	first := TakeInstance(deployment(t), "host", dir, log)
	second := TakeInstance(deployment(t), "host", dir, log)
	defer second.Release()
	if first.Name == second.Name {
		t.Errorf("both are %s", first.Name)
	}
	first.Release()
	again := TakeInstance(deployment(t, "refresh.topics.interval.seconds = 7"), "host", dir, log)
	defer again.Release()
	if again.Name != first.Name {
		t.Errorf("restarted with another interval: %s, want the place %s", again.Name, first.Name)
	}
}

func TestWithoutADiskAnInstanceStillHasAName(t *testing.T) {
	i := TakeInstance(deployment(t), "host", filepath.Join(t.TempDir(), "missing"), slog.New(slog.DiscardHandler))
	defer i.Release()
	if !strings.HasPrefix(i.Name, "host-") {
		t.Errorf("named %q", i.Name)
	}
}

func TestTheClientIDIsOnePerFlowBehindTheUsersOwn(t *testing.T) {
	for _, tc := range []struct{ own, want string }{{"", "A->B"}, {"A->B", "A->B"}, {"team-x", "team-x|A->B"}} {
		side := Side{Alias: "A", Client: config.Client{ClientID: tc.own}}
		if got := ClientID(mirror.FlowID{Source: "A", Target: "B"}, side); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.own, got, tc.want)
		}
	}
}

func TestALoginOfItsOwnThatIsNotUsedIsNamed(t *testing.T) {
	dep := deployment(t, "A.admin.security.protocol = SSL")
	got := OtherLogins(&dep.Flows[0])
	if len(got) != 1 || !strings.Contains(got[0], "source.admin has a connection of its own") {
		t.Errorf("named: %q", got)
	}
	if plain := deployment(t); len(OtherLogins(&plain.Flows[0])) != 0 {
		t.Errorf("a plain file: %v", OtherLogins(&plain.Flows[0]))
	}
}
