package syncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

// positionPartitions is how many partitions, and so lanes, MirrorMaker gives its
// positions topic.
const positionPartitions = 25

// InternalTopic is a compacted topic that MirrorMaker, and we, keep books in.
type InternalTopic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	Configs           map[string]string // besides cleanup.policy=compact
	FactorKey         string            // the configuration key of ReplicationFactor, for the hint
	// Strict refuses an existing topic that is not exactly compacted: positions
	// in it would be deleted by retention.
	Strict bool
}

// PositionsTopic describes mm2-offsets.<source>.internal on the target. Zero
// partitions means MirrorMaker's 25.
func PositionsTopic(source mirror.ClusterAlias, partitions int32, factor int16) InternalTopic {
	if partitions == 0 {
		partitions = positionPartitions
	}
	return InternalTopic{
		Name: mirror.PositionsTopic(source), Partitions: partitions, ReplicationFactor: factor,
		FactorKey: "offset.storage.replication.factor", Strict: true,
		// Whoever takes a lane over reads it whole: only closed segments are compacted.
		Configs: map[string]string{"segment.bytes": "4194304", "min.cleanable.dirty.ratio": "0.2"},
	}
}

// HeartbeatsTopic describes the heartbeats topic on the target of a pair.
func HeartbeatsTopic(policy mirror.ReplicationPolicy, factor int16) InternalTopic {
	return InternalTopic{Name: policy.HeartbeatsTopic(), Partitions: 1, ReplicationFactor: factor, FactorKey: "heartbeats.topic.replication.factor"}
}

// CheckpointsTopic describes the checkpoints topic on the target of a flow.
func CheckpointsTopic(policy mirror.ReplicationPolicy, source mirror.ClusterAlias, factor int16) InternalTopic {
	return InternalTopic{Name: policy.CheckpointsTopic(source), Partitions: 1, ReplicationFactor: factor, FactorKey: "checkpoints.topic.replication.factor"}
}

// OffsetSyncsTopic describes the offset syncs topic. Its name carries the alias
// of the other cluster: the target's where it lies on the source, and the reverse.
func OffsetSyncsTopic(policy mirror.ReplicationPolicy, flow mirror.FlowID, onSource bool, factor int16) InternalTopic {
	other := flow.Source
	if onSource {
		other = flow.Target
	}
	return InternalTopic{Name: policy.OffsetSyncsTopic(other), Partitions: 1, ReplicationFactor: factor, FactorKey: "offset-syncs.topic.replication.factor"}
}

// InternalTopics keeps the bookkeeping topics of one flow on one cluster: made
// before their first use, and again where somebody deletes them.
type InternalTopics struct {
	cluster    mirror.ClusterAlias
	admin      InternalAdmin
	topics     []InternalTopic
	budget     *Budget
	log        *slog.Logger
	conditions *Conditions
}

// NewInternalTopics makes the job.
func NewInternalTopics(cluster mirror.ClusterAlias, admin InternalAdmin, topics []InternalTopic, budget *Budget, log *slog.Logger) *InternalTopics {
	return &InternalTopics{cluster: cluster, admin: admin, topics: topics, budget: budget, log: log, conditions: NewConditions(log)}
}

// RunOnce makes the topics that are missing. It names every topic that could
// neither be found nor made. A right that is missing to make or describe a topic
// is not among these: the topic may exist, or be made by somebody else.
func (s *InternalTopics) RunOnce(ctx context.Context, now time.Time) error {
	if len(s.topics) == 0 {
		return nil
	}
	if err := s.budget.Take(ctx); err != nil {
		return err
	}
	names := make([]string, len(s.topics))
	for i, t := range s.topics {
		names[i] = t.Name
	}
	found, err := s.admin.TopicConfigs(ctx, names...)
	if err != nil {
		return located("read topic configs", s.cluster, err)
	}
	var missing []InternalTopic
	var errs []error
	for _, t := range s.topics {
		switch c := found[t.Name]; {
		case c.Err != nil || len(c.Entries) == 0:
			missing = append(missing, t)
		default:
			errs = append(errs, t.verify(s.cluster, c.Entries))
		}
	}
	if len(missing) > 0 {
		errs = append(errs, s.create(ctx, now, missing)...)
	}
	return errors.Join(errs...)
}

