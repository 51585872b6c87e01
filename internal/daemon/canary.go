package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"

	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/verify"
)

// Canary is the deployment that copies beside a running MirrorMaker: into topics,
// books and groups of its own on the target, without a word to the source. What
// others see of a flow (offset syncs, checkpoints, groups, heartbeats, ACLs) is
// left to MirrorMaker.
func Canary(dep *config.Deployment) *config.Deployment {
	beside := *dep
	beside.Flows, beside.Clusters = nil, maps.Clone(dep.Clusters)
	for i := range dep.Flows {
		f := dep.Flows[i]
		if !f.Enabled {
			continue
		}
		f.Policy = mirror.Canary(f.Policy, f.ID.Source)
		f.Selection.Policy = f.Policy
		f.Selection.ReplicateHeartbeats = false
		source := f.ID.Source
		f.ID.Source = mirror.CanaryAlias(source)
		beside.Clusters[f.ID.Source] = dep.Clusters[source]
		f.Positions.GroupID = string(f.ID.Source) + "-mm2"
		f.Positions.ProgressGroup = ""
		f.Positions.Topic = mirror.PositionsTopic(f.ID.Source)
		f.OffsetSyncs.Enabled = false
		f.Checkpoints = config.Checkpoints{}
		f.Heartbeats.Every = config.Every{}
		f.Topics.SyncACLs = config.Every{}
		beside.Flows = append(beside.Flows, f)
	}
	return &beside
}

// verifyCanary compares MirrorMaker's copies with the canary's beside them.
func verifyCanary(ctx context.Context, f *config.Flow, o VerifyOptions, topics mirror.Patterns, log *slog.Logger) (*verify.Report, error) {
	from, to := Sides(f)
	sides, err := openPair(f.ID, from, to, nil, log)
	if err != nil {
		return nil, err
	}
	defer sides.close()
	v := verification{f: f, pair: sides, log: log}
	pairs, notes, err := v.pairs(ctx, topics, len(o.Topics) > 0)
	if err != nil {
		return nil, err
	}
	counts, err := partitionCounts(ctx, v)
	if err != nil {
		return nil, err
	}
	policy := mirror.Canary(f.Policy, f.ID.Source)
	beside := make([]verify.Pair, 0, len(pairs))
	for _, p := range pairs {
		if f.Policy.IsHeartbeatsTopic(p.Source) {
			continue // the canary leaves heartbeats to MirrorMaker
		}
		canary := policy.RemoteTopic(f.ID.Source, p.Source)
		beside = append(beside, verify.Pair{
			Source: p.Target, Target: canary, Partitions: counts[p.Target], TargetPartitions: counts[canary],
			Compacted: p.Compacted, Deletes: p.Deletes,
		})
	}
	vo := verify.Options{
		Flow: f.ID, Pairs: beside, Isolation: kafka.ReadCommitted, Wait: o.Wait,
		BytesPerSecond: o.BytesPerSecond, ShowRecords: o.ShowRecords,
	}
	o.watch(f, &vo)
	r, err := verify.Run(ctx, reader{v.target}, reader{v.target}, vo)
	if err != nil {
		return nil, err
	}
	r.Notes = append(append(notes, fmt.Sprintf("MirrorMaker's copies on %s are the source of this comparison, the canary's its target", f.ID.Target)), r.Notes...)
	return r, nil
}

// partitionCounts are the target's topics with their numbers of partitions.
func partitionCounts(ctx context.Context, v verification) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	topics, err := v.target.Topics(ctx)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32, len(topics))
	for _, t := range topics {
		counts[t.Name] = int32(len(t.Partitions))
	}
	return counts, nil
}
