package flow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/replicate"
	"heliograph/internal/syncer"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 15 * time.Second
	// drainWithin bounds the draining of lanes at a stop and at a hand-over.
	drainWithin = 15 * time.Second
	// internalTopicsEvery is how often deleted bookkeeping topics are made again.
	internalTopicsEvery = 30 * time.Second
)

// Flow is one flow of one process. New makes it, Run runs it once until its
// context ends, Status tells how it is at any time.
type Flow struct {
	spec Spec
	deps Deps

	brake                      *replicate.Brake // this flow's own cap
	source, target             side
	onTarget, onSource         *syncer.InternalTopics
	sourceBudget, targetBudget *syncer.Budget

	mu struct {
		sync.Mutex
		state  State
		reason string
		since  time.Time
		parts  parts
		update *Spec // the last change, if any
	}
}

// parts are what a running flow is made of; zero before it runs.
type parts struct {
	lease      *cluster.Lease
	ledger     *ledger
	task       *replicate.Task
	keeper     *coord.Keeper
	topics     *syncer.TopicSync
	configs    *syncer.ConfigSync
	acls       *syncer.ACLSync
	groups     *syncer.GroupSync
	syncs      *syncer.SyncWriter
	heartbeats *syncer.Heartbeats
	progress   *syncer.Progress // nil where it is off
	emit       *syncer.Loop     // the checkpoints job; nil where it is off
	commit     *syncer.Loop     // the group offsets job; nil where it is off
	loops      []*syncer.Loop
	background []func(ctx context.Context)
	groupErr   error // why the lane group does not work at the moment
}

// New makes a flow. Nothing is contacted before Run.
func New(spec Spec, deps Deps) *Flow {
	f := &Flow{spec: spec.withDefaults(), deps: deps, source: side{deps.Source}, target: side{deps.Target}}
	f.brake = replicate.NewBrake(spec.BytesPerSecond)
	f.sourceBudget = syncer.NewBudget(f.spec.Topics.AdminRequestsPerSecond, time.Now)
	f.targetBudget = syncer.NewBudget(f.spec.Topics.AdminRequestsPerSecond, time.Now)
	f.onTarget = syncer.NewInternalTopics(spec.ID.Target, f.target, spec.booksOn(spec.ID.Target), f.targetBudget, deps.Log)
	f.onSource = syncer.NewInternalTopics(spec.ID.Source, f.source, spec.booksOn(spec.ID.Source), f.sourceBudget, deps.Log)
	f.mu.state, f.mu.since = Starting, time.Now()
	return f
}

// withDefaults fills in what a silent file leaves to the data plane.
func (s Spec) withDefaults() Spec {
	d := &s.Data
	setDefault(&d.FetchMaxBytes, 50<<20)
	setDefault(&d.PartitionMaxBytes, 1<<20)
	setDefault(&d.FetchMaxWait, 500*time.Millisecond)
	setDefault(&d.MaxRequestBytes, 1<<20)
	setDefault(&d.RequestTimeout, 30*time.Second)
	setDefault(&s.Positions.CommitEvery, 5*time.Second)
	setDefault(&s.Topics.AdminRequestsPerSecond, 20)
	return s
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Run replicates until ctx ends, then drains and writes its last positions. It
// returns nil after a clean stop. An error means that the flow cannot run as it
// is: the two clusters are one, or another deployment owns it.
func (f *Flow) Run(ctx context.Context) error {
	source, target, err := f.connect(ctx)
	if err != nil {
		return f.ended(ctx, err)
	}
	if source.ClusterID != "" && source.ClusterID == target.ClusterID {
		return f.ended(ctx, &kafka.Error{
			Op: "start flow", Subject: f.spec.ID.String(), Class: kafka.ClassOperator,
			Err:  fmt.Errorf("clusters %s and %s are the same cluster %s", f.spec.ID.Source, f.spec.ID.Target, source.ClusterID),
			Hint: fmt.Sprintf("correct %s.bootstrap.servers or %s.bootstrap.servers", f.spec.ID.Source, f.spec.ID.Target),
		})
	}
	var warm sync.WaitGroup
	defer warm.Wait()
	if f.spec.Enabled {
		// Whatever comes of it shows when the first lane is taken over.
		warm.Go(func() { _ = f.target.FindTransactionCoordinator(ctx, f.spec.Positions.GroupID) })
	}
	if err := f.prepare(ctx); err != nil {
		return f.ended(ctx, err)
	}
	if f.spec.Enabled {
		err = f.replicate(ctx, source, target)
	} else {
		f.heartbeatsOnly(ctx)
	}
	return f.ended(ctx, err)
}

func (f *Flow) ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		f.setState(Stopped, "")
		return nil
	}
	f.setState(Failed, err.Error())
	return err
}

