package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

// check resolves what was touched and compares it with the policy and with what else there is.
func (d *draft) check() error {
	for _, alias := range slices.Sorted(maps.Keys(d.clusters)) {
		h, ok := d.next.clusters[alias]
		if !ok {
			continue
		}
		d.fields = append(d.fields, d.c.resolveCluster(h)...)
	}
	if err := d.orphans(); err != nil {
		return err
	}
	for _, id := range d.next.order {
		if !d.touched[id] {
			continue
		}
		h := d.next.flows[id]
		err := d.ends(h)
		var fields []Field
		if err == nil && !d.clusterIsBad(h) {
			fields = d.c.resolveFlow(d.next, h)
		}
		if !d.actor.Sees(h.Tenant) && (err != nil || len(fields) > 0) {
			return errOthers()
		}
		if err != nil {
			return err
		}
		d.fields = append(d.fields, fields...)
	}
	if len(d.fields) > 0 {
		return d.invalid()
	}
	if err := d.quotas(); err != nil {
		return err
	}
	return d.together()
}

// clusterIsBad says whether a flow's cluster was refused already, so that the same is not
// said twice.
func (d *draft) clusterIsBad(h *heldFlow) bool {
	return slices.ContainsFunc(d.fields, func(f Field) bool {
		return f.Resource == "cluster "+h.Source || f.Resource == "cluster "+h.Target
	})
}

// errOthers refuses a change of a cluster that would break a flow that the actor may not know of:
// the server's owner may join a tenant's cluster to any other.
func errOthers() *Error {
	return errorf(Conflict, "a flow of others uses the cluster, and it would end that flow: ask the server's owner; nothing was changed")
}

// orphans refuses the removal of clusters that flows use.
func (d *draft) orphans() error {
	for _, id := range d.next.order {
		for _, alias := range []mirror.ClusterAlias{id.Source, id.Target} {
			if _, ok := d.next.clusters[string(alias)]; !ok && d.clusters[string(alias)] {
				if !d.actor.Sees(d.next.flows[id].Tenant) {
					return errOthers()
				}
				return errorf(Conflict, "cluster %s is used by flow %s: delete the flow first", alias, id)
			}
		}
	}
	return nil
}

// ends checks that a flow's clusters are there, and may be joined. Who names a flow must see both
// its clusters; who changes one of them need not see the other.
func (d *draft) ends(h *heldFlow) error {
	resource := "flow " + h.ID().String()
	missing := false
	for _, end := range []struct{ name, alias string }{{"source", h.Source}, {"target", h.Target}} {
		cl, ok := d.next.clusters[end.alias]
		if !ok || d.asked[h.ID()] && !d.policy.seesCluster(d.actor, cl) {
			d.field(resource, end.name, fmt.Sprintf("there is no cluster %q", end.alias), "register it first")
			missing = true
		}
	}
	if h.Source == h.Target {
		d.field(resource, "target", "it is the source too", "a flow joins two clusters")
		missing = true
	}
	if missing {
		return d.invalid()
	}
	from, to := d.next.clusters[h.Source].Labels, d.next.clusters[h.Target].Labels
	if !d.policy.linked(from, to) {
		return &Error{
			Kind: Forbidden, Message: "the server's policy does not let these clusters be joined",
			Fields: []Field{{
				Resource: resource, Name: "target",
				Reason: fmt.Sprintf("%s (%s) may not flow to %s (%s)", h.Source, labelText(from), h.Target, labelText(to)),
				Hint:   "allowed: " + d.policy.rules(),
			}},
		}
	}
	return nil
}

// quotas counts what the actor's tenant has.
func (d *draft) quotas() error {
	if d.actor.May(ScopeAdmin) {
		return nil
	}
	quota := d.policy.Tenants[d.actor.Tenant]
	count := func(s *state) (flows, clusters int) {
		for _, h := range s.flows {
			if h.Tenant == d.actor.Tenant && h.File == "" {
				flows++
			}
		}
		for _, h := range s.clusters {
			if h.Tenant == d.actor.Tenant && h.File == "" {
				clusters++
			}
		}
		return flows, clusters
	}
	oldFlows, oldClusters := count(d.old)
	flows, clusters := count(d.next)
	switch {
	case quota.MaxFlows > 0 && flows > quota.MaxFlows && flows > oldFlows:
		return errorf(TooMany, "tenant %s may have %d flows, and has them", d.actor.Tenant, quota.MaxFlows)
	case quota.MaxClusters > 0 && clusters > quota.MaxClusters && clusters > oldClusters:
		return errorf(TooMany, "tenant %s may have %d clusters, and has them", d.actor.Tenant, quota.MaxClusters)
	}
	return nil
}

