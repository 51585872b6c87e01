package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"heliograph/internal/store"
)

// admin is a context of the server's owner.
func admin(tb testing.TB) context.Context {
	tb.Helper()
	return WithActor(tb.Context(), Actor{Name: "test", Scopes: []Scope{ScopeAdmin}})
}

func tenant(t *testing.T, name string) context.Context {
	return WithActor(t.Context(), Actor{Name: name, Tenant: name, Scopes: []Scope{ScopeWrite}})
}

func newControl(t *testing.T, o Options) *Control {
	t.Helper()
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func brokers(address string) map[string]string {
	return map[string]string{"bootstrap.servers": address}
}

func put(t *testing.T, c *Control, ctx context.Context, aliases ...string) {
	t.Helper()
	for _, a := range aliases {
		if _, err := c.PutCluster(ctx, Cluster{Alias: a, Properties: brokers(strings.ToLower(a) + ":9092")}, Absent); err != nil {
			t.Fatal(err)
		}
	}
}

func wantKind(t *testing.T, err error, k Kind, names ...string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != k {
		t.Fatalf("got %v, want the kind %q", err, k)
	}
	for _, name := range names {
		if !slices.ContainsFunc(e.Fields, func(f Field) bool { return f.Name == name }) {
			t.Errorf("no field %s in %v", name, e)
		}
	}
}

func TestAFlowIsMadeChangedAndDeletedByRevision(t *testing.T) {
	c, ctx := newControl(t, Options{}), admin(t)
	put(t, c, ctx, "A", "B")
	f, err := c.PutFlow(ctx, Flow{Source: "A", Target: "B", Enabled: true, Properties: map[string]string{"topics": "orders.*"}}, Absent)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PutFlow(ctx, f, Absent)
	wantKind(t, err, Conflict)
	again, err := c.PutFlow(ctx, f, At(f.Revision))
	if err != nil || again.Revision != f.Revision {
		t.Errorf("the same again: revision %d, %v; want %d unchanged", again.Revision, err, f.Revision)
	}
	f.Properties["topics"] = "payments"
	newer, err := c.PutFlow(ctx, f, At(f.Revision))
	if err != nil || newer.Revision <= f.Revision {
		t.Fatalf("revision %d after %d, %v", newer.Revision, f.Revision, err)
	}
	_, err = c.PutFlow(ctx, f, At(f.Revision))
	wantKind(t, err, Precondition)
	wantKind(t, c.DeleteFlow(ctx, "A", "B", At(f.Revision)), Precondition)
	wantKind(t, c.DeleteCluster(ctx, "A", Any), Conflict)
	if _, err := c.Commit(ctx, DeleteFlow{"A", "B", At(newer.Revision)}, DeleteCluster{"A", Any}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Flow(ctx, "A", "B")
	wantKind(t, err, NotFound)
}

func TestACommitIsAllOrNothing(t *testing.T) {
	c, ctx := newControl(t, Options{}), admin(t)
	put(t, c, ctx, "A", "B")
	before := c.Revision()
	_, err := c.Commit(ctx,
		PutDocument{Kind: "ovh.replication", ID: "1", Value: json.RawMessage(`{}`)},
		PutFlow{Flow: Flow{Source: "A", Target: "B", Enabled: true, Properties: map[string]string{"topics": "("}}})
	wantKind(t, err, Invalid, "topics")
	if _, err := c.Document(ctx, "ovh.replication", "1"); KindOf(err) != NotFound || c.Revision() != before {
		t.Errorf("half a commit is there: %v, revision %d", err, c.Revision())
	}
}

func TestRefusalsNameTheField(t *testing.T) {
	cases := map[string]struct {
		cluster map[string]string
		flow    map[string]string
		fields  []string
	}{
		"unknown key":           {flow: map[string]string{"topicz": "a"}, fields: []string{"topicz"}},
		"wrong type":            {flow: map[string]string{"refresh.topics.interval.seconds": "soon"}, fields: []string{"refresh.topics.interval.seconds"}},
		"no brokers":            {cluster: map[string]string{"security.protocol": "PLAINTEXT"}, fields: []string{"bootstrap.servers"}},
		"a file of the server":  {cluster: map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.truststore.location": "/etc/shadow"}, fields: []string{"ssl.truststore.location"}},
		"for one client only":   {cluster: map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SSL", "consumer.ssl.keystore.location": "/etc/shadow"}, fields: []string{"consumer.ssl.keystore.location"}},
		"a file's value":        {cluster: map[string]string{"bootstrap.servers": "${file:/etc/passwd:root}"}, fields: []string{"bootstrap.servers"}},
		"an own provider":       {cluster: map[string]string{"bootstrap.servers": "${x:HOME}", "config.providers": "x", "config.providers.x.class": "EnvVarConfigProvider"}, fields: []string{"bootstrap.servers"}},
		"a token address":       {cluster: map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": `org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="a" clientSecret="b";`, "sasl.oauthbearer.token.endpoint.url": "http://169.254.169.254/"}, fields: []string{"sasl.oauthbearer.token.endpoint.url"}},
		"a token file":          {cluster: map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": `org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="a" clientSecret="b";`, "sasl.oauthbearer.token.endpoint.url": "file:///var/run/secrets/token"}, fields: []string{"sasl.oauthbearer.token.endpoint.url"}},
		"a keytab":              {cluster: map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/krb5.keytab" principal="k";`}, fields: []string{"sasl.jaas.config"}},
		"the server's identity": {cluster: map[string]string{"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"}, fields: []string{"sasl.jaas.config"}},
		"a connection per flow": {flow: map[string]string{"source.consumer.bootstrap.servers": "evil:9092"}, fields: []string{"source.consumer.bootstrap.servers"}},
		"another one's setting": {cluster: map[string]string{"bootstrap.servers": "a:1", "x.bootstrap.servers": "evil:9092"}, fields: []string{"x.bootstrap.servers"}},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			c, ctx := newControl(t, Options{}), admin(t)
			put(t, c, ctx, "B", "A.x")
			if tt.cluster == nil {
				tt.cluster = brokers("a:9092")
			}
			changes := []Change{PutCluster{Cluster: Cluster{Alias: "A", Properties: tt.cluster}}}
			for _, target := range []string{"B", "A.x"} {
				changes = append(changes, PutFlow{Flow: Flow{Source: "A", Target: target, Enabled: true, Properties: tt.flow}})
			}
			_, err := c.Commit(ctx, changes...)
			wantKind(t, err, Invalid, tt.fields...)
		})
	}
}

func TestWhatThePolicyAllowsMayBeReached(t *testing.T) {
	c, ctx := newControl(t, Options{Policy: Policy{Allow: Allow{Files: []string{"/etc/tls"}, TokenEndpoints: []string{"https://login.example.com/"}}}}), admin(t)
	ssl := func(file string) error {
		_, err := c.PutCluster(ctx, Cluster{Alias: "A", Properties: map[string]string{
			"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.truststore.location": file,
		}}, Any)
		return err
	}
	if err := ssl("/etc/tls/ca.pem"); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"/etc/tls/../shadow", "/etc/tlsx/ca.pem", "/etc", "ca.pem"} {
		wantKind(t, ssl(file), Invalid, "ssl.truststore.location")
	}
}

func TestTenantsSeeAndLinkWhatTheyMay(t *testing.T) {
	policy := Policy{
		Tenants: map[string]Tenant{
			"red":  {Labels: map[string]string{"region": "eu"}, Clusters: map[string]string{"shared": "yes"}, MaxFlows: 1},
			"blue": {Labels: map[string]string{"region": "us"}},
		},
		Links: []Link{{From: map[string]string{"region": "eu"}, To: map[string]string{"region": "eu"}}},
	}
	c := newControl(t, Options{Policy: policy})
	if _, err := c.PutCluster(admin(t), Cluster{Alias: "S", Properties: brokers("s:1"), Labels: map[string]string{"shared": "yes", "region": "eu"}}, Absent); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutCluster(admin(t), Cluster{Alias: "U", Properties: brokers("u:1"), Labels: map[string]string{"shared": "yes", "region": "us"}}, Absent); err != nil {
		t.Fatal(err)
	}
	red, blue := tenant(t, "red"), tenant(t, "blue")
	put(t, c, red, "R", "R2")
	put(t, c, blue, "X")

	if _, err := c.PutFlow(red, Flow{Source: "R", Target: "S", Enabled: true}, Absent); err != nil {
		t.Fatal(err)
	}
	_, err := c.PutFlow(red, Flow{Source: "R2", Target: "U", Enabled: true}, Absent)
	wantKind(t, err, Forbidden, "target")
	_, err = c.PutFlow(red, Flow{Source: "R2", Target: "X", Enabled: true}, Absent)
	wantKind(t, err, Invalid, "target")
	_, err = c.PutFlow(red, Flow{Source: "R2", Target: "S", Enabled: true}, Absent)
	wantKind(t, err, TooMany)
	_, err = c.PutCluster(red, Cluster{Alias: "S", Properties: brokers("evil:1")}, Any)
	wantKind(t, err, Forbidden)
	_, err = c.PutCluster(red, Cluster{Alias: "R", Properties: brokers("r:1"), Labels: map[string]string{"region": "us"}}, Any)
	wantKind(t, err, Invalid, "labels")
	_, err = c.Client(red, "S")
	wantKind(t, err, Forbidden)
	_, err = c.Cluster(blue, "S")
	wantKind(t, err, NotFound)
	_, err = c.Flow(blue, "R", "S")
	wantKind(t, err, NotFound)
	if n := len(c.Flows(admin(t))); n != 1 {
		t.Errorf("the owner sees %d flows", n)
	}
	_, err = c.Commit(t.Context(), DeleteFlow{"R", "S", Any})
	wantKind(t, err, Forbidden)
}

func TestLoopsAreRefusedWithoutTouchingWhatRuns(t *testing.T) {
	c, ctx := newControl(t, Options{}), admin(t)
	put(t, c, ctx, "A", "B", "C")
	identity := map[string]string{"replication.policy.class": "IdentityReplicationPolicy"}
	for _, pair := range [][2]string{{"A", "B"}, {"B", "C"}} {
		if _, err := c.PutFlow(ctx, Flow{Source: pair[0], Target: pair[1], Enabled: true, Properties: identity}, Absent); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.PutFlow(ctx, Flow{Source: "C", Target: "A", Enabled: true, Properties: identity}, Absent)
	wantKind(t, err, Conflict, "topics")
}

func TestAServerFindsWhatItStored(t *testing.T) {
	kept := &store.Memory{}
	c, ctx := newControl(t, Options{Store: kept}), admin(t)
	put(t, c, ctx, "A", "B")
	f, err := c.PutFlow(ctx, Flow{Source: "A", Target: "B", Enabled: true}, Absent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pause(ctx, "A", "B"); err != nil {
		t.Fatal(err)
	}
	again := newControl(t, Options{Store: kept})
	got, err := again.Flow(ctx, "A", "B")
	if err != nil || !got.Paused || !got.Enabled || got.Revision <= f.Revision {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestADryRunShowsTheDiffAndChangesNothing(t *testing.T) {
	c, ctx := newControl(t, Options{}), admin(t)
	put(t, c, ctx, "A", "B")
	before := c.Revision()
	login := `org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush";`
	d, err := c.DryRun(ctx,
		PutCluster{Cluster{Alias: "A", Properties: map[string]string{"bootstrap.servers": "a:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}}, Any},
		PutFlow{Flow{Source: "A", Target: "B", Enabled: true, Properties: map[string]string{"topics": "x"}}, Absent})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hush") {
		t.Errorf("a secret is in the diff: %s", text)
	}
	if len(d.Resources) != 2 || d.Resources[0].Action != Update || d.Resources[1].Action != Create || c.Revision() != before {
		t.Errorf("revision %d, diff %s", c.Revision(), text)
	}
}

func TestSubscribersSeeTheirOwn(t *testing.T) {
	c := newControl(t, Options{})
	ctx, cancel := context.WithCancel(tenant(t, "red"))
	events := c.Subscribe(ctx, 0)
	put(t, c, tenant(t, "blue"), "B")
	put(t, c, tenant(t, "red"), "R")
	if ev := <-events; ev.Resource != "cluster R" || ev.Actor != "red" {
		t.Errorf("got %+v", ev)
	}
	cancel()
	for ev := range events {
		t.Errorf("another event: %+v", ev)
	}
}

// TestATenantsClusterInAFlowOfOthers: the server's owner joins a tenant's cluster to one that the
// tenant does not see. The tenant goes on changing its cluster, learns nothing, and cannot break the flow.
func TestATenantsClusterInAFlowOfOthers(t *testing.T) {
	c := newControl(t, Options{Policy: Policy{Tenants: map[string]Tenant{"red": {}}}})
	red := tenant(t, "red")
	put(t, c, admin(t), "Hidden")
	put(t, c, red, "Mine")
	if _, err := c.PutFlow(admin(t), Flow{Source: "Mine", Target: "Hidden", Enabled: true, Properties: map[string]string{"topics": "a"}}, Absent); err != nil {
		t.Fatal(err)
	}
	moved := PutCluster{Cluster{Alias: "Mine", Properties: brokers("mine2:9092")}, Any}
	diff, err := c.DryRun(red, moved)
	if err != nil || len(diff.Resources) != 1 || diff.Resources[0].Resource != "cluster Mine" {
		t.Errorf("planned: %+v, %v", diff, err)
	}
	if _, err := c.Commit(red, moved); err != nil {
		t.Fatalf("the tenant's own cluster: %v", err)
	}
	s := c.state.Load()
	if got := s.flows[Flow{Source: "Mine", Target: "Hidden"}.ID()].wanted.Source.Properties()["bootstrap.servers"]; got != "mine2:9092" {
		t.Errorf("the flow goes on at %s", got)
	}
	err = c.DeleteCluster(red, "Mine", Any)
	wantKind(t, err, Conflict)
	if strings.Contains(err.Error(), "Hidden") {
		t.Errorf("it names what the tenant does not see: %v", err)
	}
	_, err = c.PutFlow(red, Flow{Source: "Hidden", Target: "Mine"}, Absent)
	wantKind(t, err, Invalid, "source")
}

// TestARefusalIsRemembered over a restart, whoever of those that may decide says it, until it is
// taken back or the flow goes.
func TestARefusalIsRemembered(t *testing.T) {
	kept := &store.Memory{}
	c := newControl(t, Options{Store: kept})
	red := tenant(t, "red")
	put(t, c, red, "A", "B")
	if _, err := c.PutFlow(red, Flow{Source: "A", Target: "B"}, Absent); err != nil {
		t.Fatal(err)
	}
	id := Flow{Source: "A", Target: "B"}.ID()
	refused := func() bool { return newControl(t, Options{Store: kept}).Refused(id, "A.t", "retention.ms", "=1") }
	refuse := func(ctx context.Context) {
		t.Helper()
		if err := c.Refuse(ctx, id, "A.t", "retention.ms", "=1"); err != nil || !refused() {
			t.Fatalf("remembered: %v, %v", refused(), err)
		}
	}
	wantKind(t, c.Refuse(tenant(t, "blue"), id, "A.t", "retention.ms", "=1"), NotFound)
	refuse(admin(t))
	if c.Refused(id, "A.t", "retention.ms", "=2") || c.Refused(id, "A.u", "retention.ms", "=1") {
		t.Error("more is refused than was said")
	}
	for range 2 { // the second finds nothing to forget
		if err := c.Unrefuse(red, id, "A.t", "retention.ms"); err != nil || refused() {
			t.Errorf("still refused: %v, %v", refused(), err)
		}
	}
	refuse(red)
	if err := c.DeleteFlow(admin(t), "A", "B", Any); err != nil || refused() {
		t.Errorf("refused after the flow: %v, %v", refused(), err)
	}
}

// TestWhatAnotherInstanceWasToldIsKnownToAChange holds though the word of it has not come yet.
func TestWhatAnotherInstanceWasToldIsKnownToAChange(t *testing.T) {
	shared := &store.Memory{}
	one, two := newControl(t, Options{Store: shared}), newControl(t, Options{Store: shared})
	put(t, one, admin(t), "A")
	put(t, two, admin(t), "B")
	flow := PutFlow{Flow{Source: "A", Target: "B"}, Absent}
	if _, err := one.DryRun(admin(t), flow); err != nil {
		t.Errorf("a plan: %v", err)
	}
	f, err := one.PutFlow(admin(t), flow.Flow, Absent)
	if err != nil {
		t.Fatal(err)
	}
	f.Paused = true
	if _, err := two.PutFlow(admin(t), f, At(f.Revision)); err != nil {
		t.Errorf("by a revision that the other made: %v", err)
	}
	_, err = one.PutFlow(admin(t), flow.Flow, At(f.Revision))
	wantKind(t, err, Precondition)
}
