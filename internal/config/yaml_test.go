package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliograph/internal/mirror"
)

// The same deployment in both forms.
const (
	twinProperties = `
clusters = A, B.eu
config.providers = env
config.providers.env.class = EnvVarConfigProvider
A.bootstrap.servers = a1:9092, a2:9092
A.security.protocol = SASL_SSL
A.sasl.mechanism = SCRAM-SHA-256
A.sasl.jaas.config = x.ScramLoginModule required username="u" password="${env:PW}";
A.consumer.isolation.level = read_committed
A.consumer.fetch.max.bytes = 1048576
B.eu.bootstrap.servers = b1:9092
B.eu.offset.flush.interval.ms = 2000
A->B.eu.enabled = true
A->B.eu.topics = orders, pay\\.[a-z]+
A->B.eu.groups =
A->B.eu.producer.override.compression.type = zstd
B.eu->A.emit.heartbeats.enabled = false
replication.factor = 1
sync.group.offsets.enabled = true
heliograph.memory.bytes = 128MiB
`
	twinYAML = `
# a comment
defaults:
  config.providers: [env]
  config.providers.env.class: EnvVarConfigProvider
  replication.factor: 1
  sync.group.offsets.enabled: true
  heliograph:
    memory.bytes: 128MiB
clusters:
  A:
    bootstrap.servers:
      - a1:9092
      - a2:9092
    security.protocol: SASL_SSL
    sasl:
      mechanism: SCRAM-SHA-256
      jaas.config: x.ScramLoginModule required username="u" password="${env:PW}";
    consumer:
      isolation.level: read_committed
      fetch.max.bytes: 1048576
  B.eu:
    bootstrap.servers: b1:9092
    offset.flush.interval.ms: 2000
flows:
  A->B.eu:
    topics: [orders, 'pay\.[a-z]+']
    groups: []
    producer.override.compression.type: zstd
  B.eu -> A:
    enabled: false
    emit.heartbeats.enabled: false
`
)

func loadAs(name, text string) *Deployment {
	return Load(Source{Name: name, Bytes: []byte(text), LookupEnv: func(string) (string, bool) { return "pw", true }})
}

func TestBothFormsGiveEqualDeployments(t *testing.T) {
	properties, native := loadAs("f.properties", twinProperties), loadAs("f.yaml", twinYAML)
	wantProblems(t, properties.Problems, Info, nil)
	wantProblems(t, native.Problems, Info, nil)
	properties.Process.Strict = native.Process.Strict // the native form is always strict
	options := cmp.Options{
		cmp.AllowUnexported(Cluster{}),
		cmpopts.IgnoreTypes(Origin{}, Problems{}), cmpopts.IgnoreUnexported(Flow{}), cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b Secret) bool { return a == b }),
		cmp.Comparer(func(a, b mirror.Patterns) bool { return a.String() == b.String() }),
		cmp.Comparer(func(a, b mirror.ReplicationPolicy) bool { return a.RemoteTopic("A", "t") == b.RemoteTopic("A", "t") }),
	}
	if diff := cmp.Diff(properties, native, options); diff != "" {
		t.Errorf("(-properties +yaml):\n%s", diff)
	}
	a, b := effectiveText(flowOf(t, properties, "A->B.eu")), effectiveText(flowOf(t, native, "A->B.eu"))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("effective settings (-properties +yaml):\n%s", diff)
	}
}

