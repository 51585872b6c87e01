package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"heliograph/internal/kafka"
)

func TestFakeClusterConforms(t *testing.T) {
	_, c := fake(t, nil)
	conformance(t, c)
}

// conformance asks a cluster for everything the planes need and checks the
// answers. It runs on the fake cluster here and on real brokers under the build
// tag e2e. The cluster must have authorisation and hold nothing called suite-*.
func conformance(t *testing.T, c *Client) {
	topic := fmt.Sprintf("suite-%d", time.Now().UnixNano())
	makeTopic(t, c, topic)
	t.Run("topics", func(t *testing.T) { conformTopics(t, c, topic) })
	t.Run("configs", func(t *testing.T) { conformConfigs(t, c, topic) })
	t.Run("offsets", func(t *testing.T) { conformOffsets(t, c, topic) })
	t.Run("groups", func(t *testing.T) { conformGroups(t, c, topic) })
	t.Run("transactions", func(t *testing.T) { conformTransactions(t, c, topic) })
	t.Run("records", func(t *testing.T) { conformRecords(t, c, topic) })
}

func makeTopic(t *testing.T, c *Client, topic string) {
	t.Helper()
	ctx := deadline(t)
	errs := c.CreateTopics(ctx, []kafka.NewTopic{
		{Name: topic, Partitions: 2, ReplicationFactor: -1, Configs: map[string]string{"max.message.bytes": "2000000"}},
	}, false)
	if errs[topic] != nil {
		t.Fatal(errs[topic])
	}
	errs = c.CreateTopics(ctx, []kafka.NewTopic{{Name: topic, Partitions: 2, ReplicationFactor: -1}}, true)
	wantCode(t, errs[topic], kafka.CodeTopicAlreadyExists)
	errs = c.CreatePartitions(ctx, map[string]int32{topic: 3, "suite-missing": 3})
	if errs[topic] != nil {
		t.Fatal(errs[topic])
	}
	wantCode(t, errs["suite-missing"], kafka.CodeUnknownTopicOrPartition)
	awaitLeaders(t, c, topic, 3)
}

