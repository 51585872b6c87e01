package control

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Policy is who may do what, from the server's own configuration.
type Policy struct {
	Tenants map[string]Tenant
	// Links are the pairs of clusters that flows may join; none means all.
	Links []Link
	Allow Allow
	// Defaults stand in front of all flows and clusters that are no file's: what a file says
	// without a prefix.
	Defaults map[string]string
}

// Tenant is what the tokens of a tenant may use.
type Tenant struct {
	// Labels are put on all its clusters and flows.
	Labels map[string]string
	// Clusters selects those clusters of the server that it may use besides its own; nil
	// selects none, an empty selector all.
	Clusters map[string]string
	MaxFlows int // zero: no bound
	// MaxClusters bounds its own clusters; zero: no bound.
	MaxClusters int
	// BytesPerSecond caps all its flows together; zero: none.
	BytesPerSecond int64
}

// Link allows flows from clusters with some labels to clusters with others. A label
// "*" in To stands for the same value as in From.
type Link struct {
	From, To map[string]string
}

// Allow is what values that came by an API may make the server reach for.
type Allow struct {
	// Files are directories or files, whose content may become a setting or a key store.
	Files []string
	// Environment are names of variables.
	Environment []string
	// TokenEndpoints are addresses where tokens may be asked for; what ends in "/" is a prefix.
	TokenEndpoints []string
	// Identity lets clusters log in with the server's own cloud credentials.
	Identity bool
}

func matches(labels, selector map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || v != "*" && have != v {
			return false
		}
	}
	return true
}

func (p *Policy) seesCluster(a Actor, h *heldCluster) bool {
	if a.Sees(h.Tenant) {
		return true
	}
	selector := p.Tenants[a.Tenant].Clusters
	return h.Tenant == "" && a.May(ScopeRead) && a.Tenant != "" && selector != nil && matches(h.Labels, selector)
}

// linked says whether a flow may join the two clusters, and if not why.
func (p *Policy) linked(from, to map[string]string) bool {
	if len(p.Links) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Links, func(l Link) bool {
		if !matches(from, l.From) || !matches(to, l.To) {
			return false
		}
		for k, v := range l.To {
			if v == "*" && to[k] != from[k] {
				return false
			}
		}
		return true
	})
}

// rules lists the links for a message.
func (p *Policy) rules() string {
	var out []string
	for _, l := range p.Links {
		out = append(out, labelText(l.From)+" to "+labelText(l.To))
	}
	return strings.Join(out, "; ")
}

func labelText(labels map[string]string) string {
	if len(labels) == 0 {
		return "any"
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k+"="+labels[k])
	}
	return strings.Join(out, ",")
}

// governed are the labels that the policy decides by: a tenant may not choose them.
func (p *Policy) governed(label string) bool {
	for _, l := range p.Links {
		if _, ok := l.From[label]; ok {
			return true
		}
		if _, ok := l.To[label]; ok {
			return true
		}
	}
	for _, t := range p.Tenants {
		if _, ok := t.Clusters[label]; ok {
			return true
		}
	}
	return false
}

// labelled puts the tenant's labels on, and names the ones that it may not choose.
func (p *Policy) labelled(a Actor, labels map[string]string) (all map[string]string, refused []string) {
	if a.May(ScopeAdmin) {
		return maps.Clone(labels), nil
	}
	given := p.Tenants[a.Tenant].Labels
	all = maps.Clone(labels)
	if all == nil && len(given) > 0 {
		all = map[string]string{}
	}
	for k, v := range labels {
		if p.governed(k) && given[k] != v {
			refused = append(refused, k)
		}
	}
	maps.Copy(all, given)
	slices.Sort(refused)
	return all, refused
}

// permitsFile says whether a path lies in what Files names. A path that goes up is
// refused: behind a link it would lead elsewhere than it reads.
func (al Allow) permitsFile(name string) bool {
	name = strings.TrimPrefix(name, "file:")
	if !path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
		return false
	}
	name = path.Clean(name)
	return slices.ContainsFunc(al.Files, func(dir string) bool {
		dir = path.Clean(dir)
		return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
	})
}

func (al Allow) permitsEndpoint(address string) bool {
	return slices.ContainsFunc(al.TokenEndpoints, func(e string) bool {
		return address == e || strings.HasSuffix(e, "/") && strings.HasPrefix(address, e)
	})
}
