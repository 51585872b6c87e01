//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ovh/go-ovh/ovh"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"heliograph/internal/kafkatest"
)

// The names that OVHcloud's guide has: aliases of services, and a project.
const (
	guideSource  = "p4wk2x7qd.kafka-1f0c3e5a"
	guideTarget  = "zt81mc0ru.kafka-77b9d204"
	guideProject = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
)

// TestReplicationGuide walks through OVHcloud's guide "How to replicate topics between
// two Kafka services" with both of its clients, unchanged, from the integrations to a
// user with nothing but a read ACL who reads the copied inventory.
func TestReplicationGuide(t *testing.T) {
	t.Parallel()
	var a, b *kafkatest.Cluster
	secure := kafkatest.ClusterOptions{Listeners: []kafkatest.Protocol{kafkatest.SASLPlaintext}, Authorizer: true}
	var both sync.WaitGroup
	both.Go(func() {
		o := secure
		o.Name, o.Version = "guide-source", kafkatest.ReleaseSource
		a = kafkatest.Start(t, o)
	})
	both.Go(func() {
		o := secure
		o.Name, o.Version = "guide-target", kafkatest.ReleaseTarget
		b = kafkatest.Start(t, o)
	})
	interpreter := python(t, "ovh.txt")
	both.Wait()
	if t.Failed() || a == nil || b == nil {
		t.FailNow()
	}

	s := serve(t, `
ovh:
  - application_key: appkey
    application_secret: appsecret
    consumers:
      - {consumer_key: opskey, project: `+guideProject+`}
`)
	s.register(guideSource, a.ClientProperties(kafkatest.SASLPlaintext, "SCRAM-SHA-512", "admin"))
	s.register(guideTarget, b.ClientProperties(kafkatest.SASLPlaintext, "SCRAM-SHA-512", "admin"))
	client, err := ovh.NewClient(s.url+"/1.0", "appkey", "appsecret", "opskey")
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{T: t, client: client, a: a, b: b, base: "/cloud/project/" + guideProject + "/database"}
	g.services()

	g.linkAndReplicate()
	g.write("inventory 1", "inventory 2", "inventory 3")
	g.readCopy()
	g.internalTopics()
	g.manage()

	// The same with Python; the flow goes on where it was.
	args := []string{s.url, guideProject, guideSource, guideTarget}
	run(t, interpreter, "guide.py", append(args, "link")...)
	g.write("inventory 4")
	b.AwaitRecords(within(t, patience), t, guideSource+".inventory", 4)
	run(t, interpreter, "guide.py", append(args, "manage")...)
	same(t, kafkatest.Side{Cluster: a, Topic: "inventory"}, kafkatest.Side{Cluster: b, Topic: guideSource + ".inventory"})
	s.stop()
	if strings.Contains(s.Log(), g.password) || strings.Contains(s.Log(), "appsecret") {
		t.Error("the log shows a secret")
	}
}

// guide is somebody who follows it with go-ovh.
type guide struct {
	*testing.T
	client         *ovh.Client
	a, b           *kafkatest.Cluster
	base, mirror   string // paths
	source, target string // ids of the Kafka services
	service        string // id of the MirrorMaker service
	links          []string
	replication    string
	password       string
}

func (g *guide) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// services finds what the guide requires to be there, and makes the topic.
func (g *guide) services() {
	g.Helper()
	var ids []string
	g.must(g.client.Get(g.base+"/kafka", &ids))
	for _, id := range ids {
		var s struct{ Description, Status, Version string }
		g.must(g.client.Get(g.base+"/kafka/"+id, &s))
		if s.Status != "READY" || s.Version == "" {
			g.Fatalf("%+v", s)
		}
		switch s.Description {
		case guideSource:
			g.source = id
		case guideTarget:
			g.target = id
		}
	}
	g.must(g.client.Get(g.base+"/kafkaMirrorMaker", &ids))
	g.service = ids[0]
	g.mirror = g.base + "/kafkaMirrorMaker/" + g.service
	var topic struct {
		ID         string
		Partitions int
	}
	g.must(g.client.Post(g.base+"/kafka/"+g.source+"/topic", map[string]any{"name": "inventory", "partitions": 3}, &topic))
	if topic.Partitions != 3 {
		g.Fatalf("%+v", topic)
	}
}