// awaitLeaders waits until the brokers themselves lead what metadata says:
// right after a creation they learn of it a little later.
func awaitLeaders(t *testing.T, c *Client, topic string, partitions int32) {
	t.Helper()
	ctx := deadline(t)
	for p := range partitions {
		tp := kafka.TopicPartition{Topic: topic, Partition: p}
		for {
			err := c.ListOffsets(ctx, []kafka.TopicPartition{tp}, kafka.Latest, kafka.ReadUncommitted)[tp].Err
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
}

func wantCode(t *testing.T, err error, code kafka.Code) {
	t.Helper()
	if kafka.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
	var e *kafka.Error
	if err != nil && (!errors.As(err, &e) || e.Cluster != "west" || e.Op == "" || e.Subject == "") {
		t.Errorf("%v does not name operation, cluster and subject", err)
	}
}

func conformTopics(t *testing.T, c *Client, topic string) {
	ctx := deadline(t)
	f, err := c.Features(ctx)
	if err != nil || f.ClusterID == "" || f.Brokers == 0 || f.Version == "" || !f.Transactions || !f.IncrementalAlterConfigs {
		t.Errorf("features %+v, %v", f, err)
	}
	brokers, err := c.Brokers(ctx)
	if err != nil || len(brokers) != f.Brokers {
		t.Errorf("brokers %+v, %v", brokers, err)
	}
	topics, err := c.Topics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(topics, func(d kafka.TopicDetail) bool { return d.Name == topic })
	if i < 0 || len(topics[i].Partitions) != 3 || topics[i].ID.Known() != f.TopicIDs {
		t.Fatalf("%d of %+v", i, topics)
	}
	for _, p := range topics[i].Partitions {
		tp := kafka.TopicPartition{Topic: topic, Partition: p.Partition}
		node, id := leaderOf(t, c, tp)
		if node != p.Leader || id != topics[i].ID || len(p.Replicas) == 0 || len(p.ISR) == 0 {
			t.Errorf("%s: %+v, cached leader %d id %s", tp, p, node, id)
		}
	}
	if err := c.RefreshMetadata(ctx, "suite-missing"); err != nil {
		t.Error(err)
	}
	if _, _, _, ok := c.Leader(kafka.TopicPartition{Topic: "suite-missing"}); ok {
		t.Error("a missing topic has a leader")
	}
}

func conformConfigs(t *testing.T, c *Client, topic string) {
	ctx := deadline(t)
	all, err := c.TopicConfigs(ctx, topic, "suite-missing")
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, all["suite-missing"].Err, kafka.CodeUnknownTopicOrPartition)
	if e := entry(all[topic].Entries, "max.message.bytes"); e.Value != "2000000" || e.Source != kafka.ConfigTopic {
		t.Errorf("%+v", e)
	}
	errs := c.AlterTopicConfigs(ctx, map[string][]kafka.ConfigChange{
		topic: {{Name: "retention.ms", Value: "86400000"}, {Name: "max.message.bytes", Delete: true}},
	})
	if errs[topic] != nil {
		t.Fatal(errs[topic])
	}
	for { // configs reach the brokers of a real cluster a little later
		if all, err = c.TopicConfigs(ctx, topic); err != nil {
			t.Fatal(err)
		}
		kept, reset := entry(all[topic].Entries, "retention.ms"), entry(all[topic].Entries, "max.message.bytes")
		if kept.Value == "86400000" && kept.Source == kafka.ConfigTopic && reset.Source != kafka.ConfigTopic {
			break
		}
	}
}

func entry(entries []kafka.ConfigEntry, name string) kafka.ConfigEntry {
	for _, e := range entries {
		if e.Name == name {
			return e
		}
	}
	return kafka.ConfigEntry{}
}

func conformOffsets(t *testing.T, c *Client, topic string) {
	ctx := deadline(t)
	tp, none := kafka.TopicPartition{Topic: topic, Partition: 1}, kafka.TopicPartition{Topic: topic, Partition: 9}
	produceTo(t, c, tp, batch("a", "b"), batch("c"))
	got := c.ListOffsets(ctx, []kafka.TopicPartition{tp, none}, kafka.Latest, kafka.ReadCommitted)
	if got[tp].Err != nil || got[tp].Offset != 3 {
		t.Errorf("latest %+v", got[tp])
	}
	wantCode(t, got[none].Err, kafka.CodeUnknownTopicOrPartition)
	if first := c.ListOffsets(ctx, []kafka.TopicPartition{tp}, kafka.Earliest, kafka.ReadUncommitted)[tp]; first.Err != nil || first.Offset != 0 {
		t.Errorf("earliest %+v", first)
	}
}

func conformGroups(t *testing.T, c *Client, topic string) {
	ctx := deadline(t)
	tp := kafka.TopicPartition{Topic: topic, Partition: 1}
	group := topic + "-group"
	errs, err := c.CommitGroupOffsets(ctx, group, []kafka.GroupOffset{
		{TopicPartition: tp, Offset: 2, LeaderEpoch: kafka.NoLeaderEpoch, Metadata: "note"},
	})
	if err != nil || errs[tp] != nil {
		t.Fatal(err, errs)
	}
	got := c.FetchGroupOffsets(ctx, group, topic+"-nobody")
	if o := got[group]; o.Err != nil || len(o.Offsets) != 1 || o.Offsets[0].TopicPartition != tp || o.Offsets[0].Offset != 2 || o.Offsets[0].Metadata != "note" {
		t.Errorf("%+v", o)
	}
	if o := got[topic+"-nobody"]; o.Err != nil || len(o.Offsets) != 0 {
		t.Errorf("%+v", o)
	}
	groups, err := c.ListGroups(ctx)
	if err != nil || !slices.ContainsFunc(groups, func(g kafka.GroupListing) bool { return g.Group == group }) {
		t.Errorf("%+v, %v", groups, err)
	}
	states := c.DescribeGroups(ctx, group, topic+"-nobody")
	if d := states[group]; d.Err != nil || d.State != kafka.GroupEmpty || d.Members != 0 {
		t.Errorf("%+v", d)
	}
	if d := states[topic+"-nobody"]; d.Err != nil || d.State != kafka.GroupDead {
		t.Errorf("%+v", d)
	}
}

func conformTransactions(t *testing.T, c *Client, topic string) {
	ctx := deadline(t)
	tp := kafka.TopicPartition{Topic: topic, Partition: 2}
	id := topic + "-txn"
	old, err := c.InitProducerID(ctx, id, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := c.InitProducerID(ctx, id, time.Minute)
	if err != nil || owner.ID != old.ID || owner.Epoch != old.Epoch+1 {
		t.Fatalf("%+v after %+v, %v", owner, old, err)
	}
	err = c.AddPartitionsToTxn(ctx, id, old, []kafka.TopicPartition{tp})
	if kafka.ClassOf(err) != kafka.ClassFence {
		t.Errorf("the old owner got %v", err)
	}
	err = c.AddPartitionsToTxn(ctx, id, owner, []kafka.TopicPartition{tp, {Topic: "suite-missing"}})
	wantCode(t, err, kafka.CodeUnknownTopicOrPartition)
	if err := c.AddPartitionsToTxn(ctx, id, owner, []kafka.TopicPartition{tp}); err != nil {
		t.Fatal(err)
	}
	if err := c.EndTxn(ctx, id, owner, false); err != nil {
		t.Fatal(err)
	}
	// The marker is a control batch: it moves the end and carries no record.
	for c.ListOffsets(ctx, []kafka.TopicPartition{tp}, kafka.Latest, kafka.ReadCommitted)[tp].Offset != 1 {
		if ctx.Err() != nil {
			t.Fatal("no marker came")
		}
	}
}

func conformRecords(t *testing.T, c *Client, topic string) {
	ctx := deadline(t)
	tp := kafka.TopicPartition{Topic: topic, Partition: 2} // begins with a marker
	base, err := c.WriteRecords(ctx, tp, []kafka.Record{
		{Key: []byte("k"), Value: []byte("v"), Timestamp: 1_700_000_000_000, Headers: []kafka.Header{{Key: "h", Value: []byte("x")}, {Key: "null"}}},
		{Key: []byte("gone")},
	})
	if err != nil || base != 1 {
		t.Fatalf("base %d, %v", base, err)
	}
	var got []kafka.Record
	collect := func(r kafka.Record) error {
		got = append(got, r)
		return nil
	}
	if err := c.ReadRecords(ctx, tp, 0, base+2, kafka.ReadCommitted, collect); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || string(got[0].Value) != "v" || got[0].Offset != 1 || got[0].Timestamp != 1_700_000_000_000 ||
		len(got[0].Headers) != 2 || got[0].Headers[1].Value != nil || got[1].Value != nil || string(got[1].Key) != "gone" {
		t.Errorf("%+v", got)
	}
	stop := errors.New("enough")
	err = c.ReadRecords(ctx, tp, 0, base+2, kafka.ReadCommitted, func(kafka.Record) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the callback's error is lost: %v", err)
	}
	conformTail(ctx, t, c, topic)
}

func conformTail(ctx context.Context, t *testing.T, c *Client, topic string) {
	last := kafka.TopicPartition{Topic: topic, Partition: 0}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := errors.New("seen all")
	before, after := 0, 0
	caughtUp := false
	starts := map[kafka.TopicPartition]int64{last: 0, {Topic: topic, Partition: 1}: 0, {Topic: topic, Partition: 2}: 0}
	wrote := make(chan error, 1)
	err := c.Tail(ctx, starts, kafka.ReadCommitted, func(_ kafka.TopicPartition, r kafka.Record) error {
		if !caughtUp {
			before++
			return nil
		}
		if after++; string(r.Value) != "late" {
			t.Errorf("%+v", r)
		}
		cancel(stop)
		return nil
	}, func() {
		caughtUp = true
		go func() {
			_, err := c.WriteRecords(deadline(t), last, []kafka.Record{{Value: []byte("late")}})
			wrote <- err
		}()
	})
	if !errors.Is(err, stop) || before != 5 || after != 1 {
		t.Errorf("%v after %d records and %d late ones", err, before, after)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestACLsAreCreatedAndRead(t *testing.T) {
	_, c := fake(t, func(o *Options) {
		o.Security = Security{Protocol: "SASL_PLAINTEXT", SASL: SASL{Mechanism: "PLAIN", Username: "admin", Password: "pw"}}
	}, kfake.EnableACLs(), kfake.EnableSASL(), kfake.Superuser("PLAIN", "admin", "pw"))
	conformACLs(t, c)
}

func conformACLs(t *testing.T, c *Client) {
	ctx := deadline(t)
	acls := []kafka.ACL{
		{ResourceType: "TOPIC", ResourceName: "suite-acl", PatternType: "LITERAL", Principal: "User:x", Host: "*", Operation: "READ", Permission: "ALLOW"},
		{ResourceType: "TOPIC", ResourceName: "suite-", PatternType: "PREFIXED", Principal: "User:y", Host: "*", Operation: "ALTER_CONFIGS", Permission: "DENY"},
	}
	errs := c.CreateACLs(ctx, append(acls, kafka.ACL{ResourceType: "TOPIC", ResourceName: "z", PatternType: "LITERAL", Operation: "JUGGLE", Permission: "ALLOW"}))
	if errs[0] != nil || errs[1] != nil || errs[2] == nil {
		t.Fatal(errs)
	}
	awaitACLs(t, c, acls, len(acls))
	removed, errs := c.DeleteACLs(ctx, append(acls, kafka.ACL{
		ResourceType: "TOPIC", ResourceName: "suite-acl", PatternType: "LITERAL", Principal: "User:nobody", Host: "*", Operation: "READ", Permission: "ALLOW",
	}))
	if !slices.Equal(removed, []bool{true, true, false}) || errors.Join(errs...) != nil {
		t.Fatal(removed, errs)
	}
	awaitACLs(t, c, acls, 0)
}

// awaitACLs waits until so many of the bindings are there: brokers learn of a
// change a little later.
func awaitACLs(t *testing.T, c *Client, acls []kafka.ACL, want int) {
	t.Helper()
	for have := -1; have != want; {
		got, err := c.DescribeACLs(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		have = 0
		for _, acl := range acls {
			if slices.Contains(got, acl) {
				have++
			}
		}
	}
}

func TestDeletedTopicsAreGone(t *testing.T) {
	_, c := fake(t, nil)
	conformDeletion(t, c)
}

func conformDeletion(t *testing.T, c *Client) {
	ctx := deadline(t)
	topic := fmt.Sprintf("gone-%d", time.Now().UnixNano())
	makeTopic(t, c, topic)
	errs := c.DeleteTopics(ctx, topic, "suite-missing")
	if errs[topic] != nil {
		t.Fatal(errs[topic])
	}
	wantCode(t, errs["suite-missing"], kafka.CodeUnknownTopicOrPartition)
	for there := true; there; {
		topics, err := c.Topics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		there = slices.ContainsFunc(topics, func(d kafka.TopicDetail) bool { return d.Name == topic })
	}
}

func TestScramUsersAreMadeListedAndDeleted(t *testing.T) {
	_, c := fake(t, nil)
	conformUsers(t, c)
}

func conformUsers(t *testing.T, c *Client) {
	ctx := deadline(t)
	name := fmt.Sprintf("suite-%d", time.Now().UnixNano())
	if err := c.SetScramPassword(ctx, name, "first"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetScramPassword(ctx, name, "second"); err != nil {
		t.Fatal(err)
	}
	made := awaitUser(t, c, name, true)
	if !slices.Equal(made.Mechanisms, []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}) {
		t.Errorf("%+v", made)
	}
	if err := c.DeleteScramUser(ctx, made); err != nil {
		t.Fatal(err)
	}
	awaitUser(t, c, name, false)
	err := c.DeleteScramUser(ctx, made)
	wantCode(t, err, kafka.CodeResourceNotFound)
}

func awaitUser(t *testing.T, c *Client, name string, want bool) kafka.ScramUser {
	t.Helper()
	for {
		users, err := c.ScramUsers(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(users, func(u kafka.ScramUser) bool { return u.Name == name })
		switch {
		case want && i >= 0:
			return users[i]
		case !want && i < 0:
			return kafka.ScramUser{}
		}
	}
}
