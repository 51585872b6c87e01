package aiven

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aiven/go-client-codegen/handler/kafkamirrormaker"
	"github.com/google/go-cmp/cmp"

	"heliograph/internal/control"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
)

// caller is the part of Aiven's generated client that sends and receives, as its
// root package does it.
type caller struct{ url, token string }

// refusal is that package's Error.
type refusal struct {
	Message string `json:"message"`
	Errors  any    `json:"errors"`
	status  int
}

func (r *refusal) Error() string { return fmt.Sprintf("[%d]: %s", r.status, r.Message) }

func (c caller) Do(ctx context.Context, _, method, path string, in any, _ ...[2]string) ([]byte, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "aivenv1 "+c.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		e := &refusal{status: resp.StatusCode}
		if err := json.Unmarshal(data, e); err != nil {
			return nil, err
		}
		return nil, e
	}
	return data, nil
}

// running is a control plane whose flows are as a test says; none runs.
type running struct {
	*control.Control
	status map[string]flow.Status
}

func (r *running) Status(_ context.Context, source, target string) (flow.Status, bool) {
	s, ok := r.status[source+"->"+target]
	return s, ok
}

var (
	admin  = control.Actor{Name: "ops", Scopes: []control.Scope{control.ScopeAdmin}}
	reader = control.Actor{Name: "auditor", Scopes: []control.Scope{control.ScopeRead}}
	tenant = control.Actor{Name: "payments", Tenant: "payments", Scopes: []control.Scope{control.ScopeWrite}}
)

type fixture struct {
	*testing.T
	control *running
	url     string
	client  kafkamirrormaker.KafkaMirrorMakerHandler
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c, err := control.New(t.Context(), control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, control: &running{Control: c, status: map[string]flow.Status{}}}
	for _, alias := range []string{"east", "west"} {
		properties := map[string]string{"bootstrap.servers": alias + ":9092"}
		if _, err := c.PutCluster(f.as(admin), control.Cluster{Alias: alias, Properties: properties}, control.Absent); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(New(Options{Control: f.control, Token: func(token string) (control.Actor, bool) {
		a, ok := map[string]control.Actor{"ops": admin, "look": reader, "pay": tenant}[token]
		return a, ok
	}}))
	t.Cleanup(server.Close)
	f.url = server.URL
	f.client = kafkamirrormaker.NewHandler(caller{f.url, "ops"})
	return f
}

func (f *fixture) as(a control.Actor) context.Context { return control.WithActor(f.Context(), a) }

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) refused(err error, status int, says string) {
	f.Helper()
	var e *refusal
	if !errors.As(err, &e) || e.status != status || !strings.Contains(e.Message, says) || e.Errors == nil {
		f.Errorf("got %v, want %d with %q", err, status, says)
	}
}

const (
	project = "team"
	service = "mm"
)