// together checks what several flows mean together: shared groups, and loops through a
// touched flow.
func (d *draft) together() error {
	var touched []mirror.FlowID
	for _, id := range d.next.order {
		if d.touched[id] && d.next.flows[id].Enabled {
			touched = append(touched, id)
		}
	}
	if len(touched) == 0 {
		return nil
	}
	var flows []*config.Flow
	clusters := map[mirror.ClusterAlias]config.Cluster{}
	for _, id := range d.next.order {
		if w := d.next.flows[id].wanted; w != nil && w.Flow.Enabled {
			flows = append(flows, w.Flow)
			clusters[id.Source], clusters[id.Target] = w.Source, w.Target
		}
	}
	for _, p := range config.Together(flows, touched, clusters) {
		if i := slices.IndexFunc(touched, func(id mirror.FlowID) bool { return id.String() == p.File }); i >= 0 && !d.actor.Sees(d.next.flows[touched[i]].Tenant) {
			return errOthers()
		}
		d.fields = append(d.fields, Field{Resource: "flow " + p.File, Name: p.Key, Property: p.Key != "", Reason: p.Message, Hint: p.Hint})
	}
	if len(d.fields) > 0 {
		return &Error{Kind: Conflict, Message: "it contradicts another flow; nothing was changed", Fields: d.fields}
	}
	return nil
}

// checkedCluster resolves a cluster that need not be stored.
func (c *Control) checkedCluster(ctx context.Context, cl Cluster) (*heldCluster, error) {
	a := ActorOf(ctx)
	if !a.May(ScopeWrite) {
		return nil, errorf(Forbidden, "the token may only read")
	}
	if !aliasPattern.MatchString(cl.Alias) {
		return nil, &Error{Kind: Invalid, Message: "a setting is wrong", Fields: []Field{{Resource: "cluster " + cl.Alias, Name: "alias", Reason: "not an alias"}}}
	}
	h := &heldCluster{Cluster: cl.clone()}
	h.File = ""
	if fields := c.resolveCluster(h); len(fields) > 0 {
		return nil, &Error{Kind: Invalid, Message: "the cluster's settings are wrong", Fields: fields}
	}
	return h, nil
}

// resolveCluster finds out what a cluster's settings mean.
func (c *Control) resolveCluster(h *heldCluster) []Field {
	h.deployment = config.Resolve(c.source(), c.defaults(), clusterResource(&h.Cluster))
	return c.refusals(h.deployment, &h.Cluster)
}

// resolveFlow finds out what a flow's settings mean, with those of its clusters.
func (c *Control) resolveFlow(s *state, h *heldFlow) []Field {
	source, target := s.clusters[h.Source], s.clusters[h.Target]
	if source == nil || target == nil {
		return []Field{{Resource: "flow " + h.ID().String(), Name: "source", Reason: "one of its clusters is not there"}}
	}
	id := h.ID()
	resource := "flow " + id.String()
	h.deployment = config.Resolve(c.source(), c.defaults(), clusterResource(&source.Cluster), clusterResource(&target.Cluster), config.Resource{
		Name: id.String(), Place: resource, Properties: h.Properties,
	})
	fields := c.refusals(h.deployment, &source.Cluster, &target.Cluster)
	for _, key := range slices.Sorted(maps.Keys(h.Properties)) {
		if config.IsConnectionSetting(key) {
			fields = append(fields, Field{Resource: resource, Name: key, Property: true, Reason: "how a cluster is reached is set at the cluster, not at a flow"})
		}
	}
	if len(fields) > 0 {
		return fields
	}
	h.wanted = nil
	for i := range h.deployment.Flows {
		if f := &h.deployment.Flows[i]; f.ID == id && h.Enabled {
			h.wanted = wantedOf(h.deployment, f)
		}
	}
	return nil
}

func clusterResource(cl *Cluster) config.Resource {
	return config.Resource{Name: cl.Alias, Place: "cluster " + cl.Alias, Properties: cl.Properties, Literal: cl.File != ""}
}

// serverPlace is the place of what nobody wrote into a resource.
const serverPlace = "the server"

