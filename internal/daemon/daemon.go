package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
}

// Daemon runs the flows of one deployment. New makes it, Run runs it once.
type Daemon struct {
	opts    Options
	log     *slog.Logger
	budget  *replicate.Budget
	slots   []*slot
	clients []*cluster.Client
	admin   *telemetry.Admin // nil without Listen

	mu struct {
		sync.Mutex
		stopped bool
	}
}

// New makes clients and flows. Nothing is contacted, but key stores are read, so
// that a wrong path or password is an error here. The deployment must have no errors.
func New(dep *config.Deployment, o Options) (*Daemon, error) {
	flows := dep.Targeting(o.Targets...)
	if len(flows) == 0 {
		return nil, noFlows(dep, o.Targets)
	}
	d := &Daemon{opts: o, log: o.Log, budget: replicate.NewBudget(dep.Process.MemoryBytes)}
	brakes := newBrakes(dep)
	for i := range flows {
		f := &flows[i]
		deps, err := d.deps(f, brakes)
		if err != nil {
			d.closeClients()
			return nil, fmt.Errorf("flow %s: %w", f.ID, err)
		}
		spec := specOf(f)
		d.slots = append(d.slots, &slot{
			id: f.ID, target: deps.Target, log: deps.Log,
			fresh: func() runner { return flow.New(spec, deps) },
		})
	}
	return d, nil
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

func (d *Daemon) deps(f *config.Flow, brakes brakes) (flow.Deps, error) {
	log := d.log.With(telemetry.KeyFlow, f.ID.String())
	deps := flow.Deps{Budget: d.budget, Brakes: brakes.of(f.ID), Log: log, Host: d.opts.Host}
	source, target := Sides(f)
	for _, s := range []struct {
		side Side
		to   **cluster.Client
	}{{source, &deps.Source}, {target, &deps.Target}} {
		c, err := OpenSide(f.ID, s.side, d.budget, log)
		if err != nil {
			return deps, err
		}
		d.clients = append(d.clients, c)
		*s.to = c
	}
	for _, what := range OtherLogins(f) {
		log.Warn("the file asks for something that is not done", telemetry.KeyReason, what)
	}
	return deps, nil
}

// AwaitTargets returns when every target has answered, or an error for the first
// that has not within the time. MirrorMaker does not start without its targets;
// heliograph's own verb never asks.
func (d *Daemon) AwaitTargets(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	for _, s := range d.slots {
		if err := reach(ctx, s.target, s.log); err != nil {
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
	registry := telemetry.NewRegistry(b)
	registry.MustRegister(d.Collector())
	admin, err := telemetry.ListenAdmin(ctx, telemetry.AdminOptions{
		Address: address, Gatherer: registry, Health: d.Health, PProf: pprof, Log: d.log,
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
	ended := make(chan error, len(d.slots))
	for _, s := range d.slots {
		go func() {
			err := s.run(ctx, d.opts.FirstErrorStops)
			if err != nil && d.opts.FirstErrorStops {
				cancel(err)
			}
			ended <- err
		}()
	}
	err := d.wait(ctx, ended)
	d.mu.Lock()
	d.mu.stopped = true
	d.mu.Unlock()
	if !errors.Is(err, ErrStopBound) {
		d.closeClients()
	}
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

// wait collects the flows' ends; from ctx's end on the bound runs.
func (d *Daemon) wait(ctx context.Context, ended <-chan error) error {
	stopping := ctx.Done()
	watch, stopWatch := d.watchTicks()
	defer stopWatch()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	narrator := newNarrator(d.log)
	var bound <-chan time.Time
	var errs []error
	for open := len(d.slots); open > 0; {
		select {
		case err := <-ended:
			open--
			errs = append(errs, err)
		case <-stopping:
			stopping = nil
			d.log.Info("stopping: flows finish what they have read", telemetry.KeyReason, context.Cause(ctx))
			timer := time.NewTimer(d.opts.StopWithin)
			defer timer.Stop()
			bound = timer.C
		case <-look.C:
			narrator.look(d.Status())
		case now := <-watch:
			d.opts.Watch(now, d.Status())
		case <-bound:
			errs = append(errs, fmt.Errorf("%w of %s: %s", ErrStopBound, d.opts.StopWithin, strings.Join(d.unfinished(), ", ")))
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
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
	var names []string
	for _, s := range d.slots {
		if !s.finished() {
			names = append(names, s.id.String())
		}
	}
	return names
}

func (d *Daemon) closeClients() {
	for _, c := range d.clients {
		c.Close()
	}
}

// Flows are the ids of the flows this daemon runs, in the file's order.
func (d *Daemon) Flows() []mirror.FlowID {
	ids := make([]mirror.FlowID, len(d.slots))
	for i, s := range d.slots {
		ids[i] = s.id
	}
	return ids
}

// Status tells how every flow is, in the file's order.
func (d *Daemon) Status() []flow.Status {
	all := make([]flow.Status, len(d.slots))
	for i, s := range d.slots {
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
		ready := s.State == flow.Running || s.State == flow.Degraded
		h.Ready = h.Ready && ready
		h.Parts = append(h.Parts, telemetry.PartState{
			Name: s.ID.String(), State: string(s.State), Ready: ready, Reason: s.Reason,
		})
	}
	return h
}
