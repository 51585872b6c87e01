package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// A survey or a preview asks a cluster for askWithin, so that the last error is
// told: a refused login, say. reachWithin is the bound behind it, which tells nothing.
const (
	askWithin   = 5 * time.Second
	reachWithin = 10 * time.Second
)

// Survey is what the clusters of a deployment answered: who they are, what they
// can do, what they refuse us, and what of it stands in the way. Nothing was
// written to find out.
type Survey struct {
	Clusters    []ClusterSurvey `json:"clusters"`
	Permissions []Permission    `json:"permissions"`
	// Findings are the survey's problems, in the form of a file's.
	Findings config.Problems `json:"findings"`
}

// ClusterSurvey is one cluster's answer.
type ClusterSurvey struct {
	Alias   mirror.ClusterAlias `json:"alias"`
	Error   string              `json:"error,omitempty"` // why there is none; the rest is empty then
	ID      string              `json:"id,omitempty"`
	Version string              `json:"version,omitempty"`
	Brokers int                 `json:"brokers,omitempty"`
	// Fence is how an owner of a lane makes sure that the last one is silent, on
	// this cluster as a target.
	Fence string `json:"fence,omitempty"`
	// TransactionProtocol is the one that exactly-once flows into this cluster use;
	// 0 where it serves none.
	TransactionProtocol int `json:"transaction_protocol,omitempty"`
	// IncrementalAlterConfigs is false on brokers before 2.3.
	IncrementalAlterConfigs bool `json:"incremental_alter_configs"`
	// RoundTripMillis is how long an answer takes at the least.
	RoundTripMillis int64 `json:"round_trip_ms"`

	features  kafka.Features
	roundTrip time.Duration
}

// visitor holds the clients of a visit: one per flow and side, closed at its end.
type visitor struct {
	dep   *config.Deployment
	flows []config.Flow
	sides map[mirror.FlowID]pair
	// answers are by alias; a cluster that did not answer has an error.
	answers map[mirror.ClusterAlias]ClusterSurvey
}

// visit opens clients and asks every cluster who it is. A client that cannot be
// opened is an error; a cluster that does not answer is part of the answers.
func visit(ctx context.Context, dep *config.Deployment, targets []mirror.ClusterAlias, log *slog.Logger) (*visitor, error) {
	v := &visitor{
		dep: dep, flows: dep.Targeting(targets...),
		sides: map[mirror.FlowID]pair{}, answers: map[mirror.ClusterAlias]ClusterSurvey{},
	}
	if len(v.flows) == 0 {
		return nil, noFlows(dep, targets)
	}
	for i := range v.flows {
		f := &v.flows[i]
		sides, err := askingBoth(f, log)
		if err != nil {
			v.close()
			return nil, err
		}
		v.sides[f.ID] = sides
		v.ask(ctx, f.ID.Source, sides.source)
		v.ask(ctx, f.ID.Target, sides.target)
	}
	return v, nil
}

func (v *visitor) close() {
	for _, p := range v.sides {
		p.source.Close()
		p.target.Close()
	}
}

// ask learns a cluster's features, once per alias.
func (v *visitor) ask(ctx context.Context, alias mirror.ClusterAlias, c *cluster.Client) {
	if _, ok := v.answers[alias]; ok {
		return
	}
	v.answers[alias] = askCluster(ctx, alias, c)
}

// reached reports whether both clusters of a flow answered.
func (v *visitor) reached(id mirror.FlowID) bool {
	return v.answers[id.Source].Error == "" && v.answers[id.Target].Error == ""
}

