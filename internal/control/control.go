package control

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
	"heliograph/internal/store"
)

// Engine runs what control wants. [daemon.Daemon] is it.
type Engine interface {
	// Apply makes exactly these flows be there, each as it is wanted. It starts and
	// stops what changed and returns without waiting for clusters.
	Apply(wanted []daemon.Wanted) error
	// Effect tells what Apply would do to a flow that runs.
	Effect(old, wanted *daemon.Wanted) daemon.Effect
	Restart(id mirror.FlowID) error
	StatusOf(id mirror.FlowID) (flow.Status, bool)
}

// Options make a Control.
type Options struct {
	Store  store.Store // nil: [store.Memory]
	Engine Engine      // nil: nothing runs; for tests and for checking
	Policy Policy
	// Files are what the server's own files say, read-only here.
	Files map[string]*config.Deployment
	// Outside reads what the policy allows API values to reach.
	Outside config.Source
	Log     *slog.Logger
}

// Control is the control plane of one server.
type Control struct {
	opts   Options
	log    *slog.Logger
	store  store.Store
	events events

	reached outsideFiles
	writing sync.Mutex // held for a commit
	state   atomic.Pointer[state]
	policy  atomic.Pointer[Policy]
}

// New reads the store and hands what is in it to the engine.
func New(ctx context.Context, o Options) (*Control, error) {
	c := &Control{opts: o, log: o.Log, store: o.Store}
	if c.store == nil {
		c.store = &store.Memory{}
	}
	c.events.first = uint64(time.Now().UnixMicro())
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.policy.Store(&o.Policy)
	s, err := c.read(ctx, o.Files)
	if err != nil {
		return nil, err
	}
	c.state.Store(s)
	c.apply(s)
	return c, nil
}

// Run follows the commits of other instances until ctx ends.
func (c *Control) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.store.Changed():
			c.writing.Lock()
			if _, err := c.refresh(ctx); err != nil {
				c.log.Error("the store cannot be read", "err", err)
			}
			c.writing.Unlock()
		}
	}
}

// refresh takes over what the store holds, and says whether that is new. The caller holds writing.
func (c *Control) refresh(ctx context.Context) (news bool, err error) {
	old := c.state.Load()
	st, err := c.store.Read(ctx)
	if err != nil || Revision(st.Revision) == old.revision {
		return false, err
	}
	s, err := c.decode(st, old.files)
	if err != nil {
		return false, err
	}
	c.state.Store(s)
	c.events.publish(Event{Kind: "store.changed", Resource: "store", Message: "another instance changed the store", Revision: s.revision})
	c.apply(s)
	return true, nil
}

// catchUp takes over what other instances were told, and says whether there was anything.
func (c *Control) catchUp(ctx context.Context) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	news, err := c.refresh(ctx)
	return news && err == nil
}

func (c *Control) apply(s *state) {
	if c.opts.Engine == nil {
		return
	}
	if err := c.opts.Engine.Apply(s.wanted(c.policy.Load())); err != nil {
		c.log.Error("not every change could be applied", "err", err)
		c.events.publish(Event{Kind: "apply.failed", Resource: "server", Message: err.Error(), Revision: s.revision})
	}
}

// Configure takes over what the server's own configuration says now: policy, defaults and
// files. If they cannot be taken over together, everything stays as it was.
func (c *Control) Configure(ctx context.Context, p Policy, files map[string]*config.Deployment) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	old := c.policy.Load()
	c.policy.Store(&p) // read resolves by it
	s, err := c.read(ctx, files)
	if err != nil {
		c.policy.Store(old)
		return err
	}
	c.state.Store(s)
	c.apply(s)
	return nil
}

// Revision is that of the last commit.
func (c *Control) Revision() Revision { return c.state.Load().revision }

// Clusters are those the actor may see, by alias.
func (c *Control) Clusters(ctx context.Context) []Cluster {
	a, p, s := ActorOf(ctx), c.policy.Load(), c.state.Load()
	var out []Cluster
	for _, alias := range slices.Sorted(maps.Keys(s.clusters)) {
		if h := s.clusters[alias]; p.seesCluster(a, h) {
			out = append(out, h.clone())
		}
	}
	return out
}

