package ovh

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
)

// topic is cloud.project.database.kafka.Topic.
type topic struct {
	ID                string `json:"id"`
	Name              string `json:"name"`
	Partitions        int64  `json:"partitions"`
	Replication       int64  `json:"replication"`
	MinInsyncReplicas int64  `json:"minInsyncReplicas"`
	RetentionBytes    int64  `json:"retentionBytes"` // -1: no bound
	RetentionHours    int64  `json:"retentionHours"` // -1: for ever
}

// Kafka's names of a topic's settings.
const (
	configMinInsync      = "min.insync.replicas"
	configRetentionBytes = "retention.bytes"
	configRetentionTime  = "retention.ms"
)

// topicID is the id that the brokers gave the topic, or one made from its name where
// they give none (before 2.8).
func topicID(alias string, t kafka.TopicDetail) string {
	if t.ID.Known() {
		return dashed(t.ID)
	}
	return idOf("topic", alias, t.Name)
}

// userTopics are the topics that are not the brokers' own.
func userTopics(ctx context.Context, cl *cluster.Client) ([]kafka.TopicDetail, error) {
	all, err := cl.Topics(ctx)
	all = slices.DeleteFunc(all, func(t kafka.TopicDetail) bool { return t.Internal || t.Code != kafka.CodeNone })
	slices.SortFunc(all, func(a, b kafka.TopicDetail) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

func listTopics(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	topics, err := userTopics(c.Context(), cl)
	if err != nil {
		return nil, err
	}
	ids := []string{}
	for _, t := range topics {
		ids = append(ids, topicID(k.alias, t))
	}
	return ids, nil
}

// topicOf is the topic that the path names.
func topicOf(c *call, k kafkaService, cl *cluster.Client) (kafka.TopicDetail, error) {
	id := c.PathValue("topicId")
	topics, err := userTopics(c.Context(), cl)
	if err != nil {
		return kafka.TopicDetail{}, err
	}
	for _, t := range topics {
		if topicID(k.alias, t) == id {
			return t, nil
		}
	}
	return kafka.TopicDetail{}, notFound(classNotFound, "there is no topic %s on Kafka service %s", id, k.id)
}

// describe adds a topic's settings to what the metadata tells.
func describe(ctx context.Context, k kafkaService, cl *cluster.Client, t kafka.TopicDetail) (topic, error) {
	configs, err := cl.TopicConfigs(ctx, t.Name)
	if err != nil {
		return topic{}, err
	}
	if err := configs[t.Name].Err; err != nil {
		return topic{}, err
	}
	out := topic{ID: topicID(k.alias, t), Name: t.Name, Partitions: int64(len(t.Partitions))}
	for _, p := range t.Partitions {
		out.Replication = max(out.Replication, int64(len(p.Replicas)))
	}
	for _, e := range configs[t.Name].Entries {
		n, err := strconv.ParseInt(e.Value, 10, 64)
		if err != nil {
			continue
		}
		switch e.Name {
		case configMinInsync:
			out.MinInsyncReplicas = n
		case configRetentionBytes:
			out.RetentionBytes = n
		case configRetentionTime:
			if out.RetentionHours = -1; n >= 0 {
				out.RetentionHours = n / time.Hour.Milliseconds()
			}
		}
	}
	return out, nil
}

func getTopic(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	t, err := topicOf(c, k, cl)
	if err != nil {
		return nil, err
	}
	return describe(c.Context(), k, cl, t)
}

// topicBody is what a request says about a topic.
type topicBody struct {
	partitions, replication int64 // zero: not said
	configs                 map[string]string
}

func readTopic(b body) topicBody {
	t := topicBody{configs: map[string]string{}}
	t.partitions, _ = b.Within("partitions", 1, 100_000)
	t.replication, _ = b.Within("replication", 1, math.MaxInt16)
	if n, ok := b.Within("minInsyncReplicas", 1, math.MaxInt16); ok {
		t.configs[configMinInsync] = strconv.FormatInt(n, 10)
	}
	if n, ok := b.Long("retentionBytes"); ok {
		if n < -1 {
			b.Fail("retentionBytes", "must be -1 for no bound, or more")
		}
		t.configs[configRetentionBytes] = strconv.FormatInt(n, 10)
	}
	if n, ok := b.Long("retentionHours"); ok {
		if n < -1 || n > math.MaxInt64/time.Hour.Milliseconds() {
			b.Fail("retentionHours", "must be -1 for ever, or a number of hours")
		}
		t.configs[configRetentionTime] = strconv.FormatInt(max(n*time.Hour.Milliseconds(), -1), 10)
	}
	return t
}

// topicPattern is what Kafka takes as a name, "." and ".." left out.
var topicPattern = regexp.MustCompile(`^([A-Za-z0-9_-]|\.[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]{0,246}$`)

func (h *Handler) createTopic(c *call) (any, error) {
	b := c.body()
	name := b.Required("name")
	if !topicPattern.MatchString(name) {
		b.Fail("name", "%q is not a topic's name: letters, digits, dots, underscores and dashes, at most 249", name)
	}
	b.Text("id") // read-only, and made by the brokers
	said := readTopic(b)
	if err := b.Done(); err != nil {
		return nil, err
	}
	k, cl, err := h.open(c)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx := c.Context()
	asked := kafka.NewTopic{
		Name: name, Partitions: int32(cmp.Or(said.partitions, -1)), ReplicationFactor: int16(cmp.Or(said.replication, -1)), Configs: said.configs,
	}
	if err := cl.CreateTopics(ctx, []kafka.NewTopic{asked}, false)[name]; err != nil {
		return nil, err
	}
	return awaitTopic(ctx, k, cl, name, func(kafka.TopicDetail) bool { return true })
}

// awaitTopic describes a topic as soon as the cluster's metadata shows the change
// that was made.
func awaitTopic(ctx context.Context, k kafkaService, cl *cluster.Client, name string, shown func(kafka.TopicDetail) bool) (any, error) {
	var t kafka.TopicDetail
	err := await(ctx, func() (bool, error) {
		topics, err := userTopics(ctx, cl)
		i := slices.IndexFunc(topics, func(t kafka.TopicDetail) bool { return t.Name == name })
		if err != nil || i < 0 {
			return false, err
		}
		t = topics[i]
		return shown(t), nil
	})
	if err != nil {
		return nil, err
	}
	return describe(ctx, k, cl, t)
}

func updateTopic(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	ctx := c.Context()
	t, err := topicOf(c, k, cl)
	if err != nil {
		return nil, err
	}
	now, err := describe(ctx, k, cl, t)
	if err != nil {
		return nil, err
	}
	b := c.body()
	b.Fixed("id", now.ID)
	b.Fixed("name", now.Name)
	said := readTopic(b)
	if said.replication != 0 && said.replication != now.Replication {
		b.Fail("replication", "cannot be changed here: reassign the partitions with Kafka's own tools")
	}
	if said.partitions != 0 && said.partitions < now.Partitions {
		b.Fail("partitions", "cannot be lowered: the topic has %d", now.Partitions)
	}
	if err := b.Done(); err != nil {
		return nil, err
	}
	// What can be refused for more reasons comes first.
	want := cmp.Or(said.partitions, now.Partitions)
	if want > now.Partitions {
		if err := cl.CreatePartitions(ctx, map[string]int32{t.Name: int32(want)})[t.Name]; err != nil {
			return nil, err
		}
	}
	var changes []kafka.ConfigChange
	for name, value := range said.configs {
		changes = append(changes, kafka.ConfigChange{Name: name, Value: value})
	}
	if len(changes) > 0 {
		if err := cl.AlterTopicConfigs(ctx, map[string][]kafka.ConfigChange{t.Name: changes})[t.Name]; err != nil {
			return nil, err
		}
	}
	return awaitTopic(ctx, k, cl, t.Name, func(t kafka.TopicDetail) bool { return int64(len(t.Partitions)) == want })
}

func deleteTopic(c *call, k kafkaService, cl *cluster.Client) (any, error) {
	t, err := topicOf(c, k, cl)
	if err != nil {
		return nil, err
	}
	return nil, cl.DeleteTopics(c.Context(), t.Name)[t.Name]
}