// Look visits every cluster of the flows and reports. The error is about the
// deployment's own settings; what the clusters say is in the survey.
func Look(ctx context.Context, dep *config.Deployment, targets []mirror.ClusterAlias, log *slog.Logger) (*Survey, error) {
	v, err := visit(ctx, dep, targets, log)
	if err != nil {
		return nil, err
	}
	defer v.close()
	s := &Survey{}
	for _, alias := range dep.Aliases {
		if c, ok := v.answers[alias]; ok {
			s.Clusters = append(s.Clusters, c)
		}
	}
	s.findClusters(v)
	for i := range v.flows {
		f := &v.flows[i]
		s.findFactors(v, f)
		s.findDistances(ctx, v, f)
		if v.reached(f.ID) {
			s.Permissions = append(s.Permissions, askPermissions(ctx, f, v.sides[f.ID])...)
		}
	}
	s.Permissions = slices.Compact(s.Permissions)
	for _, p := range s.Permissions {
		if p.Answer == Missing {
			s.add(config.Error, config.Origin{}, fmt.Sprintf("cluster %s refuses %s on %s: %s", p.Cluster, p.Operations, p.Resource, p.Why),
				"needed to "+p.For)
		}
	}
	return s, nil
}

func (s *Survey) add(sev config.Severity, at config.Origin, message, hint string) {
	p := config.Problem{Severity: sev, File: at.File, Line: at.Line, Key: at.Key, Message: message, Hint: hint}
	if !slices.Contains(s.Findings, p) {
		s.Findings = append(s.Findings, p)
	}
}

// findClusters reports clusters that did not answer, that are one and the same,
// and targets that cannot fence by a marker.
func (s *Survey) findClusters(v *visitor) {
	byID := map[string]mirror.ClusterAlias{}
	for _, c := range s.Clusters {
		at := v.dep.Clusters[c.Alias].Origin
		if c.Error != "" {
			s.add(config.Error, at, fmt.Sprintf("cluster %s cannot be reached: %s", c.Alias, c.Error), "run would wait for it and retry")
			continue
		}
		if other, ok := byID[c.ID]; ok && c.ID != "" {
			s.add(config.Error, at, fmt.Sprintf("%s and %s are the same cluster (id %s)", other, c.Alias, c.ID),
				"a flow between them would feed itself; correct the bootstrap servers of one")
		}
		byID[c.ID] = c.Alias
		if isTarget(v.flows, c.Alias) && !c.features.Transactions {
			s.add(config.Warning, at, fmt.Sprintf("cluster %s serves no transactions: a takeover is fenced by lease, wait and scan, which is slower", c.Alias), "")
		}
	}
}

func isTarget(flows []config.Flow, alias mirror.ClusterAlias) bool {
	return slices.ContainsFunc(flows, func(f config.Flow) bool { return f.ID.Target == alias && f.Enabled })
}

// findFactors reports replication factors that a cluster has too few brokers for.
func (s *Survey) findFactors(v *visitor, f *config.Flow) {
	syncs := f.ID.Target
	if f.OffsetSyncs.OnSource {
		syncs = f.ID.Source
	}
	for _, want := range []struct {
		on     mirror.ClusterAlias
		key    string
		factor int16
		used   bool
	}{
		{f.ID.Target, "replication.factor", f.Topics.ReplicationFactor, f.Enabled},
		{f.ID.Target, "heartbeats.topic.replication.factor", f.Heartbeats.ReplicationFactor, f.Heartbeats.Every.On()},
		{f.ID.Target, "checkpoints.topic.replication.factor", f.Checkpoints.ReplicationFactor, f.Enabled && f.Checkpoints.Emit.On()},
		{syncs, "offset-syncs.topic.replication.factor", f.OffsetSyncs.ReplicationFactor, f.Enabled && f.OffsetSyncs.Enabled},
		{f.ID.Target, "offset.storage.replication.factor", f.Positions.ReplicationFactor, f.Enabled},
	} {
		c := v.answers[want.on]
		if !want.used || c.Error != "" || int(want.factor) <= c.Brokers {
			continue
		}
		at := originOf(f, want.key)
		if at.IsDefault() {
			at.Key = want.key
		}
		s.add(config.Error, at,
			fmt.Sprintf("%s cannot hold a replication factor of %d: it has %s", want.on, want.factor, countNoun(c.Brokers, "broker")),
			fmt.Sprintf("%s = %d would fit", want.key, c.Brokers))
	}
}

// originOf is where a flow's setting, or its worker's, was written.
func originOf(f *config.Flow, key string) config.Origin {
	for _, e := range f.Effective() {
		if e.Key == key || e.Key == "worker."+key {
			return e.Origin
		}
	}
	return config.Origin{}
}

func countNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
