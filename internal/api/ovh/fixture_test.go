package ovh

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	govh "github.com/ovh/go-ovh/ovh"
	"github.com/twmb/franz-go/pkg/kfake"

	"heliograph/internal/config"
	"heliograph/internal/control"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
)

const (
	sourceAlias = "p4wk2x7qd.kafka-1f0c3e5a"
	targetAlias = "zt81mc0ru.kafka-77b9d204"

	testProject = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
	base1       = "/cloud/project/" + testProject + "/database"
)

// running is a control plane whose flows are as a test says; none runs.
type running struct {
	*control.Control
	mu     sync.Mutex
	status map[mirror.FlowID]flow.Status
}

func (r *running) Status(_ context.Context, source, target string) (s flow.Status, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok = r.status[mirror.FlowID{Source: mirror.ClusterAlias(source), Target: mirror.ClusterAlias(target)}]
	return s, ok
}

// fixture is a server with two clusters, and OVHcloud's client of it.
type fixture struct {
	*testing.T
	control *running
	server  *httptest.Server
	client  *govh.Client
	now     time.Time // of the server
	mirror  string    // base1/kafkaMirrorMaker/{id}
}

var (
	admin  = control.Actor{Name: "ops", Scopes: []control.Scope{control.ScopeAdmin}}
	reader = control.Actor{Name: "auditor", Scopes: []control.Scope{control.ScopeRead}}
	tenant = control.Actor{Name: "payments", Tenant: "payments", Scopes: []control.Scope{control.ScopeWrite}}
)

func applications() []Application {
	return []Application{{
		Key: "appkey", Secret: config.NewSecret("appsecret"), Consumers: []Consumer{
			{Key: config.NewSecret("opskey"), Project: testProject, Actor: admin},
			{Key: config.NewSecret("readkey"), Project: testProject, Actor: reader},
			{Key: config.NewSecret("tenantkey"), Project: "tenants", Actor: tenant},
		},
	}}
}

func credentials() Credentials {
	all, err := NewCredentials(applications())
	if err != nil {
		panic(err)
	}
	return all
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t}
	policy := control.Policy{Tenants: map[string]control.Tenant{"payments": {Clusters: map[string]string{}}}}
	c, err := control.New(t.Context(), control.Options{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	f.control = &running{Control: c, status: map[mirror.FlowID]flow.Status{}}
	for _, alias := range []string{sourceAlias, targetAlias} {
		f.register(alias, f.fake())
	}
	h, err := New(Options{
		Control: f.control, Credentials: credentials,
		Token: func(token string) (Grant, bool) { return Grant{Actor: admin}, token == "opstoken" },
		Now: func() time.Time {
			if f.now.IsZero() {
				return time.Now()
			}
			return f.now
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.server = httptest.NewServer(h)
	t.Cleanup(f.server.Close)
	f.client = f.login("", "appkey", "appsecret", "opskey")
	f.mirror = base1 + "/kafkaMirrorMaker/" + standing(testProject)
	return f
}

// fake is the address of a cluster with an authorizer, whose super user we are.
func (f *fixture) fake() string {
	f.Helper()
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "pw"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(k.Close)
	return k.ListenAddrs()[0]
}

func (f *fixture) register(alias, address string) {
	f.Helper()
	_, err := f.control.PutCluster(f.as(admin), control.Cluster{Alias: alias, Properties: map[string]string{
		"bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
		"sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="pw";`,
	}}, control.Absent)
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) as(a control.Actor) context.Context { return control.WithActor(f.Context(), a) }

// login is OVHcloud's Go client, as it is, at an endpoint of the server.
func (f *fixture) login(prefix, key, secret, consumer string) *govh.Client {
	f.Helper()
	c, err := govh.NewClient(f.server.URL+prefix, key, secret, consumer)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// must fails the test unless a call worked.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// refused checks an error of the client: its status, its class, and that a query id
// came with it.
func (f *fixture) refused(err error, status int, class string) {
	f.Helper()
	var e *govh.APIError
	if !errors.As(err, &e) {
		f.Errorf("got %v, want a refusal with %d", err, status)
		return
	}
	if e.Code != status || e.Class != class || e.Message == "" || e.QueryID == "" {
		f.Errorf("got %d %s %q (query id %q), want %d %s", e.Code, e.Class, e.Message, e.QueryID, status, class)
	}
}

// ids asks for a list.
func (f *fixture) ids(path string) []string {
	f.Helper()
	var ids []string
	f.must(f.client.Get(path, &ids))
	return ids
}

// integrate links a cluster to the project's MirrorMaker service.
func (f *fixture) integrate(alias string) integration {
	f.Helper()
	var out integration
	f.must(f.client.Post(f.mirror+"/integration", map[string]any{
		"type": "kafkaMirrorMaker", "sourceServiceId": kafkaID(alias), "destinationServiceId": standing(testProject),
	}, &out))
	return out
}

// replicate makes the guide's replication.
func (f *fixture) replicate(source, target string) replication {
	f.Helper()
	var out replication
	f.must(f.client.Post(f.mirror+"/replication", map[string]any{
		"sourceIntegration": source, "targetIntegration": target, "topics": []string{"inventory"},
		"syncGroupOffsets": true, "syncInterval": 60, "emitHeartbeats": true, "enabled": true,
	}, &out))
	return out
}