// Cluster is one cluster.
func (c *Control) Cluster(ctx context.Context, alias string) (Cluster, error) {
	h, ok := c.state.Load().clusters[alias]
	if !ok || !c.policy.Load().seesCluster(ActorOf(ctx), h) {
		return Cluster{}, errorf(NotFound, "there is no cluster %s", alias)
	}
	return h.clone(), nil
}

// Flows are those the actor may see, by source and target.
func (c *Control) Flows(ctx context.Context) []Flow {
	a, s := ActorOf(ctx), c.state.Load()
	var out []Flow
	for _, id := range s.order {
		if h := s.flows[id]; a.Sees(h.Tenant) {
			out = append(out, h.clone())
		}
	}
	return out
}

// Flow is one flow.
func (c *Control) Flow(ctx context.Context, source, target string) (Flow, error) {
	h, err := c.flow(ctx, source, target)
	if err != nil {
		return Flow{}, err
	}
	return h.clone(), nil
}

func (c *Control) flow(ctx context.Context, source, target string) (*heldFlow, error) {
	id := Flow{Source: source, Target: target}.ID()
	h, ok := c.state.Load().flows[id]
	if !ok || !ActorOf(ctx).Sees(h.Tenant) {
		return nil, errorf(NotFound, "there is no flow %s", id)
	}
	return h, nil
}

// Resolved is what a flow's settings mean, with every default; its deployment holds the two
// clusters and the flow.
func (c *Control) Resolved(ctx context.Context, source, target string) (*config.Deployment, error) {
	h, err := c.flow(ctx, source, target)
	if err != nil {
		return nil, err
	}
	return h.deployment, nil
}

// Status tells how a flow is. It is false for a flow that does not run: one that is
// not enabled, or that the engine has not heard of yet.
func (c *Control) Status(ctx context.Context, source, target string) (flow.Status, bool) {
	h, err := c.flow(ctx, source, target)
	if err != nil || c.opts.Engine == nil {
		return flow.Status{}, false
	}
	return c.opts.Engine.StatusOf(h.ID())
}

// Document is one document.
func (c *Control) Document(ctx context.Context, kind, id string) (Document, error) {
	d, ok := c.state.Load().documents[docKey{kind, id}]
	if !ok || !ActorOf(ctx).Sees(d.Tenant) {
		return Document{}, errorf(NotFound, "there is no %s %s", kind, id)
	}
	return d, nil
}

