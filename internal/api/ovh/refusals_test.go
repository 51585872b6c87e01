package ovh

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	govh "github.com/ovh/go-ovh/ovh"

	"heliograph/internal/api/jsonobject"
	"heliograph/internal/control"
)

// What is wrong with a request is said by status, class and the field's name, and
// changes nothing.
func TestBadRequestsChangeNothing(t *testing.T) {
	f := newFixture(t)
	source, target := f.integrate(sourceAlias), f.integrate(targetAlias)
	r := f.replicate(source.ID, target.ID)
	unknown := newID()
	integrations, replications := f.mirror+"/integration", f.mirror+"/replication"
	kafka := base1 + "/kafka/" + kafkaID(targetAlias)
	// reverse is a replication that would be accepted, with one field more or other.
	reverse := func(field string) string {
		return fmt.Sprintf(`{"sourceIntegration": %q, "targetIntegration": %q, "enabled": true, %s}`, target.ID, source.ID, field)
	}
	tests := []struct {
		method, path, body string
		status             int
		class, says        string
	}{
		{"POST", integrations, `{"type": "kafkaMirrorMaker", "sourceServiceId": "` + kafkaID(sourceAlias) + `", "destinationServiceId": "` + standing(testProject) + `"}`, 409, classConflict, source.ID},
		{"POST", integrations, `{"sourceServiceId": "` + unknown + `", "destinationServiceId": "` + standing(testProject) + `"}`, 404, classServiceNotFound, unknown},
		{"POST", integrations, `{"sourceServiceId": "` + standing(testProject) + `", "destinationServiceId": "` + kafkaID(sourceAlias) + `"}`, 400, "Client::BadRequest", "[destinationServiceId]"},
		{"POST", integrations, `{"destinationServiceId": "` + standing(testProject) + `"}`, 400, "Client::BadRequest", "[sourceServiceId] is required"},
		{"POST", integrations, `{"sourceServiceId": "primary", "destinationServiceId": "x"}`, 400, "Client::BadRequest", "[sourceServiceId]"},
		{"POST", integrations, `{"type": "kafkaLogs", "sourceServiceId": "` + kafkaID(sourceAlias) + `", "destinationServiceId": "` + standing(testProject) + `"}`, 400, "Client::BadRequest", "[type]"},
		{"POST", integrations, `{"parameters": {"tasks": "2"}, "sourceServiceId": "` + kafkaID(sourceAlias) + `", "destinationServiceId": "` + standing(testProject) + `"}`, 400, "Client::BadRequest", "[parameters]"},
		{"DELETE", integrations + "/" + source.ID, ``, 409, classConflict, r.ID},
		{"DELETE", integrations + "/" + target.ID, ``, 409, classConflict, r.ID},
		{"DELETE", integrations + "/" + unknown, ``, 404, classNotFound, unknown},
		{"GET", integrations + "/nothing", ``, 400, "Client::BadRequest", "[integrationId]"},
		{"GET", integrations + "/" + unknown, ``, 404, classNotFound, unknown},
		{"GET", base1 + "/kafkaMirrorMaker/" + unknown, ``, 404, classServiceNotFound, unknown},
		{"GET", base1 + "/kafkaMirrorMaker/" + unknown + "/integration", ``, 404, classServiceNotFound, unknown},
		{"GET", base1 + "/kafkaMirrorMaker/" + kafkaID(sourceAlias), ``, 404, classServiceNotFound, "MirrorMaker"},
		{"GET", "/cloud/project/another/database/kafka", ``, 404, classNotFound, "another"},

		{"POST", replications, `{"sourceIntegration": "` + source.ID + `", "targetIntegration": "` + target.ID + `", "enabled": true}`, 409, classConflict, r.ID},
		{"POST", replications, `{"sourceIntegration": "` + source.ID + `", "targetIntegration": "` + source.ID + `", "enabled": true}`, 400, "Client::BadRequest", "[targetIntegration]"},
		{"POST", replications, `{"sourceIntegration": "` + source.ID + `", "targetIntegration": "` + unknown + `", "enabled": true}`, 404, classNotFound, unknown},
		{"POST", replications, `{"sourceIntegration": "` + source.ID + `", "enabled": true}`, 400, "Client::BadRequest", "[targetIntegration] is required"},
		{"POST", replications, `{"sourceIntegration": "` + target.ID + `", "targetIntegration": "` + source.ID + `"}`, 400, "Client::BadRequest", "[enabled] is required"},
		{"POST", replications, reverse(`"topic": ["x"]`), 400, "Client::BadRequest", "[topic] is not a field"},
		{"POST", replications, reverse(`"Topics": ["x"]`), 400, "Client::BadRequest", "[Topics] is not a field"},
		{"POST", replications, reverse(`"topics": ["x"], "topics": ["y"]`), 400, "Client::BadRequest", "[topics] is given twice"},
		{"POST", replications, reverse(`"topics": "inventory"`), 400, "Client::BadRequest", "[topics]"},
		{"POST", replications, reverse(`"topics": []`), 400, "Client::BadRequest", "[topics]"},
		{"POST", replications, reverse(`"topics": ["a,b"]`), 400, "Client::BadRequest", "[topics]"},
		{"POST", replications, reverse(`"topics": [""]`), 400, "Client::BadRequest", "[topics]"},
		{"POST", replications, reverse(`"topics": [null]`), 400, "Client::BadRequest", "[topics]"},
		{"POST", replications, reverse(`"topics": ["["]`), 400, "Client::BadRequest", "[topics]"},
		{"POST", replications, reverse(`"topicExcludeList": [3]`), 400, "Client::BadRequest", "[topicExcludeList]"},
		{"POST", replications, reverse(`"topicExcludeList": ["(unclosed"]`), 400, "Client::BadRequest", "[topicExcludeList]"},
		{"POST", replications, reverse(`"syncInterval": "60"`), 400, "Client::BadRequest", "[syncInterval]"},
		{"POST", replications, reverse(`"syncInterval": 1.5`), 400, "Client::BadRequest", "[syncInterval]"},
		{"POST", replications, reverse(`"syncInterval": 0`), 400, "Client::BadRequest", "[syncInterval]"},
		{"POST", replications, reverse(`"syncInterval": 99999999999999999999`), 400, "Client::BadRequest", "[syncInterval]"},
		{"POST", replications, reverse(`"syncGroupOffsets": "yes"`), 400, "Client::BadRequest", "[syncGroupOffsets]"},
		{"POST", replications, reverse(`"replicationPolicyClass": "com.example.Policy"`), 400, "Client::BadRequest", "[replicationPolicyClass]"},
		{"POST", replications, reverse(`"id": "x"`), 400, "Client::BadRequest", "[id]"},
		{"POST", replications, `[]`, 400, "Client::BadRequest", "object"},
		{"POST", replications, ``, 400, "Client::BadRequest", "object"},
		{"POST", replications, `{"enabled": true} {}`, 400, "Client::BadRequest", "behind"},
		{"POST", replications, `{"enabled": tru`, 400, "Client::BadRequest", "[enabled]"},
		{"PUT", replications + "/" + r.ID, `{"enabled": true, "syncInterval": -1}`, 400, "Client::BadRequest", "[syncInterval]"},
		{"PUT", replications + "/" + r.ID, `{"enabled": true, "topics": ["["]}`, 400, "Client::BadRequest", "[topics]"},
		{"PUT", replications + "/" + unknown, `{"enabled": true}`, 404, classNotFound, unknown},
		{"DELETE", replications + "/" + unknown, ``, 404, classNotFound, unknown},

		// What takes machines, bills or certificates.
		{"POST", base1 + "/kafka", `{"plan": "business"}`, 404, classNoAvailability, "orders no machines"},
		{"POST", base1 + "/kafkaMirrorMaker", `{"nodesPattern": {"flavor": "db1-4", "number": 1, "region": "GRA"}}`, 404, classNoAvailability, "[nodesPattern]"},
		{"PUT", kafka, `{"plan": "enterprise"}`, 400, classNoUpdate, "registered"},
		{"DELETE", kafka, ``, 403, classForbidden, "deletes no Kafka clusters"},
		{"POST", f.mirror + "/prometheus/credentials/reset", ``, 403, classForbidden, "/metrics"},
		{"POST", f.mirror + "/log/subscription", `{"kind": "x", "streamId": "y"}`, 404, classNotFound, "forwards no logs"},
		{"POST", f.mirror + "/maintenance/" + unknown + "/apply", ``, 404, classNotFound, "maintenance"},

		{"GET", f.mirror + "/metric/nothing?period=lastHour", ``, 404, classMetricName, "nothing"},
		{"GET", f.mirror + "/metric/replication_lag_records", ``, 400, "Client::BadRequest", "[period]"},
		{"GET", f.mirror + "/metric?extended=perhaps", ``, 400, "Client::BadRequest", "[extended]"},
		{"GET", f.mirror + "/node/" + unknown, ``, 404, classNodeNotFound, unknown},
		{"GET", f.mirror + "/nowhere", ``, 404, classNotFound, "URL"},
		{"PATCH", f.mirror, ``, 405, "Client::MethodNotAllowed", "PATCH"},
		{"PUT", f.mirror + "/integration/" + source.ID, `{}`, 405, "Client::MethodNotAllowed", "PUT"},

		{"POST", kafka + "/topic", `{"partitions": 1}`, 400, "Client::BadRequest", "[name] is required"},
		{"POST", kafka + "/topic", `{"name": "x", "partitions": 0}`, 400, "Client::BadRequest", "[partitions]"},
		{"POST", kafka + "/topic", `{"name": "x", "retentionHours": 9223372036854775807}`, 400, "Client::BadRequest", "[retentionHours]"},
		{"POST", kafka + "/topic", `{"name": "no/topic", "partitions": 1}`, 400, "Client::BadRequest", "[name]"},
		{"POST", kafka + "/topic", `{"name": "..", "partitions": 1}`, 400, "Client::BadRequest", "[name]"},
		{"POST", kafka + "/user", `{"name": "-"}`, 400, classUserName, "[name]"},
		{"POST", kafka + "/topicAcl", `{"topic": "t", "username": "u", "permission": "own"}`, 400, "Client::BadRequest", "[permission]"},
		{"POST", kafka + "/topicAcl", `{"topic": "a*b", "username": "u", "permission": "read"}`, 400, "Client::BadRequest", "[topic]"},
		{"GET", kafka + "/topic/" + unknown, ``, 404, classNotFound, unknown},
		{"GET", kafka + "/user/" + unknown, ``, 404, classUserNotFound, unknown},
		{"GET", kafka + "/topicAcl/" + unknown, ``, 404, classNotFound, unknown},
	}
	before := f.control.Revision()
	for _, tt := range tests {
		t.Run(tt.method+" "+strings.TrimPrefix(tt.path, base1)+" "+tt.body, func(t *testing.T) {
			status, e := f.send(t, tt.method, tt.path, tt.body)
			if status != tt.status || e.Class != tt.class || !strings.Contains(e.Message, tt.says) {
				t.Errorf("got %d %s %q, want %d %s with %q", status, e.Class, e.Message, tt.status, tt.class, tt.says)
			}
		})
	}
	if after := f.control.Revision(); after != before {
		t.Errorf("refused requests changed something: revision %d after %d", after, before)
	}
}

