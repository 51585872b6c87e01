package ovh

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/control"
)

// The calls of OVHcloud's guide, in its order, with its own Go client.
func TestGuide(t *testing.T) {
	f := newFixture(t)

	// The services that the guide starts from.
	kafkas := f.ids(base1 + "/kafka")
	if !slices.Contains(kafkas, kafkaID(sourceAlias)) || !slices.Contains(kafkas, kafkaID(targetAlias)) || len(kafkas) != 2 {
		t.Fatalf("Kafka services %v", kafkas)
	}
	if got := f.ids(base1 + "/kafkaMirrorMaker"); len(got) != 1 || base1+"/kafkaMirrorMaker/"+got[0] != f.mirror {
		t.Fatalf("MirrorMaker services %v", got)
	}

	// Step 1.
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	if source.Status != "READY" || source.SourceServiceID != kafkaID(sourceAlias) || source.DestinationServiceID != standing(testProject) || source.Type != "kafkaMirrorMaker" {
		t.Fatalf("%+v", source)
	}
	if got := f.ids(f.mirror + "/integration"); len(got) != 2 || !slices.Contains(got, source.ID) || !slices.Contains(got, target.ID) {
		t.Fatalf("integrations %v", got)
	}

	// Step 2: the answer is the guide's, with the default policy.
	var raw map[string]any
	f.must(f.client.Post(f.mirror+"/replication", json.RawMessage(`{
	  "sourceIntegration": "`+source.ID+`", "targetIntegration": "`+target.ID+`",
	  "topics": ["inventory"], "syncGroupOffsets": true, "syncInterval": 60, "emitHeartbeats": true, "enabled": true}`), &raw))
	id, _ := raw["id"].(string)
	want := map[string]any{
		"id": id, "sourceIntegration": source.ID, "targetIntegration": target.ID,
		"replicationPolicyClass": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
		"topics":                 []any{"inventory"}, "topicExcludeList": []any{},
		"syncGroupOffsets": true, "syncInterval": json.Number("60"), "emitHeartbeats": true, "enabled": true,
	}
	if diff := cmp.Diff(want, raw); diff != "" || !isUUID(id) {
		t.Fatalf("the answer differs (-want +got):\n%s", diff)
	}
	flow, err := f.control.Flow(f.as(admin), sourceAlias, targetAlias)
	f.must(err)
	for key, value := range map[string]string{
		"topics": "inventory", "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "60",
		"emit.heartbeats.enabled": "true", "replication.policy.class": defaultPolicy,
	} {
		if flow.Properties[key] != value {
			t.Errorf("%s = %q, want %q", key, flow.Properties[key], value)
		}
	}
	if _, set := flow.Properties["topics.exclude"]; set || !flow.Enabled {
		t.Errorf("%+v", flow)
	}

	// Step 4.
	if got := f.ids(f.mirror + "/replication"); !slices.Equal(got, []string{id}) {
		t.Fatalf("replications %v", got)
	}
	var read map[string]any
	f.must(f.client.Get(f.mirror+"/replication/"+id, &read))
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read differs (-want +got):\n%s", diff)
	}
	f.must(f.client.Delete(f.mirror+"/replication/"+id, nil))
	f.refused(f.client.Get(f.mirror+"/replication/"+id, nil), 404, classNotFound)
	if _, err := f.control.Flow(f.as(admin), sourceAlias, targetAlias); control.KindOf(err) != control.NotFound {
		t.Errorf("the flow is still there: %v", err)
	}
	f.must(f.client.Delete(f.mirror+"/integration/"+source.ID, nil))
	f.must(f.client.Delete(f.mirror+"/integration/"+target.ID, nil))
	if got := f.ids(f.mirror + "/integration"); len(got) != 0 {
		t.Errorf("integrations %v", got)
	}
}

func TestTheShortestReplicationHasDefaults(t *testing.T) {
	f := newFixture(t)
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	var got replication
	f.must(f.client.Post(f.mirror+"/replication", map[string]any{
		"sourceIntegration": source.ID, "targetIntegration": target.ID, "enabled": false,
	}, &got))
	want := replication{
		ID: got.ID, SourceIntegration: source.ID, TargetIntegration: target.ID, ReplicationPolicyClass: defaultPolicy,
		Topics: []string{".*"}, TopicExcludeList: []string{}, SyncInterval: 60,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is read may be sent back; what is left out stays; what is read-only must not differ.
func TestReplicationIsChanged(t *testing.T) {
	f := newFixture(t)
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	r := f.replicate(source.ID, target.ID)
	path := f.mirror + "/replication/" + r.ID

	var got replication
	f.must(f.client.Put(path, r, &got))
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("sent back as it was (-want +got):\n%s", diff)
	}
	f.must(f.client.Put(path, map[string]any{"enabled": false, "topicExcludeList": []string{"inventory-.*", "tmp"}}, &got))
	r.Enabled, r.TopicExcludeList = false, []string{"inventory-.*", "tmp"}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	f.must(f.client.Put(path, map[string]any{
		"enabled": true, "topicExcludeList": []string{}, "topics": []string{"inventory", "orders.*"},
		"replicationPolicyClass": identityPolicy, "syncInterval": 5, "syncGroupOffsets": false, "emitHeartbeats": false,
	}, nil))
	f.must(f.client.Get(path, &got))
	r.Enabled, r.TopicExcludeList, r.Topics = true, []string{}, []string{"inventory", "orders.*"}
	r.ReplicationPolicyClass, r.SyncInterval, r.SyncGroupOffsets, r.EmitHeartbeats = identityPolicy, 5, false, false
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("changed and read (-want +got):\n%s", diff)
	}
	f.refused(f.client.Put(path, map[string]any{"enabled": true, "sourceIntegration": target.ID}, nil), 400, "Client::BadRequest")
	f.refused(f.client.Put(path, map[string]any{"topics": []string{"x"}}, nil), 400, "Client::BadRequest")

	// A flow that was paused elsewhere reads as not enabled, and enabling it resumes it.
	_, err := f.control.Pause(f.as(admin), sourceAlias, targetAlias)
	f.must(err)
	f.must(f.client.Get(path, &got))
	if got.Enabled {
		t.Error("a paused flow reads as enabled")
	}
	f.must(f.client.Put(path, map[string]any{"enabled": true}, &got))
	if flow, err := f.control.Flow(f.as(admin), sourceAlias, targetAlias); err != nil || flow.Paused || !got.Enabled {
		t.Errorf("%+v, %v, %+v", flow, err, got)
	}
}

