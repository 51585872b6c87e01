package syncer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

// jitter is how far an interval strays either way, so that the jobs of many
// flows do not meet at one broker in the same second.
const jitter = 0.1

// Job is a periodic piece of work.
type Job struct {
	Name  string
	Every time.Duration
	// Run does one round. Its error concerns the round as a whole.
	Run func(ctx context.Context, now time.Time) error
}

// JobStatus is a job at one moment.
type JobStatus struct {
	Name    string
	Every   time.Duration
	LastRun time.Time // when the last round began; zero before the first
	NextRun time.Time // zero while a round runs
	Err     string    // why the last round was not done
}

// LoopOptions are what a loop needs besides its job.
type LoopOptions struct {
	Log *slog.Logger
	Now func() time.Time
	// Random returns a number in [0,1) that spreads the intervals.
	Random func() float64
}

// Loop runs a job: at once, then after each interval or when kicked. Rounds
// never overlap; an interval begins when a round ends.
type Loop struct {
	job        Job
	o          LoopOptions
	kick       chan struct{}
	conditions *Conditions
	mu         struct {
		sync.Mutex
		status JobStatus
	}
}

// NewLoop makes a loop; Run runs it.
func NewLoop(job Job, o LoopOptions) *Loop {
	l := &Loop{job: job, o: o, kick: make(chan struct{}, 1), conditions: NewConditions(o.Log)}
	l.mu.status = JobStatus{Name: job.Name, Every: job.Every}
	return l
}

// Run runs the job until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		l.round(ctx)
		timer := time.NewTimer(l.schedule())
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.kick:
		}
		timer.Stop()
	}
}

// Kick asks for a round now. A kick during a round leads to one more.
func (l *Loop) Kick() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// Status tells how the job is.
func (l *Loop) Status() JobStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.status
}

func (l *Loop) round(ctx context.Context) {
	now := l.o.Now()
	l.mu.Lock()
	l.mu.status.LastRun, l.mu.status.NextRun = now, time.Time{}
	l.mu.Unlock()
	err := l.job.Run(ctx, now)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.mu.status.Err = errorText(err)
	l.mu.Unlock()
	l.conditions.Report(l.o.Now(), l.job.Name, err, slog.String("job", l.job.Name))
}

func (l *Loop) schedule() time.Duration {
	d := time.Duration(float64(l.job.Every) * (1 - jitter + 2*jitter*l.o.Random()))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.status.NextRun = l.o.Now().Add(d)
	return d
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// remindAfter is when a trouble that lasts is named again.
const remindAfter = 10 * time.Minute

// Conditions says each trouble once: when it begins or changes, as a reminder
// while it lasts, and when it is over.
type Conditions struct {
	log *slog.Logger
	mu  struct {
		sync.Mutex
		open map[string]condition
	}
}

type condition struct {
	text  string
	said  time.Time
	since time.Time
	times int
}

// NewConditions makes an empty set.
func NewConditions(log *slog.Logger) *Conditions {
	c := &Conditions{log: log}
	c.mu.open = map[string]condition{}
	return c
}

// Report notes how a subject is: err is its trouble, nil means that all is well.
func (c *Conditions) Report(now time.Time, subject string, err error, attrs ...slog.Attr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open, was := c.mu.open[subject]
	switch {
	case err == nil && was:
		delete(c.mu.open, subject)
		c.log.LogAttrs(context.Background(), slog.LevelInfo, "recovered",
			append(attrs, slog.Duration(telemetry.KeyWait, now.Sub(open.since)), slog.Int(telemetry.KeyCount, open.times))...)
	case err == nil:
	case !was || open.text != err.Error():
		since := now
		if was {
			since = open.since
		}
		c.mu.open[subject] = condition{text: err.Error(), said: now, since: since, times: open.times + 1}
		c.log.LogAttrs(context.Background(), slog.LevelWarn, "not done", append(attrs, slog.Any(telemetry.KeyError, err))...)
	default:
		open.times++
		if now.Sub(open.said) >= remindAfter {
			open.said = now
			c.log.LogAttrs(context.Background(), slog.LevelWarn, "still not done",
				append(attrs, slog.Any(telemetry.KeyError, err), slog.Int(telemetry.KeyCount, open.times))...)
		}
		c.mu.open[subject] = open
	}
}

// Forget drops subjects that no longer exist, without a line.
func (c *Conditions) Forget(keep func(subject string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.mu.open {
		if !keep(s) {
			delete(c.mu.open, s)
		}
	}
}

// everyBatch calls do for consecutive parts of items, at most size each.
func everyBatch[T any](items []T, size int, do func([]T) error) error {
	for len(items) > 0 {
		n := min(size, len(items))
		if err := do(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// located names what was tried on which cluster, unless the error does so itself.
func located(op string, cluster mirror.ClusterAlias, err error) error {
	var e *kafka.Error
	if err == nil || errors.As(err, &e) && e.Cluster != "" {
		return err
	}
	return &kafka.Error{Op: op, Cluster: string(cluster), Err: err}
}