// send makes a signed request with any body, as no client library would.
func (f *fixture) send(t *testing.T, method, path, body string) (int, errorBody) {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	r, err := http.NewRequestWithContext(t.Context(), method, f.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Ovh-Application", "appkey")
	r.Header.Set("X-Ovh-Consumer", "opskey")
	r.Header.Set("X-Ovh-Timestamp", stamp)
	r.Header.Set("X-Ovh-Signature", "$1$"+sign("appsecret", "opskey", method, f.server.URL+path, []byte(body), stamp))
	return f.do(t, r)
}

func (f *fixture) do(t *testing.T, r *http.Request) (int, errorBody) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e errorBody
	if resp.StatusCode >= 300 {
		if err := json.Unmarshal(data, &e); err != nil || resp.Header.Get("X-Ovh-QueryID") == "" {
			t.Fatalf("not an answer of this API: %d %s", resp.StatusCode, data)
		}
	}
	return resp.StatusCode, e
}

func TestWhoMayAsk(t *testing.T) {
	f := newFixture(t)
	path := base1 + "/kafka"
	plain := func(c *govh.Client) error { return c.Get(path, nil) }
	token := func(token string) *govh.Client {
		c, err := govh.NewAccessTokenClient(f.server.URL, token)
		f.must(err)
		return c
	}
	f.must(plain(token("opstoken")))
	f.refused(plain(token("wrong")), 401, "Client::Unauthorized::InvalidAuthToken")
	f.refused(plain(f.login("", "nobody", "appsecret", "opskey")), 403, classForbidden)
	f.refused(plain(f.login("", "appkey", "appsecret", "nobody")), 403, classForbidden)
	f.refused(plain(f.login("", "appkey", "wrong", "opskey")), 400, "Client::BadRequest")
	f.refused(f.client.GetUnAuth(path, nil), 403, classForbidden)

	readonly := f.login("", "appkey", "appsecret", "readkey")
	f.refused(readonly.Post(f.mirror+"/integration", map[string]any{}, nil), 403, classForbidden)
	f.refused(readonly.Delete(f.mirror, nil), 403, classForbidden)

	for _, prefix := range []string{"", "/1.0", "/v1"} {
		c := f.login(prefix, "appkey", "appsecret", "opskey")
		if _, err := c.Time(); err != nil {
			t.Errorf("%s/auth/time: %v", prefix, err)
		}
		if err := plain(c); err != nil {
			t.Errorf("endpoint %q: %v", prefix, err)
		}
	}
	f.must(f.login("/1.0", "appkey", "appsecret", "opskey").Get("/v1"+path, nil)) // as newer programs write it

	var projects []string
	f.must(f.client.Get("/cloud/project", &projects))
	if len(projects) != 1 || projects[0] != testProject {
		t.Errorf("projects %v", projects)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+path, nil)
	f.must(err)
	if status, e := f.do(t, r); status != 401 || e.ErrorCode != "NOT_CREDENTIAL" {
		t.Errorf("without any credential: %d %+v", status, e)
	}
}