func effectiveText(f *Flow) string {
	var b strings.Builder
	for _, s := range f.Effective() {
		b.WriteString(s.Key + " = " + strings.ReplaceAll(s.Value, `\\`, `\`) + "\n")
	}
	return b.String()
}

func TestYAMLListsMayHoldCommas(t *testing.T) {
	d := loadAs("f.yaml", strings.Replace(twinYAML, `[orders, 'pay\.[a-z]+']`, `['sensor-[0-9]{1,3}', audit]`, 1))
	wantProblems(t, d.Problems, Info, nil)
	f := flowOf(t, d, "A->B.eu")
	if !f.Selection.Filter.Accepts("sensor-12") || f.Selection.Filter.Accepts("sensor-1234") || !f.Selection.Filter.Accepts("audit") {
		t.Error("the filter does not hold what the list says")
	}
}

// Lists inside braces hold brokers too.
func TestYAMLBrokersInBraces(t *testing.T) {
	d := loadAs("f.yaml", "clusters: {A: {bootstrap.servers: [a1:9092, 10.0.0.1:9092]}, B: {bootstrap.servers: [b:1]}}\n"+
		"flows: {A->B: {topics: [x, y]}}\n")
	wantProblems(t, d.Problems, Info, nil)
	if diff := cmp.Diff([]string{"a1:9092", "10.0.0.1:9092"}, d.Clusters["A"].BootstrapServers); diff != "" {
		t.Error(diff)
	}
}

func TestYAMLMayBeJSON(t *testing.T) {
	d := loadAs("f.yaml", `{"clusters": {"A": {"bootstrap.servers": ["a:1"]}, "B": {"bootstrap.servers": "b:1"}}, "flows": {"A->B": {"topics": ["x"]}}}`)
	wantProblems(t, d.Problems, Info, nil)
	flowOf(t, d, "A->B")
}

func TestYAMLProblems(t *testing.T) {
	const head = "clusters:\n  A: {bootstrap.servers: a:1}\n  B: {bootstrap.servers: b:1}\n"
	const flows = "flows:\n  A->B:\n"
	tests := []struct{ name, text, want string }{
		{"unknown key", head + flows + "    topcs: x\n", "f.yaml:6:5: error: A->B.topcs: unknown key; nothing reads it (did you mean A->B.topics?)"},
		{"unknown section", head + "flow:\n  A->B:\n", "f.yaml:4:1: error: flow: not a section of the native form (did you mean flows?"},
		{"key outside of defaults", head + "replication.factor: 1\nflows: {A->B: }", "f.yaml:4:1: error: replication.factor: not a section of the native form (write it under defaults"},
		{"no value", head + flows + "    topics:\n", `f.yaml:6:5: error: A->B.topics: it has no value (write "" for an empty text or [] for an empty list)`},
		{"a list for one value", head + flows + "    replication.factor: [1]\n", "f.yaml:6:5: error: A->B.replication.factor: a list where one value must stand (write it without brackets)"},
		{"nested too deep", head + flows + "    topics: [[a]]\n", "f.yaml:6:14: error: A->B.topics: an item of a list must be plain text"},
		{"anchors at a section", "defaults: &d {replication.factor: 1}\n" + head + flows, "f.yaml:1:11: error: anchors, aliases, merge keys and tags are not read (write the value itself)"},
		{"merge keys", head + flows + "    <<: {}\n", "f.yaml:6:5: error: A->B: anchors, aliases, merge keys and tags are not read"},
		{"aliases in a list", head + flows + "    topics: [*a]\n", "f.yaml:6:14: error: A->B.topics: anchors, aliases, merge keys and tags are not read"},
		{"a mapping in a list", head + flows + "    topics: [{a: b}]\n", "f.yaml:6:14: error: A->B.topics: an item of a list must be plain text"},
		{"a pair in a list", "clusters: {A: {bootstrap.servers: [a: 1]}}\n", "f.yaml:1"},
		{"the same key twice", head + "  B: {bootstrap.servers: c:1}\n", "f.yaml:4:3: error: mapping key already defined at [3:3]"},
		{"anchors", head + flows + "    topics: &a x\n", "f.yaml:6:13: error: A->B.topics: anchors, aliases, merge keys and tags are not read"},
		{"twice", head + flows + "    topics.exclude: a\n    topics: {exclude: b}\n", "f.yaml:7:14: error: A->B.topics.exclude: A->B.topics.exclude stands on line 6 already"},
		{"not a flow", head + "flows:\n  AtoB:\n", "f.yaml:5:3: error: flows: a flow is called S->T"},
		{"of no cluster", head + "flows:\n  A->C:\n  A->B:\n", `f.yaml:5:3: error: A->C.enabled: flow of a cluster that is not among clusters: "C"`},
		{"scalar where a map must be", "clusters: x\n", "f.yaml:1:11: error: clusters: keys and values must stand here"},
		{"syntax", head + "flows: [\n", "f.yaml:4:8: error: "},
		{"value", head + flows + "    tasks.max: many\n", `f.yaml:6:5: error: A->B.tasks.max: "many" is not a number that fits`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			for _, p := range loadAs("f.yaml", tt.text).Problems {
				lines = append(lines, p.String())
			}
			if all := strings.Join(lines, "\n"); !strings.HasPrefix(all, tt.want) {
				t.Errorf("%s\nwant %s", all, tt.want)
			}
		})
	}
}
