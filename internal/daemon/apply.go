package daemon

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// errUnknownFlow is the error of a request about a flow that is not there.
var errUnknownFlow = errors.New("no such flow runs here")

// WantedOf are the flows of a deployment into the targets, or all of them.
func WantedOf(dep *config.Deployment, targets ...mirror.ClusterAlias) []Wanted {
	flows := dep.Targeting(targets...)
	out := make([]Wanted, len(flows))
	files := materials(dep)
	for i := range flows {
		id := flows[i].ID
		out[i] = Wanted{
			Flow: &flows[i], Source: dep.Clusters[id.Source], Target: dep.Clusters[id.Target], Material: files[id.Source] + files[id.Target],
		}
	}
	return out
}

// newSlot makes the place of a flow.
func (d *Daemon) newSlot(w Wanted, after <-chan struct{}) *slot {
	id := w.Flow.ID
	s := &slot{id: id, log: d.log.With(telemetry.KeyFlow, id.String()), paused: w.Paused, wanted: w, after: after, done: make(chan struct{})}
	s.dial = func() (flow.Deps, error) { return d.dial(s) }
	s.fresh = func() runner { return d.runner(s) }
	return s
}

// dial makes the clients of a flow. Nothing is contacted.
func (d *Daemon) dial(s *slot) (flow.Deps, error) {
	w := s.want()
	from, to := Sides(w.Flow)
	sides, err := openPair(s.id, from, to, d.budget, s.log)
	if err != nil {
		return flow.Deps{}, err
	}
	return flow.Deps{
		Source: sides.source, Target: sides.target,
		Budget: d.budget, Brakes: d.brakes.of(&w), Log: s.log, Host: d.opts.Host, Refused: d.refused(s.id),
	}, nil
}

// refused is the memory of one flow's refusals.
func (d *Daemon) refused(id mirror.FlowID) func(plan.HoldKey, string) bool {
	if d.opts.Refused == nil {
		return nil
	}
	return func(key plan.HoldKey, wish string) bool { return d.opts.Refused(id, key.Topic, key.Config, wish) }
}

// CheckSides reads the key stores of a flow's sides, so that one that cannot be read is
// known before anything is changed.
func CheckSides(f *config.Flow) error {
	source, target := Sides(f)
	for _, side := range []Side{source, target} {
		s, err := security(side.Client.Connection)
		if err == nil {
			err = s.Check()
		}
		if err != nil {
			return fmt.Errorf("cluster %s: %w", side.Alias, err)
		}
	}
	return nil
}

// Apply makes exactly these flows be there. What did not change is not touched; what a running
// flow can take while it runs is handed to it; the rest is stopped, started, or both. It waits
// for no cluster. Where a flow's clients cannot be made, the flow runs on as it was, and says
// so; the error names all of these.
func (d *Daemon) Apply(wanted []Wanted) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	var errs []error
	next := make([]*slot, 0, len(wanted))
	kept := make(map[*slot]bool, len(wanted))
	for i := range wanted {
		s, err := d.applyOne(&wanted[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("flow %s: %w", wanted[i].Flow.ID, err))
		}
		next = append(next, s)
		kept[s] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.mu.slots
	d.mu.slots, d.mu.byID = next, make(map[mirror.FlowID]*slot, len(next))
	for _, s := range next {
		d.mu.byID[s.id] = s
	}
	for _, s := range old {
		if !kept[s] {
			d.endLocked(s)
		}
	}
	for _, s := range next {
		if s.cancel == nil && !s.paused && d.mu.launch != nil {
			d.mu.launch(s)
		}
	}
	return errors.Join(errs...)
}

// endLocked stops a slot that nobody needs any more. One that never ran has ended when the one
// before it has.
func (d *Daemon) endLocked(s *slot) {
	if s.cancel != nil {
		s.cancel()
		return
	}
	s.closeClients()
	go func() {
		if s.after != nil {
			<-s.after
		}
		close(s.done)
	}()
}

// applyOne is the slot that a flow shall have: its own, or another one.
func (d *Daemon) applyOne(w *Wanted) (*slot, error) {
	d.mu.Lock()
	old := d.mu.byID[w.Flow.ID]
	d.mu.Unlock()
	if old == nil {
		s := d.newSlot(*w, nil)
		s.log.Info("flow is added")
		return s, nil
	}
	effect := d.Effect(&old.wanted, w)
	switch effect.Kind {
	case EffectNone:
		old.adopt(w)
		return old, nil
	case EffectLive:
		old.log.Info("flow takes over a change while it runs", telemetry.KeyReason, effect.Why)
		d.take(old, w)
		return old, nil
	case EffectStart, EffectStop, EffectRestart:
	}
	s := d.newSlot(*w, old.done)
	if !w.Paused {
		if err := s.open(); err != nil {
			old.refuse(err.Error())
			old.log.Error("a change of the flow cannot be applied, it runs on as before", telemetry.KeyError, err)
			return old, err
		}
	}
	old.log.Info("flow changes", "effect", string(effect.Kind), telemetry.KeyReason, effect.Why)
	return s, nil
}

// take hands a change to a slot without disturbing it.
func (d *Daemon) take(s *slot, w *Wanted) {
	s.adopt(w)
	d.brakes.of(w)
	s.update(specOf(w.Flow))
}