// A flow's life with Aiven's own client.
func TestReplicationFlow(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	in := &kafkamirrormaker.ServiceKafkaMirrorMakerCreateReplicationFlowIn{
		SourceCluster: "east", TargetCluster: "west", Enabled: true, Topics: &[]string{"orders.*", "inventory"},
		TopicsBlacklist: &[]string{"orders-tmp"}, SyncGroupOffsetsEnabled: new(true), SyncGroupOffsetsIntervalSeconds: new(5),
		EmitHeartbeatsEnabled: new(true), ReplicationPolicyClass: kafkamirrormaker.ReplicationPolicyClassTypeIdentity,
		OffsetSyncsTopicLocation: kafkamirrormaker.OffsetSyncsTopicLocationTypeTarget, OffsetLagMax: new(7),
		ConfigPropertiesExclude: new("retention.*"), ReplicationFactor: new(3),
	}
	f.must(f.client.ServiceKafkaMirrorMakerCreateReplicationFlow(ctx, project, service, in))
	flow1, err := f.control.Flow(f.as(admin), "east", "west")
	f.must(err)
	for key, want := range map[string]string{
		"topics": "orders.*,inventory", "topics.exclude": "orders-tmp", "sync.group.offsets.enabled": "true",
		"sync.group.offsets.interval.seconds": "5", "emit.heartbeats.enabled": "true", "offset-syncs.topic.location": "target",
		"offset.lag.max": "7", "config.properties.exclude": "retention.*,unclean.leader.election.enable", "replication.factor": "3",
		"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
	} {
		if flow1.Properties[key] != want {
			t.Errorf("%s = %q, want %q", key, flow1.Properties[key], want)
		}
	}
	f.refused(f.client.ServiceKafkaMirrorMakerCreateReplicationFlow(ctx, project, service, in), 409, "already exists")

	f.control.status["east->west"] = flow.Status{Partitions: []flow.PartitionStatus{
		{SourceStart: 10, SourceEnd: 20, Next: mirror.UpstreamOffset(20)}, {SourceStart: 0, SourceEnd: 10, Next: 5},
	}}
	flows, err := f.client.ServiceKafkaMirrorMakerGetReplicationFlows(ctx, project, service)
	f.must(err)
	want := kafkamirrormaker.ReplicationFlowOut{
		SourceCluster: "east", TargetCluster: "west", Enabled: true, Topics: *in.Topics, TopicsBlacklist: *in.TopicsBlacklist, TopicsExclude: *in.TopicsBlacklist,
		SyncGroupOffsetsEnabled: new(true), SyncGroupOffsetsIntervalSeconds: new(5), EmitHeartbeatsEnabled: new(true), EmitBackwardHeartbeatsEnabled: new(false),
		ReplicationPolicyClass: in.ReplicationPolicyClass, OffsetSyncsTopicLocation: in.OffsetSyncsTopicLocation, OffsetLagMax: new(7),
		ConfigPropertiesExclude: new("retention.*"), ReplicationFactor: new(3), ExactlyOnceDeliveryEnabled: new(false), FollowerFetchingEnabled: new(false),
		ReplicationProgress: new(0.75),
	}
	if diff := cmp.Diff([]kafkamirrormaker.ReplicationFlowOut{want}, flows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// An update changes what it names.
	patched, err := f.client.ServiceKafkaMirrorMakerPatchReplicationFlow(ctx, project, service, "east", "west",
		&kafkamirrormaker.ServiceKafkaMirrorMakerPatchReplicationFlowIn{Enabled: new(false), Topics: &[]string{"inventory"}, ConfigPropertiesExclude: new("")})
	f.must(err)
	want.Enabled, want.Topics, want.ConfigPropertiesExclude = false, []string{"inventory"}, new("")
	if diff := cmp.Diff(want, kafkamirrormaker.ReplicationFlowOut(*patched)); diff != "" {
		t.Errorf("patched (-want +got):\n%s", diff)
	}
	read, err := f.client.ServiceKafkaMirrorMakerGetReplicationFlow(ctx, project, service, "east", "west")
	f.must(err)
	if diff := cmp.Diff(want, kafkamirrormaker.ReplicationFlowOut(*read)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}

	f.must(f.client.ServiceKafkaMirrorMakerDeleteReplicationFlow(ctx, project, service, "east", "west"))
	_, err = f.client.ServiceKafkaMirrorMakerGetReplicationFlow(ctx, project, service, "east", "west")
	f.refused(err, 404, "east->west")
	f.refused(f.client.ServiceKafkaMirrorMakerDeleteReplicationFlow(ctx, project, service, "east", "west"), 404, "east->west")
}

func TestTheShortestFlowHasAivensDefaults(t *testing.T) {
	f := newFixture(t)
	f.must(f.client.ServiceKafkaMirrorMakerCreateReplicationFlow(t.Context(), project, service,
		&kafkamirrormaker.ServiceKafkaMirrorMakerCreateReplicationFlowIn{SourceCluster: "east", TargetCluster: "west"}))
	got, err := f.client.ServiceKafkaMirrorMakerGetReplicationFlow(t.Context(), project, service, "east", "west")
	f.must(err)
	want := &kafkamirrormaker.ServiceKafkaMirrorMakerGetReplicationFlowOut{
		SourceCluster: "east", TargetCluster: "west", Topics: []string{".*"}, SyncGroupOffsetsEnabled: new(false), SyncGroupOffsetsIntervalSeconds: new(60),
		EmitHeartbeatsEnabled: new(false), EmitBackwardHeartbeatsEnabled: new(false), OffsetLagMax: new(100),
		ReplicationPolicyClass: kafkamirrormaker.ReplicationPolicyClassTypeDefault, OffsetSyncsTopicLocation: kafkamirrormaker.OffsetSyncsTopicLocationTypeSource,
		ExactlyOnceDeliveryEnabled: new(false), FollowerFetchingEnabled: new(false),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadRequestsChangeNothing(t *testing.T) {
	f := newFixture(t)
	f.must(f.client.ServiceKafkaMirrorMakerCreateReplicationFlow(t.Context(), project, service,
		&kafkamirrormaker.ServiceKafkaMirrorMakerCreateReplicationFlowIn{SourceCluster: "east", TargetCluster: "west"}))
	flows := "/v1/project/team/service/mm/mirrormaker/replication-flows"
	with := func(field string) string {
		return `{"source_cluster": "west", "target_cluster": "east", "enabled": true, ` + field + `}`
	}
	tests := []struct {
		method, path, body, token string
		status                    int
		says                      string
	}{
		{"POST", flows, with(`"topic": []`), "ops", 400, "[topic] is not a field"},
		{"POST", flows, with(`"topics": "x"`), "ops", 400, "[topics]"},
		{"POST", flows, with(`"topics": []`), "ops", 400, "[topics]"},
		{"POST", flows, with(`"topics": ["["]`), "ops", 400, "[topics]"},
		{"POST", flows, with(`"topics_exclude": ["a"], "topics.blacklist": ["b"]`), "ops", 400, "[topics_exclude]"},
		{"POST", flows, with(`"sync_group_offsets_interval_seconds": 0`), "ops", 400, "[sync_group_offsets_interval_seconds]"},
		{"POST", flows, with(`"replication_factor": 0`), "ops", 400, "[replication_factor]"},
		{"POST", flows, with(`"offset_syncs_topic_location": "moon"`), "ops", 400, "[offset_syncs_topic_location]"},
		{"POST", flows, with(`"replication_policy_class": "x"`), "ops", 400, "[replication_policy_class]"},
		{"POST", flows, with(`"emit_backward_heartbeats_enabled": true`), "ops", 400, "other direction"},
		{"POST", flows, with(`"follower_fetching_enabled": true`), "ops", 400, "consumer.client.rack"},
		{"POST", flows, with(`"exactly_once_delivery_enabled": true`), "ops", 400, "[exactly_once_delivery_enabled]"},
		{"POST", flows, with(`"diskless_az_enabled": true`), "ops", 400, "[diskless_az_enabled]"},
		{"POST", flows, with(`"topics_exclude": ["("]`), "ops", 400, "[topics_exclude]"},
		{"POST", flows, `{"source_cluster": "west", "target_cluster": "east"}`, "ops", 400, "[enabled] is required"},
		{"POST", flows, `{"source_cluster": "north", "target_cluster": "east", "enabled": true}`, "ops", 400, "north"},
		{"POST", flows, `{"source_cluster": "a b", "target_cluster": "east", "enabled": true}`, "ops", 400, "[source_cluster]"},
		{"POST", flows, `{"source_cluster": "east", "target_cluster": "east", "enabled": true}`, "ops", 400, "[target_cluster]"},
		{"POST", flows, `[]`, "ops", 400, "object"},
		{"PUT", flows + "/east/west", `{"source_cluster": "west"}`, "ops", 400, "[source_cluster] cannot be changed"},
		{"PUT", flows + "/east/west", `{"offset_lag_max": -1}`, "ops", 400, "[offset_lag_max]"},
		{"PUT", flows + "/west/east", `{}`, "ops", 404, "west->east"},
		{"POST", flows, with(`"topics": ["x"]`), "look", 403, "permit"},
		{"DELETE", flows + "/east/west", ``, "look", 403, "permit"},
		{"GET", flows, ``, "nobody", 401, "token"},
		{"GET", flows, ``, "", 401, "token"},
		{"GET", flows, ``, "pay", 404, "Project team"},
		{"PATCH", flows, ``, "ops", 405, "PATCH"},
		{"GET", "/v1/project/team/service/mm", ``, "ops", 404, "replication flows"},
		{"POST", flows, `{"x": "` + strings.Repeat("x", maxBody) + `"}`, "ops", 413, "bytes"},
	}
	before := f.control.Revision()
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.says, func(t *testing.T) {
			var body any
			if tt.body != "" {
				body = json.RawMessage(tt.body)
			}
			_, err := caller{f.url, tt.token}.Do(t.Context(), "", tt.method, tt.path, body)
			(&fixture{T: t}).refused(err, tt.status, tt.says)
		})
	}
	if after := f.control.Revision(); after != before {
		t.Errorf("refused requests changed something: revision %d after %d", after, before)
	}
}

// What is switched on by a cluster's settings may be asked for.
func TestSettingsOfTheClusters(t *testing.T) {
	f := newFixture(t)
	for alias, properties := range map[string]map[string]string{
		"near": {"bootstrap.servers": "near:9092", "consumer.client.rack": "az1", "consumer.isolation.level": "read_committed"},
		"once": {"bootstrap.servers": "once:9092", "exactly.once.source.support": "enabled"},
	} {
		_, err := f.control.PutCluster(f.as(admin), control.Cluster{Alias: alias, Properties: properties}, control.Absent)
		f.must(err)
	}
	f.must(f.client.ServiceKafkaMirrorMakerCreateReplicationFlow(t.Context(), project, service,
		&kafkamirrormaker.ServiceKafkaMirrorMakerCreateReplicationFlowIn{
			SourceCluster: "near", TargetCluster: "once", Enabled: true, FollowerFetchingEnabled: new(true), ExactlyOnceDeliveryEnabled: new(true),
		}))
	got, err := f.client.ServiceKafkaMirrorMakerGetReplicationFlow(t.Context(), project, service, "near", "once")
	f.must(err)
	if !*got.FollowerFetchingEnabled || !*got.ExactlyOnceDeliveryEnabled {
		t.Errorf("%+v", got)
	}
}
