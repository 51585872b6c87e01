package flow

import (
	"log/slog"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
)

// Spec is everything a flow needs to know, resolved and validated. An interval
// of zero means that the job is off.
type Spec struct {
	ID mirror.FlowID
	// Enabled is false for a pair that only writes heartbeats.
	Enabled bool

	Policy    mirror.ReplicationPolicy
	Selection mirror.TopicSelection
	Groups    mirror.GroupFilter
	Configs   mirror.ConfigFilter

	Topics      TopicSpec
	Heartbeats  HeartbeatSpec
	OffsetSyncs OffsetSyncSpec
	Checkpoints CheckpointSpec
	Positions   PositionSpec
	Data        DataSpec
	Losses      LossSpec

	// BytesPerSecond caps this flow; zero is no cap.
	BytesPerSecond int64
	// settle is set by [Flow.Settle].
	settle bool
}

// TopicSpec says how remote topics are found, made and kept in step.
type TopicSpec struct {
	RefreshEvery      time.Duration
	SyncConfigsEvery  time.Duration
	SyncACLsEvery     time.Duration
	ReplicationFactor int16 // -1: the target's default
	// DefaultsFromSource copies the source's default configs explicitly (use.defaults.from=source).
	DefaultsFromSource bool
	// HoldDeletions is how long a synced setting that can delete data on the
	// target is held back unless accepted; zero applies it at once.
	HoldDeletions time.Duration
	// AdminRequestsPerSecond bounds the admin requests of the loops, per cluster.
	AdminRequestsPerSecond int
}

// HeartbeatSpec says whether and how often this pair writes heartbeats.
type HeartbeatSpec struct {
	Every             time.Duration
	ReplicationFactor int16
}

// OffsetSyncSpec says where and how densely offset syncs are written.
type OffsetSyncSpec struct {
	Enabled           bool
	OnSource          bool // offset-syncs.topic.location=source
	LagMax            int64
	ReplicationFactor int16
}

// CheckpointSpec says how groups are followed.
type CheckpointSpec struct {
	EmitEvery          time.Duration // zero: no checkpoints
	RefreshGroupsEvery time.Duration
	SyncGroupsEvery    time.Duration // zero: group offsets are not written to the target
	SyncDeletions      bool          // groups deleted on the source are deleted on the target
	ReplicationFactor  int16
}

// PositionSpec says where and how often positions are kept.
type PositionSpec struct {
	GroupID           string // the lane group, MirrorMaker's worker group
	ProgressGroup     string // on the source, tells how far we have copied; empty: off
	Topic             string // mm2-offsets.<source>.internal
	Partitions        int32  // the number of lanes of a topic made by us
	ReplicationFactor int16
	CommitEvery       time.Duration
	// JavaTasks is how many tasks MirrorMaker ran of this file at most.
	JavaTasks int32
}

// LossSpec says what happens where records cannot be copied, or may have been
// already.
type LossSpec struct {
	Policy
	// Topics are policies of some source topics. The first that names a topic
	// stands in the flow's place.
	Topics []TopicPolicy
	// DeadLetters is the topic on the target that keeps poison.
	DeadLetters string
}

// Policy is a policy for losses, and for a place that is not known.
type Policy struct {
	losses.Policy
	// Missing is what to do where the target holds data and no position is known.
	Missing plan.Choice
}

// TopicPolicy is the policy of the topics that match.
type TopicPolicy struct {
	Topics mirror.Patterns
	Policy
}

// For is the policy of a source topic.
func (s LossSpec) For(topic string) Policy {
	for _, p := range s.Topics {
		if p.Topics.Match(topic) {
			return p.Policy
		}
	}
	return s.Policy
}

// DataSpec says how records are read and written.
type DataSpec struct {
	Isolation kafka.Isolation
	// StartAtLatest starts partitions without a position at their end
	// (auto.offset.reset=latest). Topics born while the flow runs are read from
	// their start all the same.
	StartAtLatest     bool
	FetchMaxBytes     int32
	PartitionMaxBytes int32
	FetchMaxWait      time.Duration
	MaxRequestBytes   int32 // of a produce request
	RequestTimeout    time.Duration
	// Codec compresses all data anew ("none", "gzip", "snappy", "lz4", "zstd");
	// empty keeps each batch's own.
	Codec string
	// ExactlyOnce delivers in transactions (exactly.once.source.support=enabled).
	ExactlyOnce bool
}

// Reset is where a partition without a position starts.
func (s DataSpec) Reset() plan.Reset {
	if s.StartAtLatest {
		return plan.ResetLatest
	}
	return plan.ResetEarliest
}

// Deps are the live things a flow works with. The clients are shared between
// flows; the flow closes none of them.
type Deps struct {
	Source, Target *cluster.Client
	// Budget bounds the process's memory for record data. The source client
	// takes from it.
	Budget *replicate.Budget
	// Brakes are the caps above this flow's own: the process's and the clusters'.
	Brakes []*replicate.Brake
	Log    *slog.Logger
	// Host names this instance among the flow's instances, stable over restarts.
	Host string
	// Refused says whether a person has refused to make a held change of a copy's setting, to
	// that value; nil: nobody remembers any.
	Refused func(key plan.HoldKey, wish string) bool
}
