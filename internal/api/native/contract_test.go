package native

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/config"
	"heliograph/internal/control"
	"heliograph/internal/daemon"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// decisions is an engine in which things wait for a person.
type decisions struct{ asked []string }

func (d *decisions) Held(mirror.FlowID) []flow.HeldChange {
	return []flow.HeldChange{{Topic: "A.orders", Setting: "retention.ms", Wish: "1", Since: time.Unix(1, 0).UTC(), Until: time.Unix(2, 0).UTC()}}
}

func (d *decisions) Decide(_ mirror.FlowID, topic, setting string, accept bool) error {
	if topic != "A.orders" {
		return flow.ErrNothingWaits
	}
	d.asked = append(d.asked, fmt.Sprint(topic, " ", setting, " ", accept))
	return nil
}

func (d *decisions) Answer(_ mirror.FlowID, tp kafka.TopicPartition, choice string) error {
	if tp.Topic != "orders" {
		return flow.ErrElsewhere
	}
	d.asked = append(d.asked, tp.String()+" "+choice)
	return nil
}

func (d *decisions) Topics(mirror.FlowID) []flow.TopicStatus {
	return []flow.TopicStatus{{Source: "orders", Remote: "A.orders", Partitions: 1, State: "replicated"}}
}

// server is an API over a control with two clusters and a flow, none of which can be reached.
type server struct {
	*httptest.Server
	api       *API
	control   *control.Control
	decisions *decisions
}

func actors(token string) (control.Actor, bool) {
	switch token {
	case "admin":
		return control.Actor{Name: "admin", Scopes: []control.Scope{control.ScopeAdmin}}, true
	case "reader":
		return control.Actor{Name: "reader", Scopes: []control.Scope{control.ScopeRead}}, true
	case "red":
		return control.Actor{Name: "red", Tenant: "red", Scopes: []control.Scope{control.ScopeWrite}}, true
	}
	return control.Actor{}, false
}

