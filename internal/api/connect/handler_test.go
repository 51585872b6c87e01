package connect

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/control"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
)

// plane is a control plane whose flows are as a test says; none runs.
type plane struct {
	*control.Control
	status   map[string]flow.Status
	restarts []string
}

func (r *plane) Status(_ context.Context, source, target string) (flow.Status, bool) {
	s, ok := r.status[source+"->"+target]
	return s, ok
}

func (r *plane) Restart(_ context.Context, source, target string) error {
	r.restarts = append(r.restarts, source+"->"+target)
	return nil
}

var (
	admin  = control.Actor{Name: "ops", Scopes: []control.Scope{control.ScopeAdmin}}
	reader = control.Actor{Name: "auditor", Scopes: []control.Scope{control.ScopeRead}}
)

const (
	sourceName     = "A->B.MirrorSourceConnector"
	checkpointName = "A->B.MirrorCheckpointConnector"
	heartbeatName  = "A->B.MirrorHeartbeatConnector"
)

type fixture struct {
	*testing.T
	control *plane
	url     string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c, err := control.New(t.Context(), control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, control: &plane{Control: c, status: map[string]flow.Status{}}}
	server := httptest.NewServer(New(Options{Control: f.control, Version: "test", Token: func(token string) (control.Actor, bool) {
		a, ok := map[string]control.Actor{"ops": admin, "look": reader}[token]
		return a, ok
	}}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// as asks with a token and returns the status and the answer.
func (f *fixture) as(token, method, path, body string) (int, string) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	r.SetBasicAuth("anybody", token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		f.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(data))
}

// ask asks and wants a status.
func (f *fixture) ask(status int, method, path, body string) string {
	f.Helper()
	got, out := f.as("ops", method, path, body)
	if got != status {
		f.Fatalf("%s %s: %d %s, want %d", method, path, got, out, status)
	}
	return out
}

// path is where a connector is.
func path(name string, parts ...string) string {
	return "/connectors/" + url.PathEscape(name) + strings.Join(append([]string{""}, parts...), "/")
}

// read asks for JSON.
func read[T any](f *fixture, path string) T {
	f.Helper()
	var out T
	if err := json.Unmarshal([]byte(f.ask(200, "GET", path, "")), &out); err != nil {
		f.Fatal(err)
	}
	return out
}

func (f *fixture) flow() control.Flow {
	f.Helper()
	got, err := f.control.Flow(control.WithActor(f.Context(), admin), "A", "B")
	if err != nil {
		f.Fatal(err)
	}
	return got
}

// full is what people give to all three connectors.
func full(class string) string {
	return `{"connector.class": "org.apache.kafka.connect.mirror.` + class + `", "tasks.max": 4,
	  "source.cluster.alias": "A", "target.cluster.alias": "B",
	  "source.cluster.bootstrap.servers": "a:9092", "target.cluster.bootstrap.servers": "b:9092",
	  "target.cluster.security.protocol": "SASL_PLAINTEXT", "target.cluster.sasl.mechanism": "PLAIN",
	  "target.cluster.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"hush\";",
	  "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
	  "topics": "orders.*", "groups": "billing.*", "replication.factor": "-1", "sync.group.offsets.enabled": true}`
}

// Three connectors, made as people make them in Connect, become one flow.
func TestThreeConnectorsAreOneFlow(t *testing.T) {
	f := newFixture(t)
	f.ask(409, "PUT", path(checkpointName, "config"), full("MirrorCheckpointConnector"))
	f.ask(201, "PUT", path(sourceName, "config"), full("MirrorSourceConnector"))
	if got := read[[]string](f, "/connectors"); !slices.Equal(got, []string{sourceName}) {
		t.Errorf("connectors %v", got)
	}
	f.ask(201, "PUT", path(checkpointName, "config"), full("MirrorCheckpointConnector"))
	f.ask(201, "POST", "/connectors", `{"name": "`+heartbeatName+`", "config": `+full("MirrorHeartbeatConnector")+`}`)
	f.ask(409, "POST", "/connectors", `{"name": "`+heartbeatName+`", "config": `+full("MirrorHeartbeatConnector")+`}`)
	if got := read[[]string](f, "/connectors"); !slices.Equal(got, []string{sourceName, checkpointName, heartbeatName}) {
		t.Errorf("connectors %v", got)
	}
	want := map[string]string{"topics": "orders.*", "groups": "billing.*", "replication.factor": "-1", "sync.group.offsets.enabled": "true", "tasks.max": "4"}
	if diff := cmp.Diff(want, f.flow().Properties); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cluster, err := f.control.Cluster(control.WithActor(t.Context(), admin), "B")
	if err != nil || cluster.Properties["bootstrap.servers"] != "b:9092" || !strings.Contains(cluster.Properties["sasl.jaas.config"], "hush") {
		t.Errorf("%+v, %v", cluster, err)
	}

	// What is read hides the password, and may be sent back as it is.
	before := f.flow()
	shown := f.ask(200, "GET", path(sourceName, "config"), "")
	if strings.Contains(shown, "hush") {
		t.Errorf("a password is shown: %s", shown)
	}
	f.ask(200, "PUT", path(sourceName, "config"), shown)
	if diff := cmp.Diff(before, f.flow()); diff != "" {
		t.Errorf("sent back (-want +got):\n%s", diff)
	}

	// A new configuration takes away the connector's own settings that it leaves out.
	f.ask(200, "PUT", path(sourceName, "config"), `{"connector.class": "MirrorSourceConnector", "topics": "inventory"}`)
	f.ask(200, "PATCH", path(checkpointName, "config"), `{"sync.group.offsets.interval.seconds": 5, "groups": null}`)
	want = map[string]string{"topics": "inventory", "sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "5"}
	if diff := cmp.Diff(want, f.flow().Properties); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	f.ask(204, "DELETE", path(heartbeatName), "")
	f.ask(204, "DELETE", path(checkpointName), "")
	f.ask(404, "GET", path(heartbeatName), "")
	if got := read[[]string](f, "/connectors"); !slices.Equal(got, []string{sourceName}) {
		t.Errorf("connectors %v", got)
	}
	f.ask(204, "DELETE", path(sourceName), "")
	if got := read[[]string](f, "/connectors"); len(got) != 0 {
		t.Errorf("connectors %v", got)
	}
}

func TestStatusFollowsTheFlow(t *testing.T) {
	f := newFixture(t)
	f.ask(201, "PUT", path(sourceName, "config"), full("MirrorSourceConnector"))
	f.ask(201, "PUT", path(heartbeatName, "config"), full("MirrorHeartbeatConnector"))
	tests := []struct {
		st          *flow.Status
		whole, task state
	}{
		{nil, unassigned, unassigned},
		{&flow.Status{State: flow.Starting}, running, unassigned},
		{&flow.Status{State: flow.Waiting, Reason: "cluster B does not answer"}, running, unassigned},
		{&flow.Status{State: flow.Running}, running, running},
		{&flow.Status{State: flow.Degraded, Reason: "orders-3 is parked"}, running, failed},
		{&flow.Status{State: flow.Failed, Reason: "the clusters are one"}, failed, failed},
	}
	for _, tt := range tests {
		delete(f.control.status, "A->B")
		reason := ""
		if tt.st != nil {
			f.control.status["A->B"], reason = *tt.st, tt.st.Reason
		}
		got := read[connectorStatus](f, path(sourceName, "status"))
		if got.Connector.State != tt.whole || len(got.Tasks) != 1 || got.Tasks[0].State != tt.task || got.Tasks[0].Trace != reason || got.Type != "source" {
			t.Errorf("%+v: %+v", tt.st, got)
		}
		if task := read[taskState](f, path(sourceName, "tasks", "0", "status")); task.State != tt.task {
			t.Errorf("%+v", task)
		}
	}

	// Restarting what failed, and what has not.
	f.ask(202, "POST", path(sourceName, "restart")+"?includeTasks=true&onlyFailed=true", "")
	f.control.status["A->B"] = flow.Status{State: flow.Running}
	f.ask(202, "POST", path(sourceName, "restart")+"?onlyFailed=true", "")
	f.ask(204, "POST", path(sourceName, "restart"), "")
	f.ask(204, "POST", path(sourceName, "tasks", "0", "restart"), "")
	f.ask(400, "POST", path(sourceName, "restart")+"?onlyFailed=perhaps", "")
	f.ask(404, "POST", path(sourceName, "tasks", "1", "restart"), "")
	if len(f.control.restarts) != 3 {
		t.Errorf("%d restarts", len(f.control.restarts))
	}

	// Paused, stopped, resumed; the others follow and say so.
	f.ask(409, "PUT", path(heartbeatName, "pause"), "")
	for _, step := range []struct {
		verb   string
		status int
		want   state
	}{{"pause", 202, paused}, {"stop", 204, stopped}, {"pause", 202, paused}, {"resume", 202, running}} {
		f.ask(step.status, "PUT", path(sourceName, step.verb), "")
		f.ask(step.status, "PUT", path(heartbeatName, step.verb), "") // nothing is left to do
		if got := read[connectorStatus](f, path(heartbeatName, "status")); got.Connector.State != step.want {
			t.Errorf("after %s: %+v", step.verb, got)
		}
	}
	expanded := read[map[string]map[string]json.RawMessage](f, "/connectors?expand=status&expand=info")
	if len(expanded) != 2 || expanded[sourceName]["status"] == nil || expanded[heartbeatName]["info"] == nil {
		t.Errorf("%v", expanded)
	}
}

func TestOffsetsAndTopics(t *testing.T) {
	f := newFixture(t)
	f.ask(201, "PUT", path(sourceName, "config"), full("MirrorSourceConnector"))
	f.ask(409, "GET", path(sourceName, "offsets"), "")
	at := func(topic string, p int32) kafka.TopicPartition {
		return kafka.TopicPartition{Topic: topic, Partition: p}
	}
	f.control.status["A->B"] = flow.Status{State: flow.Running, Partitions: []flow.PartitionStatus{
		{Source: at("orders", 1), Target: at("A.orders", 1), Next: 7},
		{Source: at("orders", 0), Target: at("A.orders", 0), Next: 3},
		{Source: at("empty", 0), Target: at("A.empty", 0)},
	}}
	got := f.ask(200, "GET", path(sourceName, "offsets"), "")
	want := `{"offsets":[{"partition":{"cluster":"A","partition":0,"topic":"orders"},"offset":{"offset":2}},{"partition":{"cluster":"A","partition":1,"topic":"orders"},"offset":{"offset":6}}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := f.ask(200, "GET", path(sourceName, "topics"), ""); got != `{"`+sourceName+`":{"topics":["A.empty","A.orders"]}}` {
		t.Error(got)
	}
	f.ask(405, "DELETE", path(sourceName, "offsets"), "")
}

func TestWhatConnectSaysOfItself(t *testing.T) {
	f := newFixture(t)
	if got := read[map[string]string](f, "/"); got["version"] == "" || got["commit"] != "heliograph-test" {
		t.Errorf("%v", got)
	}
	if got := read[[]plugin](f, "/connector-plugins"); len(got) != 3 || got[0].Class != mirrorPackage+"MirrorSourceConnector" || got[0].Type != "source" {
		t.Errorf("%+v", got)
	}
}

func TestBadRequestsChangeNothing(t *testing.T) {
	f := newFixture(t)
	f.ask(201, "PUT", path(sourceName, "config"), full("MirrorSourceConnector"))
	with := func(field string) string {
		return `{"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", ` + field + `}`
	}
	tests := []struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		{"ops", "PUT", path(sourceName, "config"), with(`"topcs": "x"`), 400, "topcs"},
		{"ops", "PUT", path(sourceName, "config"), with(`"topics": ["x"]`), 400, "[topics]"},
		{"ops", "PUT", path(sourceName, "config"), with(`"topics": "["`), 400, "topics"},
		{"ops", "PUT", path(sourceName, "config"), with(`"topics": "a", "topics": "b"`), 400, "[topics] is given twice"},
		{"ops", "PUT", path(sourceName, "config"), `{"topics": "x"}`, 400, "[connector.class] is required"},
		{"ops", "PUT", path(sourceName, "config"), `{"connector.class": "com.example.Sink"}`, 400, "[connector.class]"},
		{"ops", "PUT", path(sourceName, "config"), with(`"source.cluster.alias": "C"`), 400, "[source.cluster.alias]"},
		{"ops", "PUT", path(sourceName, "config"), with(`"value.converter": "org.apache.kafka.connect.json.JsonConverter"`), 400, "[value.converter]"},
		{"ops", "PUT", path(sourceName, "config"), with(`"source.cluster.bootstrap.servers": "evil:9092"`), 409, "cluster A"},
		{"ops", "PUT", path(sourceName, "config"), `no json`, 400, "JSON"},
		{"ops", "PUT", path("mine", "config"), with(`"topics": "x"`), 400, "A->B.MirrorSourceConnector"},
		{"ops", "PUT", path("C->D.MirrorSourceConnector", "config"), with(`"topics": "x"`), 400, "C"},
		{"ops", "PUT", path("C->D.MirrorSourceConnector", "config"), with(`"topics": "[", "source.cluster.bootstrap.servers": "c:1", "target.cluster.bootstrap.servers": "d:1"`), 400, "topics"},
		{"ops", "POST", "/connectors", `{"name": "` + sourceName + `", "config": ` + full("MirrorSourceConnector") + `}`, 409, "already exists"},
		{"ops", "POST", "/connectors", `{"name": "` + sourceName + `"}`, 400, "[config]"},
		{"ops", "POST", "/connectors", `{"name": "` + sourceName + `", "configuration": {}, "config": {}}`, 400, "[configuration]"},
		{"ops", "GET", path("mine"), ``, 404, "Connector mine not found"},
		{"ops", "GET", path("C->D.MirrorSourceConnector", "status"), ``, 404, "not found"},
		{"ops", "GET", path(checkpointName, "status"), ``, 404, "not found"},
		{"ops", "DELETE", path("C->D.MirrorSourceConnector"), ``, 404, "not found"},
		{"ops", "PUT", path("C->D.MirrorSourceConnector", "pause"), ``, 404, "not found"},
		{"ops", "GET", "/connectors/x/y/z/q", ``, 404, "404"},
		{"look", "PUT", path(sourceName, "pause"), ``, 403, "read"},
		{"look", "DELETE", path(sourceName), ``, 403, "read"},
		{"nobody", "GET", "/connectors", ``, 401, "token"},
		{"ops", "PUT", path(sourceName, "config"), `{"x": "` + strings.Repeat("x", maxBody) + `"}`, 413, "bytes"},
	}
	before := f.control.Revision()
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path+" "+tt.says, func(t *testing.T) {
			f := &fixture{T: t, control: f.control, url: f.url}
			status, body := f.as(tt.token, tt.method, tt.path, tt.body)
			var e errorBody
			if err := json.Unmarshal([]byte(body), &e); err != nil || status != tt.status || e.Code != tt.status || !strings.Contains(e.Message, tt.says) {
				t.Errorf("got %d %s, want %d with %q", status, body, tt.status, tt.says)
			}
		})
	}
	if after := f.control.Revision(); after != before {
		t.Errorf("refused requests changed something: revision %d after %d", after, before)
	}
}