// The providers that API values may use, as far as the policy allows.
const (
	fileProvider      = "file"
	directoryProvider = "directory"
	envProvider       = "env"
)

// defaults stand in front of all resources, with the config providers that the policy allows.
func (c *Control) defaults() config.Resource {
	properties := maps.Clone(c.policy.Load().Defaults)
	if properties == nil {
		properties = map[string]string{}
	}
	allow := c.policy.Load().Allow
	var providers []string
	if len(allow.Files) > 0 {
		for _, name := range []string{fileProvider, directoryProvider} {
			providers = append(providers, name)
			properties["config.providers."+name+".class"] = name
		}
	}
	if len(allow.Environment) > 0 {
		providers = append(providers, envProvider)
		properties["config.providers."+envProvider+".class"] = envProvider
	}
	if len(providers) > 0 {
		properties["config.providers"] = strings.Join(providers, ",")
	}
	return config.Resource{Place: "the server's defaults", Properties: properties}
}

// source reads for config what the policy allows.
func (c *Control) source() config.Source {
	allow, outside := c.policy.Load().Allow, c.opts.Outside
	src := config.Source{Name: serverPlace}
	permitted := func(name string) error {
		if !allow.permitsFile(name) {
			return errors.New("the server's configuration does not allow it (allow.files)")
		}
		return nil
	}
	if outside.ReadFile != nil && len(allow.Files) > 0 {
		src.ReadFile = func(name string) ([]byte, error) {
			if err := permitted(name); err != nil {
				return nil, err
			}
			c.reached.add(name)
			return outside.ReadFile(name)
		}
	}
	if outside.ReadDir != nil && len(allow.Files) > 0 {
		src.ReadDir = func(name string) ([]string, error) {
			if err := permitted(name); err != nil {
				return nil, err
			}
			return outside.ReadDir(name)
		}
	}
	if outside.LookupEnv != nil && len(allow.Environment) > 0 {
		src.LookupEnv = func(name string) (string, bool) {
			if !slices.Contains(allow.Environment, name) {
				return "", false
			}
			return outside.LookupEnv(name)
		}
	}
	return src
}

// refusals are the errors of a deployment made of resources, and what its clusters may not
// reach for. Clusters of the server's own files may reach for anything.
func (c *Control) refusals(dep *config.Deployment, clusters ...*Cluster) []Field {
	var fields []Field
	for _, p := range dep.Problems {
		if p.Severity == config.Error {
			fields = append(fields, fieldOf(p))
		}
	}
	allow := c.policy.Load().Allow
	for _, o := range dep.Outside() {
		i := slices.IndexFunc(clusters, func(cl *Cluster) bool { return mirror.ClusterAlias(cl.Alias) == o.Alias })
		if i < 0 || clusters[i].File != "" {
			continue
		}
		var reason, hint string
		switch {
		case o.Kind == config.OutsideFile && !allow.permitsFile(o.Value):
			reason, hint = "it names a file of the server, which its configuration does not allow", "give the content itself (PEM text), or have allow.files extended"
		case o.Kind == config.OutsideTokens && !allow.permitsEndpoint(o.Value):
			reason, hint = "the server may not ask that address for tokens", "have allow.token_endpoints extended"
		case o.Kind == config.OutsideIdentity && !allow.Identity:
			reason, hint = "it would log in with the server's own identity, which its configuration does not allow", "have allow.identity set"
		default:
			if o.Kind == config.OutsideFile {
				c.reached.add(o.Value)
			}
			continue
		}
		fields = append(fields, Field{Resource: "cluster " + clusters[i].Alias, Name: keyEndingIn(clusters[i].Properties, o.Key), Property: true, Reason: reason, Hint: hint})
	}
	return fields
}

// keyEndingIn is the key by which the cluster sets what a client calls name.
func keyEndingIn(properties map[string]string, name string) string {
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if strings.HasSuffix(key, "."+name) {
			if _, plain := properties[name]; !plain {
				return key
			}
		}
	}
	return name
}

// fieldOf puts a problem of config in the words of resources.
func fieldOf(p config.Problem) Field {
	f := Field{Resource: p.File, Name: p.Key, Property: p.Key != "", Reason: p.Message, Hint: p.Hint}
	if p.File == serverPlace { // config named the key in full
		if alias, name, ok := strings.Cut(p.Key, "."); ok {
			f.Resource, f.Name = "cluster "+alias, name
		}
	}
	return f
}
