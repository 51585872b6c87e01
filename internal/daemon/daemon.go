package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
	"heliograph/internal/telemetry"
)

// ErrStopBound is in Run's error when flows had not drained within the bound.
var ErrStopBound = errors.New("not everything was settled within the bound of the stop")

// Options says how a deployment is run.
type Options struct {
	// Targets limits the flows to those into these clusters; none means all.
	Targets []mirror.ClusterAlias
	// Host tells instances of the same deployment apart; stable over restarts.
	Host string
	Log  *slog.Logger
	// StopWithin bounds the time from the context's end to Run's return.
	StopWithin time.Duration
	// FirstErrorStops ends the whole process with the first flow that breaks, as
	// MirrorMaker does. Otherwise a flow that broke is started again.
	FirstErrorStops bool
	// Watch, if set, is told every flow's status every WatchEvery while Run runs.
	// It must not block.
	Watch      func(now time.Time, flows []flow.Status)
	WatchEvery time.Duration
	// Refused, if set, remembers which held changes of settings a person has refused.
	Refused func(id mirror.FlowID, topic, setting, wish string) bool
}

// Daemon runs flows. New and NewEmpty make one, Run runs it once, and Apply changes at
// any time what it runs.
type Daemon struct {
	opts   Options
	log    *slog.Logger
	budget *replicate.Budget
	brakes *brakes
	runner func(*slot) runner // makes a flow; another one in tests
	admin  *telemetry.Admin   // nil without Listen

	applying sync.Mutex // held for one Apply
	mu       struct {
		sync.Mutex
		slots   []*slot // in the order of the file, or of Apply
		byID    map[mirror.FlowID]*slot
		launch  func(*slot) // starts a slot; nil while the daemon does not run
		live    map[*slot]bool
		errs    []error
		stopped bool
	}
}

// New makes clients and flows. Nothing is contacted, but key stores are read, so
// that a wrong path or password is an error here. The deployment must have no errors.
func New(dep *config.Deployment, o Options) (*Daemon, error) {
	wanted := WantedOf(dep, o.Targets...)
	if len(wanted) == 0 {
		return nil, noFlows(dep, o.Targets)
	}
	d := NewEmpty(dep.Process, o)
	for i := range wanted {
		s := d.newSlot(wanted[i], nil)
		if err := s.open(); err != nil {
			d.closeClients()
			return nil, fmt.Errorf("flow %s: %w", s.id, err)
		}
		d.add(s)
		for _, what := range OtherLogins(wanted[i].Flow) {
			s.log.Warn("the file asks for something that is not done", telemetry.KeyReason, what)
		}
	}
	return d, nil
}

// NewEmpty makes a daemon without flows, for Apply to fill.
func NewEmpty(p config.Process, o Options) *Daemon {
	return &Daemon{
		opts: o, log: o.Log, budget: replicate.NewBudget(p.MemoryBytes), brakes: newBrakes(p.BytesPerSecond),
		runner: func(s *slot) runner { return flow.New(specOf(s.want().Flow), s.deps) },
	}
}

func (d *Daemon) add(s *slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.byID == nil {
		d.mu.byID = map[mirror.FlowID]*slot{}
	}
	d.mu.slots, d.mu.byID[s.id] = append(d.mu.slots, s), s
}

// slots are those of the flows that are there now.
func (d *Daemon) slots() []*slot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mu.slots)
}

func noFlows(dep *config.Deployment, targets []mirror.ClusterAlias) error {
	if len(targets) == 0 {
		return errors.New("no source->target replication flows in the file")
	}
	var have []string
	for i := range dep.Flows {
		have = append(have, dep.Flows[i].ID.String())
	}
	return fmt.Errorf("no source->target replication flows into %s: the file has %s", joinAliases(targets), strings.Join(have, ", "))
}

func joinAliases(aliases []mirror.ClusterAlias) string {
	words := make([]string, len(aliases))
	for i, a := range aliases {
		words[i] = string(a)
	}
	return strings.Join(words, ", ")
}

// AwaitTargets returns when every target has answered, or an error for the first
// that has not within the time. MirrorMaker does not start without its targets;
// heliograph's own verb never asks.
func (d *Daemon) AwaitTargets(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	for _, s := range d.slots() {
		if err := reach(ctx, s.deps.Target, s.log); err != nil {
			return fmt.Errorf("target cluster %s cannot be reached: %w", s.id.Target, err)
		}
	}
	return nil
}