// A replication whose flow was deleted by another API is gone, and holds up nothing.
func TestReplicationGoesWithItsFlow(t *testing.T) {
	f := newFixture(t)
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	r := f.replicate(source.ID, target.ID)
	f.refused(f.client.Delete(f.mirror+"/integration/"+source.ID, nil), 409, classConflict)
	f.must(f.control.DeleteFlow(f.as(admin), sourceAlias, targetAlias, control.Any))
	f.refused(f.client.Get(f.mirror+"/replication/"+r.ID, nil), 404, classNotFound)
	if got := f.ids(f.mirror + "/replication"); len(got) != 0 {
		t.Errorf("replications %v", got)
	}
	again := f.replicate(source.ID, target.ID)
	f.must(f.client.Delete(f.mirror+"/replication/"+again.ID, nil))
	f.must(f.client.Delete(f.mirror+"/integration/"+source.ID, nil))
	if docs := f.control.Documents(f.as(admin), kindReplication); len(docs) != 0 {
		t.Errorf("%d notes of replications are left", len(docs))
	}
}

// Whoever asks at the same time, there is one integration and one replication.
func TestConcurrentCallsMakeOne(t *testing.T) {
	f := newFixture(t)
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	body := map[string]any{"sourceIntegration": source.ID, "targetIntegration": target.ID, "enabled": false}
	const callers = 8
	results := make(chan error, 2*callers)
	for range callers {
		c := f.login("", "appkey", "appsecret", "opskey")
		go func() { results <- c.Post(f.mirror+"/replication", body, nil) }()
		d := f.login("", "appkey", "appsecret", "opskey") // a client is one goroutine's
		go func() { results <- d.Delete(f.mirror+"/integration/"+target.ID, nil) }()
	}
	var worked int
	for range 2 * callers {
		if err := <-results; err == nil {
			worked++
		}
	}
	// Either the integration went first, or one replication came and kept it.
	replications, integrations := f.ids(f.mirror+"/replication"), f.ids(f.mirror+"/integration")
	kept := len(replications) == 1 && len(integrations) == 2
	gone := len(replications) == 0 && len(integrations) == 1
	if worked != 1 || kept == gone {
		t.Errorf("%d calls worked; replications %v, integrations %v", worked, replications, integrations)
	}
}

func TestMirrorMakerServicesAreNames(t *testing.T) {
	f := newFixture(t)
	var made service
	f.must(f.client.Post(base1+"/kafkaMirrorMaker", map[string]any{"description": "second", "plan": "essential", "version": "3.9"}, &made))
	if made.Status != statusReady || made.Engine != "kafkaMirrorMaker" || made.Description != "second" {
		t.Errorf("%+v", made)
	}
	path := base1 + "/kafkaMirrorMaker/" + made.ID
	if got := f.ids(base1 + "/kafkaMirrorMaker"); !slices.Contains(got, made.ID) || len(got) != 2 {
		t.Errorf("%v", got)
	}
	var l integration
	f.must(f.client.Post(path+"/integration", map[string]any{"sourceServiceId": kafkaID(sourceAlias), "destinationServiceId": made.ID}, &l))
	f.refused(f.client.Delete(path, nil), 409, classConflict)
	f.must(f.client.Delete(path+"/integration/"+l.ID, nil))
	f.must(f.client.Put(path, map[string]any{"description": "renamed"}, &made))
	if made.Description != "renamed" {
		t.Errorf("%+v", made)
	}
	made.Description = "again"
	f.must(f.client.Put(path, made, nil))
	made.Plan = "enterprise"
	f.refused(f.client.Put(path, made, nil), 400, classNoUpdate)
	f.must(f.client.Delete(path, nil))
	f.refused(f.client.Get(path, nil), 404, classServiceNotFound)
	f.refused(f.client.Delete(f.mirror, nil), 409, classConflict)
	f.refused(f.client.Put(f.mirror, map[string]any{"description": "x"}, nil), 400, classNoUpdate)
}
