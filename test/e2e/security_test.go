//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafkatest"
)

// mirror is the user that heliograph logs in as where it is no super user.
const mirrorUser = "mirror"

// TestSecuredClusters: two clusters with logins, TLS and ACLs.
func TestSecuredClusters(t *testing.T) {
	t.Parallel()
	secure := kafkatest.ClusterOptions{
		Listeners:          []kafkatest.Protocol{kafkatest.SASLPlaintext, kafkatest.SASLSSL},
		Users:              map[string]string{mirrorUser: `quotes " and \ and = are hard`},
		Authorizer:         true,
		ClientCertificates: true,
	}
	options := func(name, version string) kafkatest.ClusterOptions {
		o := secure
		o.Name, o.Version = name, version
		return o
	}
	a := kafkatest.Start(t, options("secure-A", kafkatest.ReleaseSource))
	b := kafkatest.Start(t, options("secure-B", kafkatest.ReleaseTarget))
	for name, test := range map[string]func(*testing.T, *fixture){
		"TLS and SCRAM":                 scramOverTLS,
		"every mechanism":               everyMechanism,
		"F4 ACL sync":                   syncACLs,
		"topic without read permission": parkUnreadable,
		"login refused":                 refuseLogin,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := kafkatest.Name(t, "")
			test(t, &fixture{tb: t, primary: a, backup: b, from: "primary-" + name, to: "backup-" + name, name: name})
		})
	}
}

// login are the lines of a file for one of the two clusters.
func login(alias string, c *kafkatest.Cluster, p kafkatest.Protocol, mechanism, user string) []string {
	return prefixed(alias+".", c.ClientProperties(p, mechanism, user))
}

// plain logs in to both clusters by PLAIN: to primary as user, to backup as the super user.
func (f *fixture) plain(user string) []string {
	return append(login(f.from, f.primary, kafkatest.SASLPlaintext, "PLAIN", user),
		login(f.to, f.backup, kafkatest.SASLPlaintext, "PLAIN", "admin")...)
}

// scramOverTLS runs a flow over SASL_SSL with client certificates, from a JKS
// store on one side and from PKCS #12 on the other.
func scramOverTLS(t *testing.T, f *fixture) {
	topic := f.topic1()
	f.produce(f.primary, topic, partitions, 100)
	lines := slices.Concat(
		login(f.from, f.primary, kafkatest.SASLSSL, "SCRAM-SHA-512", "admin"),
		login(f.to, f.backup, kafkatest.SASLSSL, "SCRAM-SHA-512", "admin"),
		[]string{
			f.to + ".ssl.truststore.type = PKCS12",
			f.to + ".ssl.truststore.location = " + f.backup.Certificates().TrustP12,
			f.to + ".ssl.keystore.type = PKCS12",
			f.to + ".ssl.keystore.location = " + f.backup.Certificates().ClientP12,
		})
	h := start(t, f.oneWay(lines...))
	awaitCount(within(t, patience), t, f.backup, f.remote(topic), 100)
	same(t, kafkatest.Side{Cluster: f.primary, Topic: topic}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(topic)})
	h.awaitState(f.flow(), "running")
	h.stop()
	for _, secret := range []string{"admin-secret", f.primary.Certificates().Password} {
		if strings.Contains(h.Log(), secret) {
			t.Errorf("the log shows %q", secret)
		}
	}
}

// everyMechanism runs a flow by each mechanism, which both of its sides use.
func everyMechanism(t *testing.T, f *fixture) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			name := kafkatest.Name(t, "")
			f := &fixture{tb: t, primary: f.primary, backup: f.backup, from: "primary-" + name, to: "backup-" + name, name: name}
			topic := f.topic1()
			f.produce(f.primary, topic, partitions, 100)
			h := start(t, f.oneWay(append(login(f.from, f.primary, kafkatest.SASLSSL, mechanism, "admin"),
				login(f.to, f.backup, kafkatest.SASLSSL, mechanism, "admin")...)...))
			awaitCount(within(t, patience), t, f.backup, f.remote(topic), 100)
			h.stop()
		})
	}
}

// acl is one binding on a topic.
type acl struct {
	user      string
	topic     string
	operation kadm.ACLOperation
	pattern   kadm.ACLPattern
}

func allow(t *testing.T, c *kafkatest.Cluster, acls ...acl) {
	t.Helper()
	for _, a := range acls {
		builder := kadm.NewACLs().Topics(a.topic).ResourcePatternType(a.pattern).
			Operations(a.operation).Allow("User:" + a.user).AllowHosts("*")
		createACLs(t, c, builder)
	}
}

