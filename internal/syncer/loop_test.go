package syncer

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// loopRig runs a job in a bubble and notes when its rounds begin.
type loopRig struct {
	log    captured
	loop   *Loop
	began  time.Time
	rounds []time.Duration
	takes  time.Duration
	err    atomic.Value // outcome
}

// outcome is what a round returns.
type outcome struct{ err error }

// answers makes the rounds from now on return err.
func (r *loopRig) answers(err error) { r.err.Store(outcome{err}) }

func (r *loopRig) options(random float64) LoopOptions {
	return LoopOptions{Log: r.log.logger(), Now: time.Now, Random: func() float64 { return random }}
}

func (r *loopRig) run(ctx context.Context, now time.Time) error {
	r.rounds = append(r.rounds, now.Sub(r.began))
	if r.takes > 0 {
		_ = pause(ctx, r.takes)
	}
	o, _ := r.err.Load().(outcome)
	return o.err
}

// during runs the loop until do returns.
func (r *loopRig) during(t *testing.T, random float64, do func()) {
	r.began = time.Now()
	r.loop = NewLoop(Job{Name: "topics", Every: 10 * time.Second, Run: r.run}, r.options(random))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.loop.Run(ctx); close(done) }()
	synctest.Wait()
	do()
	cancel()
	<-done
}

// after lets time pass in the bubble.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLoopRunsAtOnceAndThenByInterval(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 9 * time.Second, 0.5: 10 * time.Second, 0.999999: 10999999 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			r := &loopRig{}
			r.during(t, random, func() { after(15 * time.Second) })
			if len(r.rounds) != 2 || r.rounds[0] != 0 || (r.rounds[1]-want).Abs() > time.Millisecond {
				t.Errorf("random %v: rounds at %v, want at once and after %s", random, r.rounds, want)
			}
		})
	}
}

func TestKickRunsNowAndIsNotLostDuringARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &loopRig{takes: time.Second}
		r.during(t, 0.5, func() {
			after(500 * time.Millisecond)
			r.loop.Kick()
			r.loop.Kick()
			after(1700 * time.Millisecond)
			if len(r.rounds) != 2 || r.rounds[1] != time.Second {
				t.Errorf("rounds at %v, want one more right after the first", r.rounds)
			}
		})
	})
}

func TestIntervalBeginsWhenTheRoundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &loopRig{takes: 30 * time.Second}
		r.during(t, 0.5, func() { after(45 * time.Second) })
		if len(r.rounds) != 2 || r.rounds[1] != 40*time.Second {
			t.Errorf("rounds at %v", r.rounds)
		}
	})
}

func TestLoopTellsHowItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &loopRig{}
		r.answers(errors.New("no answer"))
		r.during(t, 0.5, func() {
			s := r.loop.Status()
			if s.Name != "topics" || s.Every != 10*time.Second || s.Err != "no answer" || !s.LastRun.Equal(r.began) || !s.NextRun.Equal(r.began.Add(10*time.Second)) {
				t.Errorf("status %+v", s)
			}
		})
	})
}

func TestTroubleIsSaidOnceThenNowAndThenThenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &loopRig{}
		r.answers(errors.New("no answer"))
		r.during(t, 0.5, func() {
			after(9 * time.Minute)
			if n := r.log.matching("not done"); n != 1 {
				t.Errorf("%d lines in nine minutes, want 1:\n%s", n, r.log.text())
			}
			after(2 * time.Minute)
			if n := r.log.matching("still not done", "no answer"); n != 1 {
				t.Errorf("%d reminders in eleven minutes, want 1:\n%s", n, r.log.text())
			}
			r.answers(errors.New("another answer"))
			after(time.Minute)
			if n := r.log.matching("another answer"); n != 1 {
				t.Errorf("the change said %d times:\n%s", n, r.log.text())
			}
			r.answers(nil)
			after(time.Minute)
			if n := r.log.matching("recovered", "job=topics"); n != 1 {
				t.Errorf("recovery said %d times:\n%s", n, r.log.text())
			}
		})
	})
}

func TestStoppedLoopSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &loopRig{takes: time.Minute}
		r.answers(errors.New("stopped"))
		r.during(t, 0.5, func() {})
		if r.log.text() != "" {
			t.Errorf("said %s", r.log.text())
		}
	})
}

func TestForgottenConditionsEndSilently(t *testing.T) {
	var log captured
	c := NewConditions(log.logger())
	c.Report(start, "a", errors.New("x"), slog.String("topic", "a"))
	c.Forget(func(string) bool { return false })
	c.Report(start, "a", nil)
	if n := log.matching("recovered"); n != 0 {
		t.Errorf("said %s", log.text())
	}
}

func TestBudgetSpreadsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(4, time.Now)
		began := time.Now()
		var waits []time.Duration
		for range 6 {
			must(t, b.Take(t.Context()))
			waits = append(waits, time.Since(began))
		}
		if waits[3] != 0 || waits[4] != 250*time.Millisecond || waits[5] != 500*time.Millisecond {
			t.Errorf("let through at %v", waits)
		}
		time.Sleep(time.Hour)
		began = time.Now()
		for range 4 {
			must(t, b.Take(t.Context()))
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("a rested budget of 4 made wait %s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := b.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}