func serve(t *testing.T) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	d := daemon.NewEmpty(config.Process{}, daemon.Options{Log: log, StopWithin: time.Second})
	c, err := control.New(t.Context(), control.Options{Engine: d, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx := control.WithActor(t.Context(), control.Actor{Name: "test", Scopes: []control.Scope{control.ScopeAdmin}})
	fast := map[string]string{"request.timeout.ms": "1000"}
	for alias, port := range map[string]string{"A": "1", "B": "2"} {
		properties := map[string]string{
			"bootstrap.servers": "127.0.0.1:" + port, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
			"sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush";`,
		}
		maps.Copy(properties, fast)
		if _, err := c.PutCluster(ctx, control.Cluster{Alias: alias, Properties: properties}, control.Absent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.PutFlow(ctx, control.Flow{Source: "A", Target: "B", Enabled: true, Paused: true, Properties: map[string]string{"topics": "orders"}}, control.Absent); err != nil {
		t.Fatal(err)
	}
	s := &server{control: c, decisions: &decisions{}}
	s.api = New(Options{Control: c, Engine: s.decisions, Actor: actors, Build: telemetry.Build{Version: "1.2.3"}, Log: log})
	s.Server = httptest.NewServer(s.api)
	t.Cleanup(s.Close)
	t.Cleanup(s.api.Close)
	return s
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request. Headers are "Name: value".
func (s *server) ask(t *testing.T, token, method, path, body string, headers ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text []byte
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		one := make([]byte, 4096) // a stream has no end
		n, err := resp.Body.Read(one)
		if err != nil && n == 0 {
			t.Fatal(err)
		}
		text = one[:n]
	} else if text, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hush") {
		t.Errorf("%s %s shows a secret: %s", method, path, text)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// requests are calls of every operation, with the statuses that they must have.
var requests = []struct {
	id, method, path, body string
	status                 int
}{
	{"get-server", "GET", "/server", "", 200},
	{"list-clusters", "GET", "/clusters?limit=1", "", 200},
	{"get-cluster", "GET", "/clusters/A", "", 200},
	{"get-cluster", "GET", "/clusters/nobody", "", 404},
	{"put-cluster", "PUT", "/clusters/C", `{"properties":{"bootstrap.servers":"127.0.0.1:3"},"labels":{"region":"eu"}}`, 200},
	{"put-cluster", "PUT", "/clusters/C", `{"properties":{"bootstrap.servers":"127.0.0.1:3","nonsense":"1"}}`, 422},
	{"put-cluster", "PUT", "/clusters/C", `{"properties":{"bootstrap.servers":5}}`, 422},
	{"put-cluster", "PUT", "/clusters/C", `{"properties":{},"more":1}`, 422},
	{"put-cluster", "PUT", "/clusters/C", `{`, 400},
	{"put-cluster", "PUT", "/clusters/C", "", 400},
	{"put-cluster-rate", "PUT", "/clusters/A/rate", `{"bytes_per_second":1000}`, 200},
	{"put-cluster-rate", "PUT", "/clusters/A/rate", `{"bytes_per_second":-1}`, 422},
	{"delete-cluster", "DELETE", "/clusters/A", "", 409},
	{"delete-cluster", "DELETE", "/clusters/C", "", 204},
	{"test-cluster", "POST", "/clusters/A/test", "", 200},
	{"test-connection", "POST", "/connection-tests", `{"alias":"X","properties":{"bootstrap.servers":"127.0.0.1:1"}}`, 200},
	{"test-connection", "POST", "/connection-tests", `{"alias":"X","properties":{"bootstrap.servers":"${file:/etc/passwd:x}"}}`, 422},
	{"list-flows", "GET", "/flows?cluster=A", "", 200},
	{"list-flows", "GET", "/flows?limit=0", "", 422},
	{"list-flows", "GET", "/flows?nonsense=1", "", 422},
	{"get-flow", "GET", "/flows/A/B", "", 200},
	{"put-flow", "PUT", "/flows/B/A", `{"enabled":false,"properties":{"topics":"back"}}`, 200},
	{"put-flow", "PUT", "/flows/B/Z", `{}`, 422},
	{"put-flow-rate", "PUT", "/flows/B/A/rate", `{"bytes_per_second":5000}`, 200},
	{"delete-flow", "DELETE", "/flows/B/A", "", 204},
	{"delete-flow", "DELETE", "/flows/B/A", "", 404},
	{"restart-flow", "POST", "/flows/A/B/restart", "", 409},
	{"resume-flow", "POST", "/flows/A/B/resume", "", 200},
	{"pause-flow", "POST", "/flows/A/B/pause", "", 200},
	{"get-settings", "GET", "/flows/A/B/settings", "", 200},
	{"get-status", "GET", "/flows/A/B/status", "", 200},
	{"list-status", "GET", "/status?source=A&limit=1", "", 200},
	{"list-status", "GET", "/status?limit=1001", "", 422},
	{"list-topics", "GET", "/flows/A/B/topics", "", 200},
	{"list-partitions", "GET", "/flows/A/B/partitions?state=parked", "", 200},
	{"list-partitions", "GET", "/flows/A/B/partitions?state=odd", "", 422},
	{"answer-partition", "POST", "/flows/A/B/partitions/orders/0/answer", `{"choice":"scan"}`, 204},
	{"answer-partition", "POST", "/flows/A/B/partitions/orders/0/answer", `{"choice":"maybe"}`, 422},
	{"answer-partition", "POST", "/flows/A/B/partitions/other/0/answer", `{"choice":"scan"}`, 409},
	{"list-held", "GET", "/flows/A/B/held", "", 200},
	{"accept-held", "POST", "/flows/A/B/held/A.orders/retention.ms/accept", "", 204},
	{"accept-held", "POST", "/flows/A/B/held/other/retention.ms/accept", "", 409},
	{"refuse-held", "POST", "/flows/A/B/held/A.orders/retention.ms/refuse", "", 204},
	{"get-groups", "GET", "/flows/A/B/groups", "", 200},
	{"get-losses", "GET", "/flows/A/B/losses", "", 502},
	{"translate", "GET", "/flows/A/B/translate?topic=orders&partition=0&offset=5", "", 502},
	{"translate", "GET", "/flows/A/B/translate", "", 422},
	{"preview-flow", "GET", "/flows/A/B/preview", "", 200},
	{"survey-flow", "GET", "/flows/A/B/survey", "", 200},
	{"start-verification", "POST", "/verifications", `{"source":"A","target":"B"}`, 202},
	{"start-verification", "POST", "/verifications", `{"source":"A","target":"B","topics":["("]}`, 422},
	{"list-verifications", "GET", "/verifications", "", 200},
	{"get-verification", "GET", "/verifications/nothing", "", 404},
	{"get-verification", "GET", "/verifications/{id}", "", 200},
	{"cancel-verification", "DELETE", "/verifications/{id}", "", 204},
	{"plan", "POST", "/plan", `{"changes":[{"delete_flow":{"source":"A","target":"B"}}]}`, 200},
	{"plan", "POST", "/plan", `{"changes":[{}]}`, 422},
	{"plan", "POST", "/plan", `{"changes":[{"delete_cluster":{"alias":"A"}}]}`, 409},
	{"apply", "POST", "/apply", `{"changes":[{"put_flow":{"source":"A","target":"B","properties":{"topics":"orders, payments"}}}]}`, 200},
	{"apply", "POST", "/apply", `{"changes":[{"revision":1,"put_flow":{"source":"A","target":"B","properties":{"topics":"x"}}}]}`, 412},
	{"list-events", "GET", "/events", "", 200},
	{"stream-events", "GET", "/events/stream", "", 200},
	{"stream-status", "GET", "/status/stream", "", 200},
}

var errorStatus = regexp.MustCompile(`^[45]`)

// TestEveryRouteKeepsToTheDocument calls every operation and compares the answers with the
// OpenAPI document: that their statuses are in it, and their bodies fit the schemas.
func TestEveryRouteKeepsToTheDocument(t *testing.T) {
	s := serve(t)
	doc := s.api.OpenAPI()
	called := map[string]bool{}
	verification := ""
	for _, r := range requests {
		op := operation(doc, r.id)
		if op == nil {
			t.Fatalf("no operation %s", r.id)
		}
		called[r.id] = true
		got := s.ask(t, "admin", r.method, strings.Replace(r.path, "{id}", verification, 1), r.body)
		name := fmt.Sprintf("%s %s %s", r.method, r.path, r.body)
		if got.status != r.status {
			t.Errorf("%s: %d, want %d: %s", name, got.status, r.status, got.body)
			continue
		}
		if r.id == "start-verification" && r.status == 202 {
			verification = strings.TrimPrefix(got.header.Get("Location"), verificationPath)
		}
		described := op.Responses[fmt.Sprint(got.status)]
		if described == nil {
			t.Errorf("%s: the document does not have the status %d", name, got.status)
			continue
		}
		if got.status == http.StatusNoContent || strings.HasSuffix(r.path, "/stream") {
			continue
		}
		kind := "application/json"
		if errorStatus.MatchString(fmt.Sprint(got.status)) {
			kind = "application/problem+json"
			if !strings.Contains(got.body, `"title"`) {
				t.Errorf("%s: no problem: %s", name, got.body)
			}
		}
		if got.header.Get("Content-Type") != kind || described.Content[kind] == nil {
			t.Errorf("%s: %s, described are %v", name, got.header.Get("Content-Type"), slices.Collect(maps.Keys(described.Content)))
			continue
		}
		for _, problem := range fits(doc, described.Content[kind].Schema, got.body) {
			t.Errorf("%s: the body does not fit its schema: %v: %s", name, problem, got.body)
		}
	}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil && !called[op.OperationID] {
				t.Errorf("%s %s is not called", path, op.OperationID)
			}
		}
	}
	if want := []string{"orders-0 scan", "A.orders retention.ms true", "A.orders retention.ms false"}; !slices.Equal(s.decisions.asked, want) {
		t.Errorf("decided: %q, want %q", s.decisions.asked, want)
	}
}

func operation(doc *huma.OpenAPI, id string) *huma.Operation {
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil && op.OperationID == id {
				return op
			}
		}
	}
	return nil
}

// fits validates a body. Reading what was written adds no fields, so none may be unknown.
func fits(doc *huma.OpenAPI, schema *huma.Schema, body string) []error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return []error{err}
	}
	result := &huma.ValidateResult{}
	huma.Validate(doc.Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, result)
	return result.Errors
}

func TestNobodyIsAnsweredWithoutAToken(t *testing.T) {
	s := serve(t)
	for _, r := range requests {
		path := strings.Replace(r.path, "{id}", "x", 1)
		for _, token := range []string{"", "wrong"} {
			if got := s.ask(t, token, r.method, path, r.body); got.status != 401 || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with the token %q: %d", r.method, path, token, got.status)
			}
		}
	}
}

func TestAReaderChangesNothing(t *testing.T) {
	s := serve(t)
	before := s.control.Revision()
	for _, r := range requests {
		if r.method == "GET" || r.status >= 300 || strings.Contains(r.path, "{id}") {
			continue
		}
		if got := s.ask(t, "reader", r.method, r.path, r.body); got.status != 403 && got.status != 404 && !strings.HasSuffix(r.path, "/test") {
			t.Errorf("%s %s: %d", r.method, r.path, got.status)
		}
	}
	if s.control.Revision() != before || len(s.decisions.asked) > 0 {
		t.Errorf("revision %d after %d, decided %v", s.control.Revision(), before, s.decisions.asked)
	}
}

func TestATenantDoesNotSeeOthers(t *testing.T) {
	s := serve(t)
	for _, r := range requests {
		if strings.Contains(r.path, "/A") && r.method != "PUT" {
			if got := s.ask(t, "red", r.method, r.path, r.body); got.status != 404 && got.status != 422 {
				t.Errorf("%s %s: %d %s", r.method, r.path, got.status, got.body)
			}
		}
	}
	for _, list := range []string{"/clusters", "/flows", "/status", "/events"} {
		if got := s.ask(t, "red", "GET", list, ""); got.body != "{\"items\":[]}\n" {
			t.Errorf("%s: %s", list, got.body)
		}
	}
}

func TestWritesAreConditional(t *testing.T) {
	s := serve(t)
	body := `{"properties":{"topics":"orders, more"}}`
	got := s.ask(t, "admin", "GET", "/flows/A/B", "")
	tag := got.header.Get("ETag")
	for _, step := range []struct {
		header string
		status int
	}{
		{"If-None-Match: *", 409},
		{`If-Match: "999"`, 412},
		{`If-Match: "nonsense"`, 412},
		{"If-None-Match: x", 400},
		{"If-Match: " + tag, 200},
		{"If-Match: " + tag, 412},
		{"If-Match: *", 200},
	} {
		if got := s.ask(t, "admin", "PUT", "/flows/A/B", body, step.header); got.status != step.status {
			t.Errorf("%s: %d, want %d: %s", step.header, got.status, step.status, got.body)
		}
	}
	if got := s.ask(t, "admin", "PUT", "/flows/B/A", body, "If-Match: *"); got.status != 404 {
		t.Errorf("If-Match: * for nothing: %d", got.status)
	}
	first := s.ask(t, "admin", "PUT", "/flows/A/B", body)
	if again := s.ask(t, "admin", "PUT", "/flows/A/B", body); again.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("the same again: %s after %s", again.header.Get("ETag"), first.header.Get("ETag"))
	}
}

func TestAHiddenValueStaysWhatItIs(t *testing.T) {
	s := serve(t)
	got := s.ask(t, "admin", "GET", "/clusters/A", "")
	var view ClusterView
	if err := json.Unmarshal([]byte(got.body), &view); err != nil {
		t.Fatal(err)
	}
	view.Properties["client.id"] = "mine"
	body, err := json.Marshal(ClusterBody{Properties: view.Properties})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.ask(t, "admin", "PUT", "/clusters/A", string(body)); got.status != 200 {
		t.Fatalf("%d: %s", got.status, got.body)
	}
	c, err := s.control.Cluster(control.WithActor(t.Context(), control.Actor{Name: "test", Scopes: []control.Scope{control.ScopeAdmin}}), "A")
	if err != nil || !strings.Contains(c.Properties["sasl.jaas.config"], "hush") || c.Properties["client.id"] != "mine" {
		t.Errorf("%v, %v", c.Properties, err)
	}
}

// TestAStoredSecretIsNotSentElsewhere asks for a connection test of a shared cluster's alias with other
// brokers and its hidden login.
func TestAStoredSecretIsNotSentElsewhere(t *testing.T) {
	s := serve(t)
	if err := s.control.Configure(t.Context(), control.Policy{Tenants: map[string]control.Tenant{"red": {Clusters: map[string]string{}}}}, nil); err != nil {
		t.Fatal(err)
	}
	body := `{"alias":"A","properties":{"bootstrap.servers":"127.0.0.1:9","security.protocol":"SASL_PLAINTEXT","sasl.mechanism":"PLAIN","sasl.jaas.config":"[hidden]"}}`
	if got := s.ask(t, "red", "GET", "/clusters/A", ""); got.status != 200 {
		t.Fatalf("the shared cluster: %d", got.status)
	}
	if got := s.ask(t, "red", "POST", "/connection-tests", body); got.status != 422 {
		t.Errorf("a tenant: %d %s", got.status, got.body)
	}
	if got := s.ask(t, "admin", "POST", "/connection-tests", body); got.status != 200 {
		t.Errorf("the owner: %d %s", got.status, got.body)
	}
}

func TestListsComeInPages(t *testing.T) {
	s := serve(t)
	for i := range 25 {
		if got := s.ask(t, "admin", "PUT", fmt.Sprintf("/clusters/t%02d", i), `{"properties":{"bootstrap.servers":"127.0.0.1:5"}}`); got.status != 200 {
			t.Fatal(got.body)
		}
		if got := s.ask(t, "admin", "PUT", fmt.Sprintf("/flows/A/t%02d", i), `{"enabled":false}`); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	for path, want := range map[string]int{"/clusters": 27, "/flows": 26} {
		seen := map[string]bool{}
		for after, pages := "", 0; ; pages++ {
			var l List[struct{ Alias, Source, Target string }]
			got := s.ask(t, "admin", "GET", path+"?limit=10&after="+after, "")
			if err := json.Unmarshal([]byte(got.body), &l); err != nil || pages > 3 {
				t.Fatalf("%s: %v, page %d", got.body, err, pages)
			}
			for _, item := range l.Items {
				seen[item.Alias+item.Source+"->"+item.Target] = true
			}
			if after = l.Next; after == "" {
				break
			}
		}
		if len(seen) != want {
			t.Errorf("%s: %d, want %d", path, len(seen), want)
		}
	}
}

func TestABodyIsBounded(t *testing.T) {
	s := serve(t)
	big := `{"properties":{"bootstrap.servers":"` + strings.Repeat("x", 2<<20) + `"}}`
	if got := s.ask(t, "admin", "PUT", "/clusters/X", big); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d: %.200s", got.status, got.body)
	}
}

// TestTheDocumentIsThePublishedOne compares docs/openapi.json with the code; -update writes it.
func TestTheDocumentIsThePublishedOne(t *testing.T) {
	const name = "../../../docs/openapi.json"
	doc, err := json.MarshalIndent(New(Options{}).OpenAPI(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	doc = append(doc, '\n')
	if *update {
		if err := os.WriteFile(name, doc, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(doc) {
		t.Error("docs/openapi.json is not what the code describes: go test ./internal/api/native -run Document -update")
	}
}
