package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/config"
)

// loadText loads a file that must have no errors.
func loadText(t *testing.T, text string) *config.Deployment {
	t.Helper()
	dep := config.Load(config.Source{Name: "test.properties", Bytes: []byte(text)})
	if err := dep.Err(); err != nil {
		t.Fatal(err)
	}
	return dep
}

func fakeCluster(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "secrets")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// answers gives one permission's answers, by operations.
func answers(s *Survey, cluster, operations string) string {
	var out []string
	for _, p := range s.Permissions {
		if string(p.Cluster) == cluster && p.Operations == operations {
			out = append(out, fmt.Sprintf("%s: %s %s", p.Resource, p.Answer, p.Why))
		}
	}
	return strings.Join(out, "; ")
}

func TestPermissionsThatAreRefusedAreNamed(t *testing.T) {
	acl := func(kind kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	source := fakeCluster(t, kfake.ClusterID("a"), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "admin"),
		kfake.User("PLAIN", "mirror", "pw",
			acl(kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLOperationRead),
			acl(kmsg.ACLResourceTypeTopic, "orders", kmsg.ACLOperationDescribeConfigs),
			acl(kmsg.ACLResourceTypeTopic, "secrets", kmsg.ACLOperationDescribe)))
	target := fakeCluster(t, kfake.ClusterID("b"))
	dep := loadText(t, fmt.Sprintf(`clusters = A, B
A.bootstrap.servers = %s
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="pw";
B.bootstrap.servers = %s
A->B.enabled = true
replication.factor = 1
`, source, target))
	s, err := Look(t.Context(), dep, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ operations, want string }{
		{"READ", "topics secrets: missing TOPIC_AUTHORIZATION_FAILED"},
		{"DESCRIBE_CONFIGS", "topics secrets: missing TOPIC_AUTHORIZATION_FAILED"},
	} {
		if got := answers(s, "A", tc.operations); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.operations, got, tc.want)
		}
	}
	if got := answers(s, "A", "DESCRIBE"); !strings.Contains(got, "cluster: missing CLUSTER_AUTHORIZATION_FAILED") {
		t.Errorf("describing ACLs: %q", got)
	}
	if !s.Findings.HasErrors() {
		t.Error("what is missing is no finding")
	}
}

func TestARefusedLoginIsAFindingWithoutTheSecret(t *testing.T) {
	source := fakeCluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "admin", "admin"))
	dep := loadText(t, fmt.Sprintf(`clusters = A, B
A.bootstrap.servers = %s
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="hunter2";
A.consumer.request.timeout.ms = 500
B.bootstrap.servers = %s
A->B.enabled = true
replication.factor = 1
`, source, fakeCluster(t)))
	s, err := Look(t.Context(), dep, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(s.Findings)
	if !strings.Contains(text, "cluster A cannot be reached") || strings.Contains(text, "hunter2") {
		t.Errorf("findings: %s", text)
	}
}