// Restart stops a flow and starts it again where it was, with clients made anew. Others run on.
func (d *Daemon) Restart(id mirror.FlowID) error {
	d.applying.Lock()
	defer d.applying.Unlock()
	d.mu.Lock()
	old := d.mu.byID[id]
	d.mu.Unlock()
	if old == nil || old.paused {
		return errUnknownFlow
	}
	s := d.newSlot(old.wanted, old.done)
	if err := s.open(); err != nil {
		return err
	}
	s.log.Info("flow is restarted")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.slots = slices.Clone(d.mu.slots)
	d.mu.slots[slices.Index(d.mu.slots, old)] = s
	d.mu.byID[id] = s
	d.endLocked(old)
	if d.mu.launch != nil {
		d.mu.launch(s)
	}
	return nil
}

// StatusOf tells how one flow is.
func (d *Daemon) StatusOf(id mirror.FlowID) (flow.Status, bool) {
	d.mu.Lock()
	s := d.mu.byID[id]
	d.mu.Unlock()
	if s == nil {
		return flow.Status{}, false
	}
	return s.status(), true
}

// Effect tells what Apply does to a flow; nil stands for none.
func (d *Daemon) Effect(old, wanted *Wanted) Effect {
	switch {
	case old == nil && wanted == nil:
		return Effect{Kind: EffectNone}
	case old == nil && wanted.Paused, wanted == nil && old.Paused:
		return Effect{Kind: EffectNone, Why: "it is paused"}
	case old == nil:
		return Effect{Kind: EffectStart, Why: "it is new"}
	case wanted == nil:
		return Effect{Kind: EffectStop, Why: "it is removed"}
	case !old.Paused && wanted.Paused:
		return Effect{Kind: EffectStop, Why: "it is paused"}
	case old.Paused && wanted.Paused:
		return Effect{Kind: EffectNone, Why: "it is paused"}
	case old.Paused:
		return Effect{Kind: EffectStart, Why: "it is resumed"}
	}
	return compare(old, wanted)
}

// compare tells what a change does to a flow that runs.
func compare(old, wanted *Wanted) Effect {
	a, b := old.Flow, wanted.Flow
	var live []string
	if old.Source.BytesPerSecond != wanted.Source.BytesPerSecond || old.Target.BytesPerSecond != wanted.Target.BytesPerSecond ||
		old.TenantBytesPerSecond != wanted.TenantBytesPerSecond {
		live = append(live, "shared caps")
	}
	if old.Tenant != wanted.Tenant || old.Material != wanted.Material {
		return Effect{Kind: EffectRestart, Why: "the files of its logins and certificates changed"}
	}
	if a != b {
		if why := needsRestart(a, b); why != "" {
			return Effect{Kind: EffectRestart, Why: why}
		}
		live = append(live, differingSettings(a, b)...)
	}
	if len(live) == 0 {
		return Effect{Kind: EffectNone}
	}
	return Effect{Kind: EffectLive, Why: strings.Join(live, ", ")}
}

// needsRestart names what two settings of a flow differ in that it reads only when it starts.
func needsRestart(a, b *config.Flow) string {
	parts := func(f *config.Flow) []any {
		source, target := Sides(f)
		return []any{
			f.Enabled, f.Naming, f.Topics, f.Heartbeats, f.OffsetSyncs, f.Checkpoints, f.Positions, f.Data, f.ExactlyOnce,
			f.Losses, source, target,
		}
	}
	if reflect.DeepEqual(parts(a), parts(b)) {
		return ""
	}
	if names := differingSettings(a, b); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "a login or certificate" // the values are hidden, so that no effective setting differs
}

// SettingChange is one effective setting that differs. Secrets are hidden; empty stands for
// what is not set.
type SettingChange struct{ Key, Old, New string }

// SettingChanges are the effective settings in which two versions of a flow differ, by key.
func SettingChanges(a, b *config.Flow) []SettingChange {
	old := map[string]string{}
	for _, s := range a.Effective() {
		old[s.Key] = s.Value
	}
	var changes []SettingChange
	for _, s := range b.Effective() {
		if was, ok := old[s.Key]; !ok || was != s.Value {
			changes = append(changes, SettingChange{s.Key, was, s.Value})
		}
		delete(old, s.Key)
	}
	for key, was := range old {
		changes = append(changes, SettingChange{key, was, ""})
	}
	slices.SortFunc(changes, func(a, b SettingChange) int { return strings.Compare(a.Key, b.Key) })
	return changes
}

// differingSettings are the keys alone.
func differingSettings(a, b *config.Flow) []string {
	var names []string
	for _, c := range SettingChanges(a, b) {
		names = append(names, c.Key)
	}
	return names
}

// Now are the flows that are there, as they are wanted.
func (d *Daemon) Now() []Wanted {
	slots := d.slots()
	all := make([]Wanted, len(slots))
	for i, s := range slots {
		all[i] = s.want()
	}
	return all
}

// SetRate changes the cap of all flows together; zero lifts it.
func (d *Daemon) SetRate(bytesPerSecond int64) { d.brakes.process.SetRate(bytesPerSecond) }

// SetMemory changes the bound of all batches in memory.
func (d *Daemon) SetMemory(bytes int64) { d.budget.SetSize(bytes) }
