package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Answer is what a cluster said about a permission.
type Answer string

// The answers. A right to write cannot be asked for without writing.
const (
	Granted  Answer = "granted"
	Missing  Answer = "missing"
	NotAsked Answer = "not asked"
)

// Permission is one thing a flow must be allowed to do.
type Permission struct {
	Cluster    mirror.ClusterAlias `json:"cluster"`
	Resource   string              `json:"resource"`
	Operations string              `json:"operations"`
	For        string              `json:"for"`
	Answer     Answer              `json:"answer"`
	Why        string              `json:"why,omitempty"` // with Missing, and with NotAsked where it was tried
}

// askTimeout bounds all questions about one flow.
const askTimeout = 30 * time.Second

// sampleTopics bounds the topics whose read permission is tried.
const sampleTopics = 1000

// asker collects a flow's permissions.
type asker struct {
	f     *config.Flow
	sides pair
	found []Permission
}

// askPermissions lists what a flow needs and asks what can be asked without
// writing: by describing, and by fetching a byte.
func askPermissions(ctx context.Context, f *config.Flow, sides pair) []Permission {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	a := &asker{f: f, sides: sides}
	if f.Enabled {
		topics := a.askSource(ctx)
		a.askTarget(ctx, topics)
	}
	if f.Heartbeats.Every.On() {
		a.note(f.ID.Target, "topic "+f.Policy.HeartbeatsTopic(), "CREATE, WRITE, DESCRIBE", "write heartbeats", NotAsked, "")
	}
	return a.found
}

func (a *asker) note(on mirror.ClusterAlias, resource, operations, use string, answer Answer, why string) {
	a.found = append(a.found, Permission{on, resource, operations, use, answer, why})
}

// probe notes a permission by the error of a request that needs it.
func (a *asker) probe(on mirror.ClusterAlias, resource, operations, use string, err error) {
	switch code := kafka.CodeOf(err); {
	case err == nil, code == kafka.CodeGroupIDNotFound: // who may not look is not told that there is none
		a.note(on, resource, operations, use, Granted, "")
	case isRefusal(code):
		a.note(on, resource, operations, use, Missing, code.String())
	default:
		a.note(on, resource, operations, use, NotAsked, err.Error())
	}
}

func isRefusal(c kafka.Code) bool {
	switch c {
	case kafka.CodeTopicAuthorizationFailed, kafka.CodeGroupAuthorizationFailed,
		kafka.CodeClusterAuthorizationFailed, kafka.CodeTransactionalIDAuthorizationFailed:
		return true
	}
	return false
}

// askSource returns the topics that the flow copies.
func (a *asker) askSource(ctx context.Context) []kafka.TopicDetail {
	on, c := a.f.ID.Source, a.sides.source
	all, err := c.Topics(ctx)
	if err != nil {
		a.probe(on, "topics", "DESCRIBE", "find topics", err)
		return nil
	}
	matched := slices.DeleteFunc(all, func(t kafka.TopicDetail) bool {
		ok, _ := a.f.Selection.Replicates(t.Name)
		return !ok || t.Internal
	})
	a.refused(on, "DESCRIBE", "find topics", matched, func(t kafka.TopicDetail) error { return t.Code.Err() })
	configs, err := c.TopicConfigs(ctx, names(matched)...)
	if err != nil {
		a.probe(on, "topics", "DESCRIBE_CONFIGS", "copy settings", err)
	} else {
		a.refused(on, "DESCRIBE_CONFIGS", "copy settings", matched, func(t kafka.TopicDetail) error { return configs[t.Name].Err })
	}
	codes := tryReading(ctx, c, matched)
	a.refused(on, "READ", "copy records", matched, func(t kafka.TopicDetail) error { return codes[t.Name].Err() })
	if a.f.Topics.SyncACLs.On() {
		_, err := c.DescribeACLs(ctx)
		if kafka.CodeOf(err) != kafka.CodeSecurityDisabled {
			a.probe(on, "cluster", "DESCRIBE", "copy topic ACLs", err)
		}
	}
	if a.f.Checkpoints.Emit.On() {
		a.askGroups(ctx)
	}
	if a.f.OffsetSyncs.Enabled && a.f.OffsetSyncs.OnSource {
		a.note(on, "topic "+a.f.Policy.OffsetSyncsTopic(a.f.ID.Target), "CREATE, WRITE, READ, DESCRIBE",
			"keep offset syncs on the source (offset-syncs.topic.location)", NotAsked, "")
	}
	return matched
}

func (a *asker) askGroups(ctx context.Context) {
	on, c := a.f.ID.Source, a.sides.source
	groups, err := c.ListGroups(ctx)
	a.probe(on, "cluster or groups", "DESCRIBE", "list consumer groups", err)
	var followed []string
	for _, g := range groups {
		if a.f.Groups.Accepts(g.Group) {
			followed = append(followed, g.Group)
		}
	}
	var denied []string
	for group, o := range c.FetchGroupOffsets(ctx, followed...) {
		if isRefusal(kafka.CodeOf(o.Err)) {
			denied = append(denied, group)
		}
	}
	if len(denied) > 0 {
		slices.Sort(denied)
		a.note(on, "groups "+someOf(denied), "DESCRIBE", "read group offsets", Missing, kafka.CodeGroupAuthorizationFailed.String())
	}
}