// connect waits until both clusters have answered.
func (f *Flow) connect(ctx context.Context) (source, target kafka.Features, err error) {
	var sourceErr, targetErr error
	var wg sync.WaitGroup
	wg.Go(func() { source, sourceErr = f.reach(ctx, "source", f.source) })
	wg.Go(func() { target, targetErr = f.reach(ctx, "target", f.target) })
	wg.Wait()
	return source, target, errors.Join(sourceErr, targetErr)
}

// reach asks one cluster until it answers. A refused login is asked again more
// and more rarely, up to once a minute, because accounts get locked.
func (f *Flow) reach(ctx context.Context, role string, c side) (kafka.Features, error) {
	said := false
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		features, err := c.Features(ctx)
		if err == nil {
			if said {
				f.deps.Log.Info("cluster answers", "cluster", c.Alias(), "role", role)
			}
			return features, nil
		}
		if ctx.Err() != nil {
			return features, context.Cause(ctx)
		}
		if !said {
			said = true
			f.deps.Log.Warn("cluster does not answer, waiting for it", "cluster", c.Alias(), "role", role, "err", err)
		}
		f.setState(Waiting, fmt.Sprintf("%s cluster %s: %v", role, c.Alias(), err))
		if kafka.ClassOf(err) == kafka.ClassOperator {
			pause = max(pause, lastRetry)
		}
		if !sleep(ctx, pause) {
			return features, context.Cause(ctx)
		}
	}
}

// prepare makes the bookkeeping topics before anything needs them.
func (f *Flow) prepare(ctx context.Context) error {
	said := false
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := f.internalTopics(ctx, time.Now())
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !said {
			said = true
			f.deps.Log.Error("internal topics are not ready", "err", err)
		}
		f.setState(Waiting, "internal topics: "+err.Error())
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// internalTopics makes the bookkeeping topics of both clusters that are missing.
func (f *Flow) internalTopics(ctx context.Context, now time.Time) error {
	return errors.Join(f.onTarget.RunOnce(ctx, now), f.onSource.RunOnce(ctx, now))
}

// heartbeatsOnly serves a pair whose data is not replicated.
func (f *Flow) heartbeatsOnly(ctx context.Context) {
	var p parts
	f.addHeartbeats(&p, func(context.Context) bool { return true })
	f.addInternalTopics(&p)
	f.setParts(p)
	f.setState(Running, "")
	f.runLoops(ctx, p.loops)
}

// setState notes where the flow stands.
func (f *Flow) setState(s State, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.state != s {
		f.mu.since = time.Now()
	}
	f.mu.state, f.mu.reason = s, reason
}

// setParts makes the parts known, to whom a change may be handed from now on.
func (f *Flow) setParts(p parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.parts = p
	if f.mu.update != nil {
		p.take(*f.mu.update)
	}
}

// runLoops runs jobs until ctx ends and waits for them.
func (f *Flow) runLoops(ctx context.Context, loops []*syncer.Loop) {
	var wg sync.WaitGroup
	for _, l := range loops {
		wg.Go(func() { l.Run(ctx) })
	}
	wg.Wait()
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
