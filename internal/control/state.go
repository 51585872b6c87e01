package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
	"heliograph/internal/store"
)

// state is everything at one revision. It is shared and never changed; a commit makes
// another one.
type state struct {
	revision  Revision
	clusters  map[string]*heldCluster
	flows     map[mirror.FlowID]*heldFlow
	order     []mirror.FlowID // of flows, sorted
	documents map[docKey]Document
	files     map[string]*config.Deployment
}

type docKey struct{ kind, id string }

// heldCluster is a cluster with what its settings mean.
type heldCluster struct {
	Cluster
	deployment *config.Deployment // holds this cluster
}

// heldFlow is a flow with what its settings mean.
type heldFlow struct {
	Flow
	deployment *config.Deployment // holds both clusters and the flow
	wanted     *daemon.Wanted     // nil where it is not to run
}

func (s *state) clone() *state {
	return &state{
		revision: s.revision, clusters: maps.Clone(s.clusters), flows: maps.Clone(s.flows), order: s.order,
		documents: maps.Clone(s.documents), files: s.files,
	}
}

func (s *state) sort() {
	s.order = slices.SortedFunc(maps.Keys(s.flows), compareIDs)
}

func compareIDs(a, b mirror.FlowID) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target))
}

// wanted is what the engine shall run.
func (s *state) wanted(p *Policy) []daemon.Wanted {
	var out []daemon.Wanted
	for _, id := range s.order {
		h := s.flows[id]
		if h.wanted == nil {
			continue
		}
		out = append(out, s.want(h, p))
	}
	return out
}

// want is what the engine is asked for one flow that is to be there.
func (s *state) want(h *heldFlow, p *Policy) daemon.Wanted {
	w := *h.wanted
	w.Paused = h.Paused
	if h.Tenant != "" {
		w.Tenant, w.TenantBytesPerSecond = h.Tenant, p.Tenants[h.Tenant].BytesPerSecond
	}
	return w
}

// The keys of the store.
const (
	clusterKey  = "cluster/"
	flowKey     = "flow/"
	documentKey = "document/"
)

// storedCluster and storedFlow are the store's form, version 1. Fields are added, never
// given another meaning.
type storedCluster struct {
	Alias      string            `json:"alias"`
	Properties map[string]string `json:"properties,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Tenant     string            `json:"tenant,omitempty"`
	Revision   Revision          `json:"revision"`
}

type storedFlow struct {
	Source     string            `json:"source"`
	Target     string            `json:"target"`
	Enabled    bool              `json:"enabled"`
	Paused     bool              `json:"paused,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Tenant     string            `json:"tenant,omitempty"`
	Revision   Revision          `json:"revision"`
}

type storedDocument struct {
	Kind     string          `json:"kind"`
	ID       string          `json:"id"`
	Value    json.RawMessage `json:"value"`
	Tenant   string          `json:"tenant,omitempty"`
	Revision Revision        `json:"revision"`
}

// read makes the state from the store and the files.
func (c *Control) read(ctx context.Context, files map[string]*config.Deployment) (*state, error) {
	st, err := c.store.Read(ctx)
	if err != nil {
		return nil, err
	}
	return c.decode(st, files)
}

func (c *Control) decode(st store.State, files map[string]*config.Deployment) (*state, error) {
	s := &state{
		revision: Revision(st.Revision), clusters: map[string]*heldCluster{}, flows: map[mirror.FlowID]*heldFlow{},
		documents: map[docKey]Document{}, files: files,
	}
	for key, value := range st.Values {
		if err := s.decode(key, value); err != nil {
			return nil, fmt.Errorf("the store's record %s cannot be read: %w", key, err)
		}
	}
	if err := s.addFiles(files); err != nil {
		return nil, err
	}
	for _, h := range s.clusters {
		if h.deployment == nil {
			c.resolveCluster(h)
		}
	}
	for _, h := range s.flows {
		if h.deployment == nil {
			// What an older release accepted and this one refuses stays, and does not run.
			if fields := c.resolveFlow(s, h); len(fields) > 0 {
				h.wanted = nil
				c.log.Error("a stored flow is not run", "flow", h.ID().String(), "reason", fields[0].String())
			}
		}
	}
	s.sort()
	return s, nil
}

func (s *state) decode(key string, value []byte) error {
	switch {
	case strings.HasPrefix(key, clusterKey):
		var v storedCluster
		if err := json.Unmarshal(value, &v); err != nil {
			return err
		}
		s.clusters[v.Alias] = &heldCluster{Cluster: Cluster{Alias: v.Alias, Properties: v.Properties, Labels: v.Labels, Tenant: v.Tenant, Revision: v.Revision}}
	case strings.HasPrefix(key, flowKey):
		var v storedFlow
		if err := json.Unmarshal(value, &v); err != nil {
			return err
		}
		f := Flow{Source: v.Source, Target: v.Target, Enabled: v.Enabled, Paused: v.Paused, Properties: v.Properties, Labels: v.Labels, Tenant: v.Tenant, Revision: v.Revision}
		s.flows[f.ID()] = &heldFlow{Flow: f}
	case strings.HasPrefix(key, documentKey):
		var v storedDocument
		if err := json.Unmarshal(value, &v); err != nil {
			return err
		}
		s.documents[docKey{v.Kind, v.ID}] = Document(v)
	default:
		return fmt.Errorf("a kind of record that this release does not know; run the release that wrote it")
	}
	return nil
}

// addFiles adds what the server's own files say. Their names must not be taken.
func (s *state) addFiles(files map[string]*config.Deployment) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		dep := files[name]
		for _, alias := range dep.Aliases {
			if old, ok := s.clusters[string(alias)]; ok {
				return fmt.Errorf("%s: cluster %s is there already (%s)", name, alias, cmp.Or(old.File, "made by the API"))
			}
			s.clusters[string(alias)] = &heldCluster{
				Cluster:    Cluster{Alias: string(alias), Properties: dep.Clusters[alias].Properties(), File: name},
				deployment: dep,
			}
		}
		for i := range dep.Flows {
			f := &dep.Flows[i]
			if _, ok := s.flows[f.ID]; ok {
				return fmt.Errorf("%s: flow %s is there already", name, f.ID)
			}
			s.flows[f.ID] = &heldFlow{
				Flow: Flow{
					Source: string(f.ID.Source), Target: string(f.ID.Target), Enabled: f.Enabled, File: name, Properties: written(f),
				},
				deployment: dep, wanted: wantedOf(dep, f),
			}
		}
	}
	return nil
}

// written are the settings of a file's flow that are no defaults, as they may be shown.
func written(f *config.Flow) map[string]string {
	out := map[string]string{}
	for _, e := range f.Effective() {
		if !e.Origin.IsDefault() && !config.IsConnectionSetting(e.Key) {
			out[e.Key] = e.Value
		}
	}
	return out
}

func wantedOf(dep *config.Deployment, f *config.Flow) *daemon.Wanted {
	return &daemon.Wanted{Flow: f, Source: dep.Clusters[f.ID.Source], Target: dep.Clusters[f.ID.Target]}
}
