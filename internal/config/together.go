package config

import (
	"slices"

	"heliograph/internal/mirror"
)

// Together checks what flows that were resolved apart mean together, as far as it concerns the
// touched ones: shared groups, and loops. The file of a problem is the flow. The flows are those
// that are enabled; untouched ones are taken to be sound among themselves.
func Together(flows []*Flow, touched []mirror.FlowID, clusters map[mirror.ClusterAlias]Cluster) Problems {
	var r report
	for _, id := range touched {
		i := slices.IndexFunc(flows, func(f *Flow) bool { return f.ID == id })
		if i < 0 {
			continue
		}
		for _, other := range flows {
			if other.ID != id && other.ID.Target == id.Target && other.Positions.GroupID == flows[i].Positions.GroupID {
				r.errorf(Origin{File: id.String()}, "remove group.id from the target: each flow then has a group of its own, <source>-mm2",
					"it would share the group %s with flow %s", other.Positions.GroupID, other.ID)
			}
		}
	}
	if len(r.problems) > 0 {
		return r.problems
	}
	g := graphOf(flows)
	for _, id := range touched {
		ring := g.ring(flows, id)
		if len(ring) == 0 {
			continue
		}
		b := builder{report: &report{}}
		b.loops(deploymentOf(ring, clusters))
		for _, p := range b.problems {
			r.add(p.Severity, Origin{File: id.String(), Key: "topics"}, p.Message, p.Hint)
		}
		if len(r.problems) > 0 {
			break
		}
	}
	return r.problems
}

func deploymentOf(flows []*Flow, clusters map[mirror.ClusterAlias]Cluster) *Deployment {
	d := &Deployment{Clusters: clusters}
	for _, f := range flows {
		d.Flows = append(d.Flows, *f)
		for _, alias := range []mirror.ClusterAlias{f.ID.Source, f.ID.Target} {
			if !slices.Contains(d.Aliases, alias) {
				d.Aliases = append(d.Aliases, alias)
			}
		}
	}
	return d
}

// graph tells the neighbours of each cluster.
type graph struct {
	targets, sources map[mirror.ClusterAlias][]mirror.ClusterAlias
}

func graphOf(flows []*Flow) graph {
	g := graph{map[mirror.ClusterAlias][]mirror.ClusterAlias{}, map[mirror.ClusterAlias][]mirror.ClusterAlias{}}
	for _, f := range flows {
		g.targets[f.ID.Source] = append(g.targets[f.ID.Source], f.ID.Target)
		g.sources[f.ID.Target] = append(g.sources[f.ID.Target], f.ID.Source)
	}
	return g
}

// ring are the flows by which records of id could come back to its source; none where they
// cannot, which is what most flows are.
func (g graph) ring(flows []*Flow, id mirror.FlowID) []*Flow {
	ahead := reach(id.Target, g.targets)
	if !ahead[id.Source] {
		return nil
	}
	behind := reach(id.Source, g.sources)
	var ring []*Flow
	for _, f := range flows {
		if ahead[f.ID.Source] && behind[f.ID.Source] && ahead[f.ID.Target] && behind[f.ID.Target] {
			ring = append(ring, f)
		}
	}
	return ring
}

func reach(from mirror.ClusterAlias, next map[mirror.ClusterAlias][]mirror.ClusterAlias) map[mirror.ClusterAlias]bool {
	seen := map[mirror.ClusterAlias]bool{from: true}
	for queue := []mirror.ClusterAlias{from}; len(queue) > 0; queue = queue[1:] {
		for _, a := range next[queue[0]] {
			if !seen[a] {
				seen[a] = true
				queue = append(queue, a)
			}
		}
	}
	return seen
}