// verify refuses a strict topic that deletes.
func (t InternalTopic) verify(cluster mirror.ClusterAlias, entries []kafka.ConfigEntry) error {
	for _, e := range entries {
		if t.Strict && e.Name == "cleanup.policy" && strings.TrimSpace(e.Value) != "compact" {
			return &kafka.Error{
				Op: "use internal topic", Cluster: string(cluster), Subject: t.Name, Class: kafka.ClassOperator,
				Err:  fmt.Errorf("its cleanup.policy is %q and positions in it would be deleted", e.Value),
				Hint: fmt.Sprintf("set cleanup.policy=compact on topic %s", t.Name),
			}
		}
	}
	return nil
}

func (s *InternalTopics) create(ctx context.Context, now time.Time, missing []InternalTopic) []error {
	if err := s.budget.Take(ctx); err != nil {
		return []error{err}
	}
	ask := make([]kafka.NewTopic, len(missing))
	for i, t := range missing {
		configs := map[string]string{"cleanup.policy": "compact"}
		maps.Copy(configs, t.Configs)
		ask[i] = kafka.NewTopic{Name: t.Name, Partitions: t.Partitions, ReplicationFactor: t.ReplicationFactor, Configs: configs}
	}
	outcome := s.admin.CreateTopics(ctx, ask, false)
	var errs []error
	for _, t := range missing {
		err := outcome[t.Name]
		attrs := []slog.Attr{slog.String(telemetry.KeyCluster, string(s.cluster)), slog.String(telemetry.KeyTopic, t.Name)}
		switch {
		case err == nil:
			s.conditions.Report(now, t.Name, nil, attrs...)
			s.log.LogAttrs(ctx, slog.LevelInfo, "internal topic created", attrs...)
		case kafka.CodeOf(err) == kafka.CodeTopicAlreadyExists:
			s.conditions.Report(now, t.Name, nil, attrs...)
		case assumesTopic(kafka.CodeOf(err)):
			s.conditions.Report(now, t.Name, fmt.Errorf("internal topic %s cannot be created on cluster %s: %s (grant CREATE on it, or create it with cleanup.policy=compact and %s)",
				t.Name, s.cluster, kafka.CauseOf(err), counted(int(t.Partitions), "partition")), attrs...)
		default:
			errs = append(errs, explainFactor(ctx, s.admin, s.cluster, askedFactor{t.Name, t.ReplicationFactor, t.FactorKey}, err))
		}
	}
	return errs
}

// assumesTopic reports the refusals after which the topic may exist all the same.
func assumesTopic(c kafka.Code) bool {
	switch c {
	case kafka.CodeUnsupportedVersion, kafka.CodeTopicAuthorizationFailed, kafka.CodeClusterAuthorizationFailed:
		return true
	}
	return false
}

// askedFactor is the replication factor asked for a topic, and the
// configuration key it comes from.
type askedFactor struct {
	topic  string
	factor int16
	key    string
}

// explainFactor adds to a refused replication factor how many brokers there are
// and which factor would fit.
func explainFactor(ctx context.Context, admin Creator, cluster mirror.ClusterAlias, asked askedFactor, err error) error {
	if kafka.CodeOf(err) != kafka.CodeInvalidReplicationFactor {
		return located("create topic "+asked.topic, cluster, err)
	}
	e := &kafka.Error{Op: "create topic", Cluster: string(cluster), Subject: asked.topic, Code: kafka.CodeInvalidReplicationFactor}
	brokers, listErr := admin.Brokers(ctx)
	if listErr != nil || len(brokers) == 0 {
		e.Hint = fmt.Sprintf("set %s to at most the number of brokers", asked.key)
		return e
	}
	e.Err = fmt.Errorf("replication factor %d does not fit a cluster with %s", asked.factor, counted(len(brokers), "broker"))
	e.Hint = fmt.Sprintf("set %s=%d", asked.key, len(brokers))
	return e
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
