package ovh

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func TestKafkaServiceIsDescribed(t *testing.T) {
	f := newFixture(t)
	path := base1 + "/kafka/" + kafkaID(sourceAlias)
	var s service
	f.must(f.client.Get(path, &s))
	if s.Engine != "kafka" || s.Status != statusReady || s.Description != sourceAlias || s.NodeNumber != 1 || len(s.Nodes) != 1 || s.Version == "" {
		t.Errorf("%+v", s)
	}
	if len(s.Endpoints) != 1 || s.Endpoints[0].Component != "kafkaSASL" || s.Endpoints[0].Domain != "127.0.0.1" || s.Endpoints[0].SSL {
		t.Errorf("%+v", s.Endpoints)
	}
	if got := f.ids(path + "/node"); !slices.Equal(got, []string{s.Nodes[0].ID}) {
		t.Errorf("nodes %v", got)
	}
	var n node
	f.must(f.client.Get(path+"/node/"+s.Nodes[0].ID, &n))
	if n.Status != statusReady || n.Port == 0 {
		t.Errorf("%+v", n)
	}
	all := f.ids(base1 + "/service")
	if len(all) != 3 {
		t.Errorf("services %v", all)
	}
	for _, id := range all {
		f.must(f.client.Get(base1+"/service/"+id, &s))
		if s.ID != id {
			t.Errorf("%s is described as %s", id, s.ID)
		}
	}
}

// A cluster that does not answer is there all the same, with the status that says so.
func TestUnreachableKafkaService(t *testing.T) {
	f := newFixture(t)
	f.register("gone", "127.0.0.1:1")
	path := base1 + "/kafka/" + kafkaID("gone")
	var s service
	f.must(f.client.Get(path, &s))
	if s.Status != statusError || s.Description != "gone" {
		t.Errorf("%+v", s)
	}
	f.refused(f.client.Get(path+"/topic", nil), 409, classNotReady)
}