// Documents are those of one kind that the actor may see, by id.
func (c *Control) Documents(ctx context.Context, kind string) []Document {
	a := ActorOf(ctx)
	var out []Document
	for key, d := range c.state.Load().documents {
		if key.kind == kind && a.Sees(d.Tenant) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Document) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// PutCluster makes or replaces a cluster, or with the same content leaves it as it is.
func (c *Control) PutCluster(ctx context.Context, cl Cluster, m Match) (Cluster, error) {
	if _, err := c.Commit(ctx, PutCluster{cl, m}); err != nil {
		return Cluster{}, err
	}
	return c.Cluster(ctx, cl.Alias)
}

// DeleteCluster forgets a cluster that no flow uses.
func (c *Control) DeleteCluster(ctx context.Context, alias string, m Match) error {
	_, err := c.Commit(ctx, DeleteCluster{alias, m})
	return err
}

// PutFlow makes or replaces a flow, or with the same content leaves it as it is.
func (c *Control) PutFlow(ctx context.Context, f Flow, m Match) (Flow, error) {
	if _, err := c.Commit(ctx, PutFlow{f, m}); err != nil {
		return Flow{}, err
	}
	return c.Flow(ctx, f.Source, f.Target)
}

// DeleteFlow stops a flow and forgets it.
func (c *Control) DeleteFlow(ctx context.Context, source, target string, m Match) error {
	_, err := c.Commit(ctx, DeleteFlow{source, target, m})
	return err
}

// PutDocument keeps a JSON value.
func (c *Control) PutDocument(ctx context.Context, kind, id string, v json.RawMessage, m Match) (Document, error) {
	if _, err := c.Commit(ctx, PutDocument{kind, id, v, m}); err != nil {
		return Document{}, err
	}
	return c.Document(ctx, kind, id)
}

// DeleteDocument forgets one.
func (c *Control) DeleteDocument(ctx context.Context, kind, id string, m Match) error {
	_, err := c.Commit(ctx, DeleteDocument{kind, id, m})
	return err
}

// Pause stops a flow until Resume, over restarts of the server too.
func (c *Control) Pause(ctx context.Context, source, target string) (Flow, error) {
	return c.setPaused(ctx, source, target, true)
}

// Resume starts a paused flow where it stopped.
func (c *Control) Resume(ctx context.Context, source, target string) (Flow, error) {
	return c.setPaused(ctx, source, target, false)
}

func (c *Control) setPaused(ctx context.Context, source, target string, paused bool) (Flow, error) {
	for {
		f, err := c.Flow(ctx, source, target)
		switch {
		case err != nil:
			return f, err
		case !ActorOf(ctx).May(ScopeWrite):
			return f, errorf(Forbidden, "the token may not change anything")
		case f.Paused == paused:
			return f, nil
		}
		f.Paused = paused
		changed, err := c.PutFlow(ctx, f, At(f.Revision))
		if KindOf(err) != Precondition {
			return changed, err
		}
	}
}

// Restart stops a flow and starts it again where it was.
func (c *Control) Restart(ctx context.Context, source, target string) error {
	h, err := c.flow(ctx, source, target)
	if err != nil {
		return err
	}
	a := ActorOf(ctx)
	switch {
	case !a.May(ScopeWrite):
		return errorf(Forbidden, "the token may only read")
	case h.Paused:
		return errorf(Conflict, "flow %s is paused: resume starts it", h.ID())
	case c.opts.Engine == nil:
		return errorf(Conflict, "flow %s does not run", h.ID())
	}
	if err := c.opts.Engine.Restart(h.ID()); err != nil {
		return &Error{Kind: Conflict, Message: "flow " + h.ID().String() + " could not be restarted", Cause: err}
	}
	c.events.publish(Event{Kind: "flow.restarted", Resource: "flow " + h.ID().String(), Actor: a.Name, tenant: h.Tenant, Revision: h.Revision})
	return nil
}

// TestConnection asks a cluster who it is, by the settings given, which need not be stored.
// The settings are checked as those of a commit are.
func (c *Control) TestConnection(ctx context.Context, cl Cluster) (daemon.ClusterSurvey, error) {
	h, err := c.checkedCluster(ctx, cl)
	if err != nil {
		return daemon.ClusterSurvey{}, err
	}
	return daemon.Ask(ctx, h.deployment.Clusters[mirror.ClusterAlias(cl.Alias)], c.log)
}

// Client opens a client of a cluster of the actor's own, for work on its topics, ACLs
// and users. The caller closes it.
func (c *Control) Client(ctx context.Context, alias string) (*cluster.Client, error) {
	h, ok := c.state.Load().clusters[alias]
	switch {
	case !ok || !c.policy.Load().seesCluster(ActorOf(ctx), h):
		return nil, errorf(NotFound, "there is no cluster %s", alias)
	case !ActorOf(ctx).Sees(h.Tenant): // it may be an end of the actor's flows, and no more
		return nil, errorf(Forbidden, "cluster %s belongs to the server", alias)
	}
	cl, err := daemon.OpenCluster(h.deployment.Clusters[mirror.ClusterAlias(alias)], c.log)
	if err != nil {
		return nil, &Error{Kind: Invalid, Message: "the cluster's settings cannot be used", Cause: err}
	}
	return cl, nil
}

// stored wraps an error of the store.
func stored(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Unavailable, Message: "the change could not be stored, and nothing was changed", Cause: err}
}