// linkAndReplicate are the guide's steps 1 and 2.
func (g *guide) linkAndReplicate() {
	g.Helper()
	g.links = nil
	for _, kafka := range []string{g.source, g.target} {
		var link struct{ ID, Status string }
		g.must(g.client.Post(g.mirror+"/integration", map[string]any{
			"type": "kafkaMirrorMaker", "sourceServiceId": kafka, "destinationServiceId": g.service,
		}, &link))
		if link.Status != "READY" {
			g.Fatalf("%+v", link)
		}
		g.links = append(g.links, link.ID)
	}
	var flow struct {
		ID                     string
		ReplicationPolicyClass string
		TopicExcludeList       []string
		SyncInterval           int
	}
	g.must(g.client.Post(g.mirror+"/replication", map[string]any{
		"sourceIntegration": g.links[0], "targetIntegration": g.links[1], "topics": []string{"inventory"},
		"syncGroupOffsets": true, "syncInterval": 60, "emitHeartbeats": true, "enabled": true,
	}, &flow))
	if flow.ReplicationPolicyClass != "org.apache.kafka.connect.mirror.DefaultReplicationPolicy" || flow.TopicExcludeList == nil || flow.SyncInterval != 60 {
		g.Fatalf("%+v", flow)
	}
	g.replication = flow.ID
}

// write adds messages to inventory on the source.
func (g *guide) write(values ...string) {
	g.Helper()
	var records []*kgo.Record
	for i, v := range values {
		records = append(records, &kgo.Record{Topic: "inventory", Partition: int32(i % 3), Value: []byte(v)})
	}
	g.a.Produce(g.T, records)
}

// readCopy is step 3: a user who has a read ACL on the copy and nothing else reads it
// with a group, and may not write to it nor read another topic.
func (g *guide) readCopy() {
	g.Helper()
	remote := guideSource + ".inventory"
	g.b.AwaitRecords(within(g.T, patience), g.T, remote, 3)
	kafka := g.base + "/kafka/" + g.target
	var user struct{ Username, Password string }
	g.must(g.client.Post(kafka+"/user", map[string]any{"name": "reader"}, &user))
	g.password = user.Password
	var acl struct{ ID string }
	g.must(g.client.Post(kafka+"/topicAcl", map[string]any{"username": "reader", "topic": remote, "permission": "read"}, &acl))
	same(g.T, kafkatest.Side{Cluster: g.a, Topic: "inventory"}, kafkatest.Side{Cluster: g.b, Topic: remote})

	ctx := within(g.T, patience)
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(g.b.BootstrapOf(kafkatest.SASLPlaintext)),
		kgo.SASL(scram.Auth{User: user.Username, Pass: user.Password}.AsSha512Mechanism()),
		kgo.ConsumerGroup("readers"), kgo.ConsumeTopics(remote), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(), // the topic alone decides then
	)
	g.must(err)
	defer cl.Close()
	var got []string
	for len(got) < 3 {
		for _, r := range cl.PollFetches(ctx).Records() {
			got = append(got, string(r.Value))
		}
		if err := ctx.Err(); err != nil {
			g.Fatalf("read %q: %v", got, err)
		}
	}
	slices.Sort(got)
	if want := []string{"inventory 1", "inventory 2", "inventory 3"}; !slices.Equal(got, want) {
		g.Errorf("read %q, want %q", got, want)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: remote, Value: []byte("x")}).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		g.Errorf("the reader may write: %v", err)
	}
}

// internalTopics are what the guide says that MirrorMaker makes besides.
func (g *guide) internalTopics() {
	g.Helper()
	await(g.T, "MirrorMaker's own topics", func() string {
		names := g.b.TopicNames(g.T)
		for _, want := range []string{"heartbeats", guideSource + ".checkpoints.internal"} {
			if !slices.Contains(names, want) {
				return fmt.Sprintf("no %s among %v", want, names)
			}
		}
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "mm2-") }) {
			return fmt.Sprintf("no mm2-… among %v", names)
		}
		return ""
	})
}

// manage is step 4: the flow is read, changed and deleted. The change is felt: the
// position of a group is on the target soon, and not only after a minute.
func (g *guide) manage() {
	g.Helper()
	path := g.mirror + "/replication/" + g.replication
	var flow map[string]any
	g.must(g.client.Get(path, &flow))
	flow["syncInterval"] = 1
	g.must(g.client.Put(path, flow, nil))
	g.a.CommitGroup(g.T, "billing", "inventory", 1, 1, 1)
	await(g.T, "group billing stands on the target", func() string {
		at := g.b.GroupOffsets(g.T, "billing", guideSource+".inventory")
		if len(at) == 3 && at[0] == 1 && at[1] == 1 && at[2] == 1 {
			return ""
		}
		return fmt.Sprint(at)
	})
	g.must(g.client.Delete(path, nil))
	for _, id := range g.links {
		g.must(g.client.Delete(g.mirror+"/integration/"+id, nil))
	}
}