func TestTopics(t *testing.T) {
	f := newFixture(t)
	path := base1 + "/kafka/" + kafkaID(sourceAlias) + "/topic"
	var made topic
	f.must(f.client.Post(path, map[string]any{
		"name": "inventory", "partitions": 3, "replication": 1, "minInsyncReplicas": 1, "retentionBytes": -1, "retentionHours": 24,
	}, &made))
	want := topic{ID: made.ID, Name: "inventory", Partitions: 3, Replication: 1, MinInsyncReplicas: 1, RetentionBytes: -1, RetentionHours: 24}
	if diff := cmp.Diff(want, made); diff != "" || !isUUID(made.ID) {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	f.refused(f.client.Post(path, map[string]any{"name": "inventory"}, nil), 409, classConflict)
	if got := f.ids(path); !slices.Equal(got, []string{made.ID}) {
		t.Errorf("topics %v", got)
	}
	f.must(f.client.Put(path+"/"+made.ID, map[string]any{"partitions": 5, "retentionHours": -1}, &made))
	want.Partitions, want.RetentionHours = 5, -1
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.must(f.client.Put(path+"/"+made.ID, made, nil))
	f.refused(f.client.Put(path+"/"+made.ID, map[string]any{"partitions": 2}, nil), 400, "Client::BadRequest")
	f.refused(f.client.Put(path+"/"+made.ID, map[string]any{"replication": 3}, nil), 400, "Client::BadRequest")
	f.refused(f.client.Put(path+"/"+made.ID, map[string]any{"name": "other"}, nil), 400, "Client::BadRequest")
	f.must(f.client.Get(path+"/"+made.ID, &made))
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.must(f.client.Delete(path+"/"+made.ID, nil))
	f.refused(f.client.Get(path+"/"+made.ID, nil), 404, classNotFound)
}

func TestUsers(t *testing.T) {
	f := newFixture(t)
	path := base1 + "/kafka/" + kafkaID(targetAlias) + "/user"
	var made, again, read user
	f.must(f.client.Post(path, map[string]any{"name": "reader"}, &made))
	if made.Username != "reader" || made.Status != statusReady || len(made.Password) < 20 || made.CreatedAt == nil {
		t.Fatalf("%+v", made)
	}
	f.refused(f.client.Post(path, map[string]any{"name": "reader"}, nil), 409, classConflict)
	f.must(f.client.Get(path+"/"+made.ID, &read))
	if read.Username != "reader" || read.Password != "" {
		t.Errorf("%+v", read)
	}
	f.must(f.client.Post(path+"/"+made.ID+"/credentials/reset", nil, &again))
	if again.ID != made.ID || again.Password == made.Password || len(again.Password) < 20 {
		t.Errorf("%+v", again)
	}
	f.refused(f.client.Get(path+"/"+made.ID+"/access", nil), 403, classForbidden)
	if got := f.ids(path); !slices.Equal(got, []string{made.ID}) {
		t.Errorf("users %v", got)
	}
	f.must(f.client.Delete(path+"/"+made.ID, nil))
	f.refused(f.client.Get(path+"/"+made.ID, nil), 404, classUserNotFound)
}

func TestTopicACLs(t *testing.T) {
	f := newFixture(t)
	service := base1 + "/kafka/" + kafkaID(targetAlias)
	var names permissions
	f.must(f.client.Get(service+"/permissions", &names))
	if !slices.Equal(names.Topic, []string{"admin", "read", "readwrite", "write"}) {
		t.Errorf("%+v", names)
	}
	remote := sourceAlias + ".inventory"
	for _, name := range []string{"/topicAcl", "/acl"} {
		path := service + name
		var made topicACL
		f.must(f.client.Post(path, map[string]any{"permission": "read", "topic": remote, "username": "reader"}, &made))
		if made.Permission != "read" || made.Topic != remote || made.Username != "reader" {
			t.Errorf("%+v", made)
		}
		f.bound(bindings(holder{username: "reader", topic: remote}, "read")[0], true)
		f.refused(f.client.Post(path, map[string]any{"permission": "read", "topic": remote, "username": "reader"}, nil), 409, classConflict)
		if got := f.ids(path); !slices.Equal(got, []string{made.ID}) {
			t.Errorf("ACLs %v", got)
		}
		var wider topicACL
		f.must(f.client.Post(path, map[string]any{"permission": "readwrite", "topic": remote, "username": "reader"}, &wider))
		var read topicACL
		f.must(f.client.Get(path+"/"+wider.ID, &read))
		if diff := cmp.Diff(wider, read); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		f.must(f.client.Delete(path+"/"+wider.ID, nil))
		f.refused(f.client.Get(path+"/"+wider.ID, nil), 404, classNotFound)
		f.refused(f.client.Delete(path+"/"+made.ID, nil), 404, classNotFound)
		if got := f.ids(path); len(got) != 0 {
			t.Errorf("ACLs %v", got)
		}
	}
	var all topicACL
	f.must(f.client.Post(service+"/topicAcl", map[string]any{"permission": "admin", "topic": "team-*", "username": "owner"}, &all))
	f.bound(kafka.ACL{
		ResourceType: "TOPIC", ResourceName: "team-", PatternType: "PREFIXED", Principal: "User:owner", Host: "*", Operation: "ALL", Permission: "ALLOW",
	}, true)
	f.must(f.client.Delete(service+"/topicAcl/"+all.ID, nil))
}

// bound checks a binding on the target cluster itself.
func (f *fixture) bound(acl kafka.ACL, want bool) {
	f.Helper()
	cl, err := f.control.Client(f.as(admin), targetAlias)
	f.must(err)
	defer cl.Close()
	acls, err := cl.DescribeACLs(f.Context())
	f.must(err)
	if slices.Contains(acls, acl) != want {
		f.Errorf("%+v is there: %v; of %+v", acl, !want, acls)
	}
}

func TestWatching(t *testing.T) {
	f := newFixture(t)
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	r := f.replicate(source.ID, target.ID)
	f.control.status[mirror.FlowID{Source: sourceAlias, Target: targetAlias}] = flow.Status{
		Partitions: []flow.PartitionStatus{{LagRecords: 4, LagSeconds: 1.5, Records: 10}, {LagRecords: 3, LagSeconds: 2.5, Records: 1}},
	}
	names := f.ids(f.mirror + "/metric")
	if !slices.Contains(names, "replication_lag_records") || slices.Contains(names, "replication_partitions") {
		t.Errorf("%v", names)
	}
	if more := f.ids(f.mirror + "/metric?extended=true"); len(more) <= len(names) {
		t.Errorf("%v", more)
	}
	for name, want := range map[string]float64{"replication_lag_records": 7, "replication_lag_seconds": 2.5, "replication_records_total": 11, "replication_partitions": 2} {
		var m metric
		f.must(f.client.Get(f.mirror+"/metric/"+name+"?period=lastHour", &m))
		if m.Name != name || len(m.Metrics) != 1 || len(m.Metrics[0].DataPoints) != 1 || m.Metrics[0].DataPoints[0].Value != want {
			t.Errorf("%+v, want %v", m, want)
		}
	}
	var nodes []string
	f.must(f.client.Get(f.mirror+"/node", &nodes))
	var n node
	f.must(f.client.Get(f.mirror+"/node/"+nodes[0], &n))
	if len(nodes) != 1 || n.Name == "" || n.Status != statusReady {
		t.Errorf("%v %+v", nodes, n)
	}
	var entries []logEntry
	f.must(f.client.Get(f.mirror+"/logs", &entries))
	if !slices.ContainsFunc(entries, func(e logEntry) bool {
		return strings.Contains(e.Message, "flow.put") && strings.Contains(e.Message, sourceAlias+"->"+targetAlias) && e.Timestamp > 0
	}) {
		t.Errorf("%+v", entries)
	}
	var scrape prometheusEndpoint
	f.must(f.client.Get(f.mirror+"/prometheus", &scrape))
	if len(scrape.Targets) != 1 || scrape.Targets[0].Port == 0 {
		t.Errorf("%+v", scrape)
	}
	for _, empty := range []string{"/log/kind", "/log/subscription", "/maintenance"} {
		if got := f.ids(f.mirror + empty); len(got) != 0 {
			t.Errorf("%s: %v", empty, got)
		}
	}
	var capabilities []capabilityOfIntegration
	f.must(f.client.Get(f.mirror+"/capabilities/integration", &capabilities))
	if len(capabilities) != 1 || capabilities[0].SourceEngine != "kafka" || capabilities[0].DestinationEngine != "kafkaMirrorMaker" {
		t.Errorf("%+v", capabilities)
	}
	_ = r

	// The same integrations, seen from the Kafka service.
	kafka := base1 + "/kafka/" + kafkaID(sourceAlias) + "/integration"
	if got := f.ids(kafka); !slices.Equal(got, []string{source.ID}) {
		t.Errorf("%v", got)
	}
	var l integration
	f.must(f.client.Get(kafka+"/"+source.ID, &l))
	if diff := cmp.Diff(source, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.refused(f.client.Delete(kafka+"/"+source.ID, nil), http.StatusConflict, classConflict)
	f.refused(f.client.Get(kafka+"/"+target.ID, nil), http.StatusNotFound, classNotFound)
	f.must(f.client.Delete(f.mirror+"/replication/"+r.ID, nil))
	f.must(f.client.Delete(kafka+"/"+source.ID, nil))
	f.must(f.client.Post(kafka, map[string]any{"sourceServiceId": kafkaID(sourceAlias), "destinationServiceId": standing(testProject)}, &l))
	if l.ID != source.ID {
		t.Errorf("%+v", l)
	}
}

func TestWhereToScrape(t *testing.T) {
	f := newFixture(t)
	_, port := splitAddress(strings.TrimPrefix(f.server.URL, "http://"), 0)
	for metrics, want := range map[string]prometheusTarget{
		"":              {"127.0.0.1", port},
		"10.0.0.7:9404": {"10.0.0.7", 9404},
		":9404":         {"127.0.0.1", 9404},
		"0.0.0.0:9404":  {"127.0.0.1", 9404},
	} {
		h, err := New(Options{Control: f.control, Credentials: credentials, Metrics: metrics})
		f.must(err)
		f.server.Config.Handler = h
		var got prometheusEndpoint
		f.must(f.client.Get(f.mirror+"/prometheus", &got))
		if len(got.Targets) != 1 || got.Targets[0] != want {
			t.Errorf("metrics at %q: %+v, want %+v", metrics, got, want)
		}
	}
}