// A signature is worth something for one request at about one time.
func TestSignatureCoversTheWholeRequest(t *testing.T) {
	f := newFixture(t)
	path := f.mirror + "/integration"
	body := fmt.Sprintf(`{"sourceServiceId": %q, "destinationServiceId": %q}`, kafkaID(sourceAlias), standing(testProject))
	now := time.Now()
	signed := func(method, path, body string, at time.Time) http.Header {
		stamp := strconv.FormatInt(at.Unix(), 10)
		return http.Header{
			"X-Ovh-Application": {"appkey"}, "X-Ovh-Consumer": {"opskey"}, "X-Ovh-Timestamp": {stamp},
			"X-Ovh-Signature": {"$1$" + sign("appsecret", "opskey", method, f.server.URL+path, []byte(body), stamp)},
		}
	}
	tests := map[string]struct {
		header http.Header
		code   string
	}{
		"another method":     {signed("PUT", path, body, now), "INVALID_SIGNATURE"},
		"another path":       {signed("POST", path+"/", body, now), "INVALID_SIGNATURE"},
		"another query":      {signed("POST", path+"?a=b", body, now), "INVALID_SIGNATURE"},
		"another body":       {signed("POST", path, body+" ", now), "INVALID_SIGNATURE"},
		"too old":            {signed("POST", path, body, now.Add(-2*maxSkew)), "QUERY_TIME_OUT"},
		"from the future":    {signed("POST", path, body, now.Add(2*maxSkew)), "QUERY_TIME_OUT"},
		"no time":            {http.Header{"X-Ovh-Application": {"appkey"}, "X-Ovh-Consumer": {"opskey"}}, "QUERY_TIME_OUT"},
		"no signature":       {func() http.Header { h := signed("POST", path, body, now); h.Del("X-Ovh-Signature"); return h }(), "INVALID_SIGNATURE"},
		"an empty signature": {func() http.Header { h := signed("POST", path, body, now); h.Set("X-Ovh-Signature", "$1$"); return h }(), "INVALID_SIGNATURE"},
	}
	before := f.control.Revision()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.server.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = tt.header
			if status, e := f.do(t, r); status != 400 || e.ErrorCode != tt.code {
				t.Errorf("got %d %+v, want %s", status, e, tt.code)
			}
		})
	}
	if f.control.Revision() != before {
		t.Error("a request without a right signature changed something")
	}
}

