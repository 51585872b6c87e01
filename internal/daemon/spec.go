package daemon

import (
	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/losses"
	"heliograph/internal/plan"
)

// adminRequestsPerSecond bounds what a flow's loops ask of one cluster, so that
// short intervals on a cluster with thousands of topics do not load its controller.
const adminRequestsPerSecond = 20

// specOf is a flow's specification. A job whose switch is off has no interval.
func specOf(f *config.Flow) flow.Spec {
	return flow.Spec{
		ID:        f.ID,
		Enabled:   f.Enabled,
		Policy:    f.Policy,
		Selection: f.Selection,
		Groups:    f.Groups,
		Configs:   f.Configs,
		Topics: flow.TopicSpec{
			RefreshEvery:           f.Topics.Refresh.Interval,
			SyncConfigsEvery:       f.Topics.SyncConfigs.Interval,
			SyncACLsEvery:          f.Topics.SyncACLs.Interval,
			ReplicationFactor:      f.Topics.ReplicationFactor,
			DefaultsFromSource:     f.Topics.DefaultsFromSource,
			HoldDeletions:          f.Topics.HoldDeletions,
			AdminRequestsPerSecond: adminRequestsPerSecond,
		},
		Heartbeats: flow.HeartbeatSpec{
			Every:             f.Heartbeats.Every.Interval,
			ReplicationFactor: f.Heartbeats.ReplicationFactor,
		},
		OffsetSyncs: flow.OffsetSyncSpec{
			Enabled:           f.OffsetSyncs.Enabled,
			OnSource:          f.OffsetSyncs.OnSource,
			LagMax:            f.OffsetSyncs.LagMax,
			ReplicationFactor: f.OffsetSyncs.ReplicationFactor,
		},
		Checkpoints: flow.CheckpointSpec{
			EmitEvery:          f.Checkpoints.Emit.Interval,
			RefreshGroupsEvery: f.Checkpoints.RefreshGroups.Interval,
			SyncGroupsEvery:    f.Checkpoints.SyncGroups.Interval,
			SyncDeletions:      f.Checkpoints.SyncDeletions,
			ReplicationFactor:  f.Checkpoints.ReplicationFactor,
		},
		Positions: flow.PositionSpec{
			GroupID:           f.Positions.GroupID,
			ProgressGroup:     f.Positions.ProgressGroup,
			Topic:             f.Positions.Topic,
			Partitions:        f.Positions.Partitions,
			ReplicationFactor: f.Positions.ReplicationFactor,
			CommitEvery:       f.Positions.Commit.Interval,
			JavaTasks:         f.TasksMax.Or(1),
		},
		Data:           dataSpec(f),
		Losses:         lossSpec(f.Losses),
		BytesPerSecond: f.BytesPerSecond,
	}
}

func lossSpec(l config.Losses) flow.LossSpec {
	out := flow.LossSpec{Policy: policyOf(l.Policy), DeadLetters: l.DeadLetters}
	for _, t := range l.Topics {
		out.Topics = append(out.Topics, flow.TopicPolicy{Topics: t.Topics, Policy: policyOf(t.Policy)})
	}
	return out
}

func policyOf(p config.Policy) flow.Policy {
	return flow.Policy{
		Policy: losses.Policy{
			Poison: losses.Poison(p.Poison), ParkOvertaken: p.Overtaken == config.OvertakenPark, ParkForeign: p.ForeignWriter == config.ForeignPark,
			RestartSource: p.SourceRecreated == config.RecreatedStart, RestartTarget: p.TargetRecreated == config.RecreatedStart,
		},
		Missing: plan.Choice(p.Missing),
	}
}

// dataSpec leaves a zero where the file is silent: the data plane has its own defaults.
func dataSpec(f *config.Flow) flow.DataSpec {
	d := f.Data
	return flow.DataSpec{
		Codec:             d.Compression.Or(""),
		ExactlyOnce:       f.ExactlyOnce == config.ExactlyOnceEnabled,
		Isolation:         d.Isolation,
		StartAtLatest:     d.StartAtLatest,
		FetchMaxBytes:     d.FetchMaxBytes.Or(0),
		PartitionMaxBytes: d.PartitionMaxBytes.Or(0),
		FetchMaxWait:      d.FetchMaxWait.Or(0),
		MaxRequestBytes:   d.MaxRequestBytes.Or(0),
		RequestTimeout:    d.RequestTimeout.Or(0),
	}
}