func createACLs(t *testing.T, c *kafkatest.Cluster, builder *kadm.ACLBuilder) {
	t.Helper()
	results, err := c.Admin(t).CreateACLs(t.Context(), builder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// aclsOf are the bindings on one topic, a line each, in order.
func aclsOf(t *testing.T, c *kafkatest.Cluster, topic string) []string {
	t.Helper()
	builder := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternAny).
		Operations().Allow().AllowHosts().Deny().DenyHosts()
	results, err := c.Admin(t).DescribeACLs(t.Context(), builder)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, r := range results {
		for _, d := range r.Described {
			lines[fmt.Sprintf("%v %v %v %v", d.Principal, d.Permission, d.Operation, d.Pattern)] = true
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

// syncACLs is row F4 of the specification and the rules of its part 4.6.
func syncACLs(t *testing.T, f *fixture) {
	topic := f.topic1()
	literal, prefix := kadm.ACLPatternLiteral, kadm.ACLPatternPrefixed
	allow(t, f.primary,
		acl{"dummy", topic, kadm.OpDescribe, literal},
		acl{"writer", topic, kadm.OpWrite, literal},  // nobody but the mirror writes to a copy
		acl{"owner", topic, kadm.OpAll, literal},     // all becomes READ
		acl{"prefixed", topic, kadm.OpRead, prefix},  // prefixes are not copied
		acl{"foreign", f.name, kadm.OpRead, literal}, // a topic that is not copied
		acl{"anybody", "*", kadm.OpRead, literal},    // must not open all of backup
	)
	h := start(t, f.oneWay(append(f.plain("admin"), "sync.topic.acls.enabled = true", "sync.topic.acls.interval.seconds = 1")...))
	want := []string{"User:dummy ALLOW DESCRIBE LITERAL", "User:owner ALLOW READ LITERAL"}
	await(t, "the ACLs are on the copy", func() string {
		if got := aclsOf(t, f.backup, f.remote(topic)); !slices.Equal(got, want) {
			return fmt.Sprintf("they are %q, want %q", got, want)
		}
		return ""
	})
	allow(t, f.primary, acl{"later", topic, kadm.OpRead, literal})
	await(t, "a later ACL is on the copy too", func() string {
		if got := aclsOf(t, f.backup, f.remote(topic)); !slices.Contains(got, "User:later ALLOW READ LITERAL") {
			return fmt.Sprintf("they are %q", got)
		}
		return ""
	})
	for _, other := range []string{"*", f.remote(f.name), f.remote("*")} {
		if got := aclsOf(t, f.backup, other); len(got) > 0 {
			t.Errorf("backup has ACLs on %s: %q", other, got)
		}
	}
	h.stop()
}

// parkUnreadable: a topic that may be seen and not read is parked by name, the
// others run, and it goes on by itself when the permission is there.
func parkUnreadable(t *testing.T, f *fixture) {
	open, closed := f.topic("test-topic-open"), f.topic("test-topic-closed")
	for _, topic := range []string{open, closed} {
		f.primary.CreateTopic(t, topic, 2, nil)
		f.produce(f.primary, topic, 2, 20)
	}
	literal := kadm.ACLPatternLiteral
	allow(t, f.primary,
		acl{mirrorUser, open, kadm.OpRead, literal},
		acl{mirrorUser, open, kadm.OpDescribeConfigs, literal},
		acl{mirrorUser, closed, kadm.OpDescribe, literal},
		acl{mirrorUser, closed, kadm.OpDescribeConfigs, literal},
	)
	h := start(t, f.oneWay(append(f.plain(mirrorUser), f.flow()+".offset-syncs.topic.location = target")...))
	awaitCount(within(t, patience), t, f.backup, f.remote(open), 20)
	if why := h.awaitState(f.flow(), "degraded"); !strings.Contains(why, closed) || !strings.Contains(why, "grant READ") {
		t.Errorf("the reason %q does not name the topic and what is missing", why)
	}
	h.awaitLog("parked", closed, "grant READ")
	f.produce(f.primary, open, 2, 20)
	awaitCount(within(t, patience), t, f.backup, f.remote(open), 40)

	allow(t, f.primary, acl{mirrorUser, closed, kadm.OpRead, literal})
	awaitCount(within(t, 2*patience), t, f.backup, f.remote(closed), 20)
	h.awaitState(f.flow(), "running")
	h.stop()
}

// refuseLogin: a refused login is said, retried rarely, and works once it is accepted.
func refuseLogin(t *testing.T, f *fixture) {
	topic := f.topic1()
	f.produce(f.primary, topic, partitions, 100)
	jaas := `org.apache.kafka.common.security.scram.ScramLoginModule required username="late" password="late-secret";`
	h := start(t, f.oneWay(append(f.plain("admin"),
		f.from+".sasl.mechanism = SCRAM-SHA-512", f.from+".sasl.jaas.config = "+jaas)...))
	if why := h.awaitState(f.flow(), "waiting"); !strings.Contains(why, "SASL_AUTHENTICATION_FAILED") || strings.Contains(why, "late-secret") {
		t.Errorf("the reason is %q", why)
	}
	user := kadm.UpsertSCRAM{User: "late", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "late-secret"}
	altered, err := f.primary.Admin(t).AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{user})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	literal := kadm.ACLPatternLiteral
	allow(t, f.primary, acl{"late", topic, kadm.OpRead, literal}, acl{"late", topic, kadm.OpDescribeConfigs, literal},
		acl{"late", "mm2-offset-syncs." + f.to + ".internal", kadm.OpAll, literal})
	// Accounts get locked by quick retries: a refused login is tried again within a minute.
	awaitCount(within(t, 2*patience), t, f.backup, f.remote(topic), 100)
	if n := h.metric("heliograph_login_failures_total", fmt.Sprintf(`cluster=%q`, f.from)); n > 10 {
		t.Errorf("%v logins were refused", n)
	}
	h.stop()
}