// Clients whose clock is wrong take the server's.
func TestClientsTakeTheServersTime(t *testing.T) {
	f := newFixture(t)
	f.now = time.Now().Add(3 * time.Hour)
	c := f.login("", "appkey", "appsecret", "opskey")
	f.must(c.Get(base1+"/kafka", nil))
	f.now = f.now.Add(2 * maxSkew) // its offset is stale now
	f.refused(c.Get(base1+"/kafka", nil), 400, "Client::BadRequest")
}

func TestBodiesAreBounded(t *testing.T) {
	f := newFixture(t)
	status, e := f.send(t, "POST", f.mirror+"/replication", `{"topics": ["`+strings.Repeat("x", maxBody)+`"]}`)
	if status != 413 || !strings.Contains(e.Message, "bytes") {
		t.Errorf("%d %+v", status, e)
	}
}

func TestCredentialsThatLetAnybodyInAreRefused(t *testing.T) {
	good := func() Application { return applications()[0] }
	for name, change := range map[string]func(*Application){
		"no key":      func(a *Application) { a.Key = "" },
		"no secret":   func(a *Application) { a.Secret = Application{}.Secret },
		"no consumer": func(a *Application) { a.Consumers[0].Key = Application{}.Secret },
		"no project":  func(a *Application) { a.Consumers[0].Project = "" },
	} {
		app := good()
		change(&app)
		if _, err := NewCredentials([]Application{app}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := NewCredentials([]Application{good(), good()}); err == nil {
		t.Error("two applications with one key are accepted")
	}
}

// A tenant sees the server's clusters that the policy gives it and may copy between
// them, but what is on them is the operator's.
func TestTenantChangesItsOwnClustersOnly(t *testing.T) {
	f := newFixture(t)
	c := f.login("", "appkey", "appsecret", "tenantkey")
	path := "/cloud/project/tenants/database/kafka"
	var ids []string
	f.must(c.Get(path, &ids))
	if len(ids) != 2 {
		t.Fatalf("the tenant sees %v", ids)
	}
	shared := path + "/" + kafkaID(targetAlias)
	var described service
	f.must(c.Get(shared, &described))
	if described.Status != statusReady || len(described.Nodes) != 0 {
		t.Errorf("%+v", described)
	}
	f.refused(c.Get(shared+"/topic", nil), 403, classForbidden)
	f.refused(c.Post(shared+"/topic", map[string]any{"name": "x", "partitions": 1}, nil), 403, classForbidden)
	f.refused(c.Get(shared+"/user", nil), 403, classForbidden)
	f.refused(c.Get(shared+"/topicAcl", nil), 403, classForbidden)
	f.refused(c.Post(shared+"/user", map[string]any{"name": "x"}, nil), 403, classForbidden)
	f.refused(c.Post(shared+"/topicAcl", map[string]any{"topic": "x", "username": "y", "permission": "admin"}, nil), 403, classForbidden)

	own := control.Cluster{Alias: "own", Properties: map[string]string{"bootstrap.servers": "127.0.0.1:1"}}
	if _, err := f.control.PutCluster(f.as(tenant), own, control.Absent); err != nil {
		t.Fatal(err)
	}
	f.must(c.Get(path+"/"+kafkaID("own"), nil))
	f.refused(f.client.Get("/cloud/project/tenants/database/kafka", nil), 404, classNotFound)

	// What it makes, others do not see.
	var l integration
	f.must(c.Post("/cloud/project/tenants/database/kafkaMirrorMaker/"+standing("tenants")+"/integration", map[string]any{
		"sourceServiceId": kafkaID("own"), "destinationServiceId": standing("tenants"),
	}, &l))
	f.refused(f.client.Get(f.mirror+"/integration/"+l.ID, nil), 404, classNotFound)
}

// FuzzBody: whatever a body is, it is taken apart or refused, and never half.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"enabled": true, "topics": ["inventory"], "syncInterval": 60}`, `{"topics": [null]}`, `{`, `{"a":1,"a":2}`, `null`, `{} {}`,
		`{"enabled": null}`, `{"syncInterval": 1e3}`, "{\"topics\": [\"\\ud800\"]}", `{"replicationPolicyClass": 3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := body{jsonobject.Parse(data)}
		r := newReplication()
		r.fill(b)
		err := b.Done()
		if err == nil && !json.Valid(data) {
			t.Errorf("accepted, and is no JSON: %q", data)
		}
		if err != nil {
			e := answerOf(err)
			if e.Status != http.StatusBadRequest || e.Message == "" {
				t.Errorf("%q: %+v", data, e)
			}
			return
		}
		// What is accepted means the same when it is read again from the flow.
		again := newReplication()
		again.settings(&control.Flow{Enabled: r.Enabled, Properties: r.properties(nil)})
		if fmt.Sprint(again) != fmt.Sprint(r) {
			t.Errorf("%q: %+v became %+v", data, r, again)
		}
	})
}

// FuzzSignature: nobody gets in by a signature that is not ours.
func FuzzSignature(f *testing.F) {
	f.Add("$1$", "1", "/cloud/project/p/database/kafka", []byte(nil))
	f.Add("$1$da39a3ee5e6b4b0d3255bfef95601890afd80709", "1700000000", "/x?y=z", []byte("{}"))
	app := applications()[0]
	now := time.Unix(1700000000, 0)
	f.Fuzz(func(t *testing.T, signature, stamp, uri string, body []byte) {
		r := &http.Request{Method: http.MethodGet, Host: "h", RequestURI: uri, Header: http.Header{
			"X-Ovh-Timestamp": {stamp}, "X-Ovh-Signature": {signature},
		}}
		want := "$1$" + sign("appsecret", "opskey", "GET", "http://h"+uri, body, stamp)
		secure := "$1$" + sign("appsecret", "opskey", "GET", "https://h"+uri, body, stamp)
		if err := app.check(r, body, "opskey", now); err == nil && signature != want && signature != secure {
			t.Errorf("%q passed", signature)
		}
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if err == nil && max(seconds-now.Unix(), now.Unix()-seconds) <= 60 {
			r.Header.Set("X-Ovh-Signature", want)
			if err := app.check(r, body, "opskey", now); err != nil {
				t.Errorf("the right signature is refused: %v", err)
			}
		}
	})
}