// refused notes one permission for all topics, and by name those that lack it.
func (a *asker) refused(on mirror.ClusterAlias, operation, use string, topics []kafka.TopicDetail, errOf func(kafka.TopicDetail) error) {
	var denied []string
	for _, t := range topics {
		if isRefusal(kafka.CodeOf(errOf(t))) {
			denied = append(denied, t.Name)
		}
	}
	switch {
	case len(denied) > 0:
		a.note(on, "topics "+someOf(denied), operation, use, Missing, kafka.CodeTopicAuthorizationFailed.String())
	case len(topics) == 0:
		a.note(on, "topics", operation, use, NotAsked, "no topic is selected")
	default:
		a.note(on, "topics", operation, use, Granted, "")
	}
}

func (a *asker) askTarget(ctx context.Context, topics []kafka.TopicDetail) {
	on, c, f := a.f.ID.Target, a.sides.target, a.f
	have, err := c.Topics(ctx)
	a.probe(on, "topics", "DESCRIBE", "find copies", err)
	if n, ok := a.newTopic(have, topics); err == nil && ok {
		err := c.CreateTopics(ctx, []kafka.NewTopic{n}, true)[n.Name]
		if kafka.CodeOf(err) == kafka.CodeInvalidReplicationFactor {
			err = nil // the question was about the right
		}
		a.probe(on, "cluster or topics", "CREATE", "create copies", err)
	}
	a.note(on, "copies", "WRITE, ALTER, ALTER_CONFIGS", "write records, add partitions, keep settings in step", NotAsked, "")
	a.note(on, "topic "+f.Positions.Topic, "CREATE, READ, WRITE, DESCRIBE", "keep positions", NotAsked, "")
	a.probe(on, "group "+f.Positions.GroupID, "READ, DESCRIBE", "own lanes", c.FetchGroupOffsets(ctx, f.Positions.GroupID)[f.Positions.GroupID].Err)
	a.note(on, "transactional ids "+f.Positions.GroupID+"-"+mirror.SourceConnector+"-*", "WRITE, DESCRIBE",
		"fence a predecessor by a marker; without it by lease, wait and scan", NotAsked, "")
	if f.Checkpoints.Emit.On() {
		a.note(on, "topic "+f.Policy.CheckpointsTopic(f.ID.Source), "CREATE, READ, WRITE, DESCRIBE", "write checkpoints", NotAsked, "")
	}
	if f.OffsetSyncs.Enabled && !f.OffsetSyncs.OnSource {
		a.note(on, "topic "+f.Policy.OffsetSyncsTopic(f.ID.Source), "CREATE, READ, WRITE, DESCRIBE", "write offset syncs", NotAsked, "")
	}
	if f.Checkpoints.SyncGroups.On() {
		a.note(on, "the groups followed", "READ, DESCRIBE", "write group offsets", NotAsked, "")
	}
	if f.Topics.SyncACLs.On() {
		a.note(on, "cluster", "ALTER, DESCRIBE", "create topic ACLs", NotAsked, "")
	}
}

// newTopic is a copy that does not exist yet, to ask whether it could be created.
func (a *asker) newTopic(have, topics []kafka.TopicDetail) (kafka.NewTopic, bool) {
	exists := map[string]bool{}
	for _, t := range have {
		exists[t.Name] = true
	}
	for _, t := range topics {
		if remote := a.f.Policy.RemoteTopic(a.f.ID.Source, t.Name); !exists[remote] {
			return kafka.NewTopic{Name: remote, Partitions: 1, ReplicationFactor: -1}, true
		}
	}
	return kafka.NewTopic{}, false
}

// tryReading fetches a byte of one partition per topic and returns what the
// brokers answered. Topics without a leader, or past the sample, are left out.
func tryReading(ctx context.Context, c *cluster.Client, topics []kafka.TopicDetail) map[string]kafka.Code {
	byNode := map[int32][]kafka.FetchPartition{}
	for i := range topics {
		t := &topics[i]
		if i >= sampleTopics || len(t.Partitions) == 0 || t.Partitions[0].Leader == kafka.NoNode {
			continue
		}
		p := t.Partitions[0]
		byNode[p.Leader] = append(byNode[p.Leader], kafka.FetchPartition{
			TopicPartition: kafka.TopicPartition{Topic: t.Name, Partition: p.Partition}, TopicID: t.ID,
			CurrentEpoch: kafka.NoLeaderEpoch, LastFetchedEpoch: kafka.NoLeaderEpoch, MaxBytes: 1,
		})
	}
	codes := map[string]kafka.Code{}
	for node, partitions := range byNode {
		// A node that does not answer leaves its topics without a code.
		_ = fetchByte(ctx, c, node, partitions, codes)
	}
	return codes
}

func fetchByte(ctx context.Context, c *cluster.Client, node int32, partitions []kafka.FetchPartition, codes map[string]kafka.Code) error {
	conn, err := c.DialFetch(ctx, node)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, p := range partitions {
		conn.Want(p)
	}
	answer, err := conn.Fetch(ctx, kafka.FetchLimits{MaxWaitMillis: 1, MinBytes: 0, MaxBytes: 1})
	if err != nil {
		return err
	}
	defer answer.Buffer.Release()
	for _, p := range answer.Partitions {
		codes[p.Topic] = p.Code
	}
	return nil
}

func names(topics []kafka.TopicDetail) []string {
	out := make([]string, len(topics))
	for i := range topics {
		out[i] = topics[i].Name
	}
	return out
}

// someOf names a few and counts the rest.
func someOf(all []string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
