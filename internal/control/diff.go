package control

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
)

// Diff is what a commit would change.
type Diff struct {
	Resources []ResourceDiff
	// Warnings are config's remarks on what would then be there.
	Warnings []Field
}

// The actions of a diff.
const (
	Create = "create"
	Update = "update"
	Delete = "delete"
)

// ResourceDiff is one resource's change.
type ResourceDiff struct {
	Resource string
	Action   string
	Settings []SettingDiff
	// Effect is what becomes of a flow that runs, or begins to.
	Effect daemon.Effect
}

// SettingDiff is one setting's change. Secrets are hidden on both sides.
type SettingDiff struct {
	Name     string
	Property bool // Name is a key of Properties
	Old, New *string
}

// DryRun tells what a commit would change, or how it would be refused.
func (c *Control) DryRun(ctx context.Context, changes ...Change) (*Diff, error) {
	if !ActorOf(ctx).May(ScopeWrite) {
		return nil, errorf(Forbidden, "the token may not change anything")
	}
	d, err := c.draft(ctx, c.state.Load(), changes)
	if err != nil && c.catchUp(ctx) {
		d, err = c.draft(ctx, c.state.Load(), changes)
	}
	if err != nil {
		return nil, err
	}
	out := &Diff{}
	for _, alias := range changed(d.old.clusters, d.next.clusters, cmp.Compare[string]) {
		old, next := d.old.clusters[alias], d.next.clusters[alias]
		r := ResourceDiff{Resource: "cluster " + alias, Action: action(old != nil, next != nil)}
		var was, is Cluster
		if old != nil {
			was = old.Cluster
		}
		if next != nil {
			is = next.Cluster
			out.warn(next.deployment)
		}
		r.Settings = append(settings(Shown(was.Properties), Shown(is.Properties), true, differing(was.Properties, is.Properties)),
			settings(labels(was.Labels), labels(is.Labels), false, nil)...)
		out.Resources = append(out.Resources, r)
	}
	for _, id := range changed(d.old.flows, d.next.flows, compareIDs) {
		if h := cmp.Or(d.next.flows[id], d.old.flows[id]); !d.actor.Sees(h.Tenant) {
			continue // it is restarted with the actor's cluster, and nobody's to know
		}
		r := d.flowDiff(id)
		if next := d.next.flows[id]; next != nil && next.File == "" {
			out.warn(next.deployment)
		}
		out.Resources = append(out.Resources, r)
	}
	return out, nil
}

func (d *draft) flowDiff(id mirror.FlowID) ResourceDiff {
	old, next := d.old.flows[id], d.next.flows[id]
	r := ResourceDiff{Resource: "flow " + id.String(), Action: action(old != nil, next != nil)}
	var was, is Flow
	if old != nil {
		was = old.Flow
	}
	if next != nil {
		is = next.Flow
	}
	switches := func(h *heldFlow) map[string]string {
		if h == nil {
			return nil
		}
		m := labels(h.Labels)
		m["enabled"], m["paused"] = strconv.FormatBool(h.Enabled), strconv.FormatBool(h.Paused)
		return m
	}
	r.Settings = append(settings(switches(old), switches(next), false, nil),
		settings(Shown(was.Properties), Shown(is.Properties), true, differing(was.Properties, is.Properties))...)
	if d.c.opts.Engine != nil {
		r.Effect = d.c.opts.Engine.Effect(d.want(d.old, old), d.want(d.next, next))
	}
	return r
}

// want is what the engine is asked for a flow, or nil.
func (d *draft) want(s *state, h *heldFlow) *daemon.Wanted {
	if h == nil || h.wanted == nil {
		return nil
	}
	w := s.want(h, d.policy)
	return &w
}

func (o *Diff) warn(dep *config.Deployment) {
	for _, p := range dep.Problems {
		if f := fieldOf(p); p.Severity == config.Warning && !slices.Contains(o.Warnings, f) {
			o.Warnings = append(o.Warnings, f)
		}
	}
}

func action(was, is bool) string {
	switch {
	case !was:
		return Create
	case !is:
		return Delete
	}
	return Update
}

// changed are the keys whose values are not the same thing, in order.
func changed[K comparable, V comparable](old, next map[K]V, order func(a, b K) int) []K {
	var out []K
	for k, v := range next {
		if was, ok := old[k]; !ok || was != v {
			out = append(out, k)
		}
	}
	for k := range old {
		if _, ok := next[k]; !ok {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, order)
	return out
}

// Shown are properties as people may see them.
func Shown(properties map[string]string) map[string]string {
	out := make(map[string]string, len(properties))
	for k, v := range properties {
		out[k] = config.Shown(k, v)
	}
	return out
}

// Unhidden are properties that somebody has read by [Shown] and sends back: what is still
// hidden is what is stored.
func Unhidden(given, stored map[string]string) map[string]string {
	out := maps.Clone(given)
	for k, v := range given {
		if old, ok := stored[k]; ok && v == config.Shown(k, old) {
			out[k] = old
		}
	}
	return out
}

func labels(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out["labels."+k] = v
	}
	return out
}

// differing are the keys whose values differ, hidden ones too.
func differing(old, next map[string]string) map[string]bool {
	out := map[string]bool{}
	for k, v := range next {
		if was, ok := old[k]; !ok || was != v {
			out[k] = true
		}
	}
	return out
}

// settings lists what differs; hidden names what differs though it looks alike.
func settings(old, next map[string]string, property bool, hidden map[string]bool) []SettingDiff {
	var out []SettingDiff
	names := map[string]bool{}
	for k := range old {
		names[k] = true
	}
	for k := range next {
		names[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(names)) {
		was, had := old[k]
		is, has := next[k]
		if had == has && was == is && !hidden[k] {
			continue
		}
		s := SettingDiff{Name: k, Property: property}
		if had {
			s.Old = &was
		}
		if has {
			s.New = &is
		}
		out = append(out, s)
	}
	return out
}