// reach asks until the cluster answers. A refusal that only a person can mend is not asked again.
func reach(ctx context.Context, c *cluster.Client, log *slog.Logger) error {
	for said := false; ; said = true {
		_, err := c.Features(ctx)
		if err == nil {
			return nil
		}
		if kafka.ClassOf(err) == kafka.ClassOperator {
			return err
		}
		if !said {
			log.Warn("target does not answer, waiting for it", telemetry.KeyCluster, c.Alias(), telemetry.KeyError, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(time.Second):
		}
	}
}

// Listen opens the HTTP server of health and metrics, which serves while Run
// runs and until its last moment. It returns the address.
func (d *Daemon) Listen(ctx context.Context, address string, pprof bool, b telemetry.Build) (string, error) {
	admin, err := telemetry.ListenAdmin(ctx, telemetry.AdminOptions{
		Address: address, Gatherer: telemetry.NewRegistry(b), Series: d.Series(), Health: d.Health, PProf: pprof, Log: d.log,
	})
	if err != nil {
		return "", err
	}
	d.admin = admin
	return admin.Address(), nil
}

// Close gives back what New and Listen took. Only a daemon that was not run needs it.
func (d *Daemon) Close() {
	d.closeClients()
	if d.admin != nil {
		_ = d.admin.Close() // it served nothing
	}
}

// Run starts all flows and blocks until ctx ends and they have drained, or until
// the bound is over. It returns nil after a clean stop.
func (d *Daemon) Run(ctx context.Context) error {
	stopAdmin := d.serveAdmin(ctx)
	defer stopAdmin()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	launch := func(s *slot) {
		own, stop := context.WithCancel(ctx)
		s.cancel = stop
		d.mu.live[s] = true
		wg.Go(func() {
			defer stop()
			err := s.run(own, d.opts.FirstErrorStops)
			s.closeClients()
			close(s.done)
			d.mu.Lock()
			delete(d.mu.live, s)
			if own.Err() != nil && ctx.Err() == nil {
				err = nil // it made room for a change; who comes next finds the place
			}
			d.mu.errs = append(d.mu.errs, err)
			d.mu.Unlock()
			if err != nil && d.opts.FirstErrorStops {
				cancel(err)
			}
		})
	}
	d.mu.Lock()
	d.mu.launch, d.mu.live = launch, map[*slot]bool{}
	for _, s := range d.mu.slots {
		if !s.paused {
			launch(s)
		}
	}
	d.mu.Unlock()
	err := d.wait(ctx, wg.Wait)
	d.mu.Lock()
	d.mu.stopped = true
	d.mu.Unlock()
	return err
}

// serveAdmin serves until the returned function is called, which waits.
func (d *Daemon) serveAdmin(ctx context.Context) (stop func()) {
	if d.admin == nil {
		return func() {}
	}
	// The flows' end must still be visible: this server outlives ctx.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.admin.Run(ctx); err != nil {
			d.log.Error("admin server ended", telemetry.KeyError, err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// wait returns when ctx has ended and then all flows have; from ctx's end on the bound runs.
func (d *Daemon) wait(ctx context.Context, allEnded func()) error {
	stopping := ctx.Done()
	watch, stopWatch := d.watchTicks()
	defer stopWatch()
	look := time.NewTimer(lookEvery)
	defer look.Stop()
	narrator := newNarrator(d.log)
	var bound <-chan time.Time
	ended := make(chan struct{})
	for {
		select {
		case <-ended:
			return errors.Join(d.errors()...)
		case <-stopping:
			stopping = nil
			look.Stop() // how flows stand is no news any more; who hangs is told at the bound
			d.mu.Lock()
			d.mu.launch = nil // what is applied from now on is not started
			d.mu.Unlock()
			go func() {
				allEnded()
				close(ended)
			}()
			d.log.Info("stopping: flows finish what they have read", telemetry.KeyReason, context.Cause(ctx))
			timer := time.NewTimer(d.opts.StopWithin)
			defer timer.Stop()
			bound = timer.C
		case <-look.C:
			began := time.Now()
			narrator.look(d.Status())
			look.Reset(max(lookEvery, lookPart*time.Since(began)))
		case now := <-watch:
			d.opts.Watch(now, d.Status())
		case <-bound:
			err := fmt.Errorf("%w of %s: %s", ErrStopBound, d.opts.StopWithin, strings.Join(d.unfinished(), ", "))
			return errors.Join(append(d.errors(), err)...)
		}
	}
}

// errors are why flows ended that were not asked to.
func (d *Daemon) errors() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mu.errs)
}

// watchTicks is a channel that never delivers where nobody watches.
func (d *Daemon) watchTicks() (ticks <-chan time.Time, stop func()) {
	if d.opts.Watch == nil {
		return nil, func() {}
	}
	t := time.NewTicker(d.opts.WatchEvery)
	return t.C, t.Stop
}

func (d *Daemon) unfinished() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for s := range d.mu.live {
		names = append(names, s.id.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// closeClients is for a daemon that was never run; otherwise every slot closes its own.
func (d *Daemon) closeClients() {
	for _, s := range d.slots() {
		s.closeClients()
	}
}

// clients are those of the flows that are there now.
func (d *Daemon) clients() []*cluster.Client {
	var all []*cluster.Client
	for _, s := range d.slots() {
		all = append(all, s.openClients()...)
	}
	return all
}

// Flows are the ids of the flows this daemon runs, in the file's order.
func (d *Daemon) Flows() []mirror.FlowID {
	all := d.slots()
	ids := make([]mirror.FlowID, len(all))
	for i, s := range all {
		ids[i] = s.id
	}
	return ids
}

// Status tells how every flow is, in the file's order.
func (d *Daemon) Status() []flow.Status {
	slots := d.slots()
	all := make([]flow.Status, len(slots))
	for i, s := range slots {
		all[i] = s.status()
	}
	return all
}

// Health is the daemon's answer to an orchestrator: alive until it has stopped,
// ready while every flow runs.
func (d *Daemon) Health() telemetry.Health {
	d.mu.Lock()
	h := telemetry.Health{Alive: !d.mu.stopped, Ready: !d.mu.stopped}
	d.mu.Unlock()
	for _, s := range d.Status() {
		ready := s.State == flow.Running || s.State == flow.Degraded || s.State == flow.Paused
		h.Ready = h.Ready && ready
		h.Parts = append(h.Parts, telemetry.PartState{
			Name: s.ID.String(), State: string(s.State), Ready: ready, Reason: s.Reason,
		})
	}
	return h
}
