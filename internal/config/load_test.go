package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// base is a small file that is right; tests add lines to it, from line 5 on.
const base = `clusters = A, B
A.bootstrap.servers = a1:9092
B.bootstrap.servers = b1:9092
A->B.enabled = true
`

func load(text string) *Deployment {
	return Load(Source{Name: "f", Bytes: []byte(text)})
}

func TestBaseIsRight(t *testing.T) {
	d := load(base)
	wantProblems(t, d.Problems, Info, nil)
	if got := flowsOf(d); got != "A->B" || len(d.Flows) != 2 {
		t.Errorf("flows %s of %d", got, len(d.Flows))
	}
	if back := flowOf(t, d, "B->A"); back.Enabled || !back.Heartbeats.Every.On() {
		t.Errorf("B->A must write heartbeats only: %+v", back)
	}
}

// TestProblemsOfLines loads base and one more line, and compares the problem
// that the line gets: severity, message and hint.
func TestProblemsOfLines(t *testing.T) {
	tests := []struct{ line, want string }{
		{"A->B.topics = orders", ""},
		// misspelt
		{"A->B.enable = true", "warning: A->B.enable: unknown key; nothing reads it (did you mean A->B.enabled?)"},
		{"A->B.topic.exclude = x", "warning: A->B.topic.exclude: unknown key; nothing reads it (did you mean A->B.topics.exclude?)"},
		{"A->B.topics.whitelist = x", "warning: A->B.topics.whitelist: unknown key; nothing reads it (did you mean A->B.topics?)"},
		{"refresh.topic.interval.seconds = 5", "warning: refresh.topic.interval.seconds: unknown key; nothing reads it (did you mean refresh.topics.interval.seconds?)"},
		{"sync.group.offsets = true", "warning: sync.group.offsets: unknown key; nothing reads it (did you mean sync.group.offsets.enabled?)"},
		{"A->B.emit.heartbeats = false", "warning: A->B.emit.heartbeats: unknown key; nothing reads it (did you mean A->B.emit.heartbeats.enabled?)"},
		{"exactly.once.source.suport = enabled", "warning: exactly.once.source.suport: unknown key; nothing reads it (did you mean B.exactly.once.source.support?)"},
		{"A.conusmer.client.rack = r", "warning: A.conusmer.client.rack: unknown key; nothing reads it (did you mean A.consumer.client.rack?)"},
		{"A.consumer.fetch.max.byte = 1", "info: A.consumer.fetch.max.byte: not a client setting that is known here; it has no effect (did you mean A.consumer.fetch.max.bytes?)"},
		{"zzz.unheard.of = 1", "warning: zzz.unheard.of: unknown key; nothing reads it"},
		{"heliograph.poisn = stop", "warning: heliograph.poisn: unknown key; nothing reads it (did you mean heliograph.poison?)"},
		// at the wrong place
		{"producer.compression.type = zstd", "warning: producer.compression.type: not read at this place; MirrorMaker drops it (use B.producer.compression.type)"},
		{"consumer.isolation.level = read_committed", "warning: consumer.isolation.level: not read at this place; MirrorMaker drops it (use A.consumer.isolation.level)"},
		{"compression.type = zstd", "warning: compression.type: not read at this place (use B.producer.compression.type)"},
		{"B.compression.type = zstd", "warning: B.compression.type: not read at this place (use B.producer.compression.type)"},
		{"A->B.compression.type = zstd", "warning: A->B.compression.type: not read at this place (use B.producer.compression.type or A->B.producer.override.compression.type)"},
		{"A->B.producer.compression.type = zstd", "warning: A->B.producer.compression.type: reaches the producer of offset syncs only, as in MirrorMaker (use B.producer.compression.type or A->B.producer.override.compression.type for records)"},
		{"A->B.target.cluster.compression.type = zstd", "warning: A->B.target.cluster.compression.type: not read at this place: only connection and security keys pass (use B.producer.compression.type)"},
		{"A->B.consumer.bootstrap.servers = x:1", "info: A->B.consumer.bootstrap.servers: A.bootstrap.servers on line 2 wins over it for the clients on A|info: A->B.consumer.bootstrap.servers: B.bootstrap.servers on line 3 wins over it for the clients on B"},
		{"A->B.source.cluster.bootstrap.servers = x:1", "warning: A->B.source.cluster.bootstrap.servers: has no effect: A.bootstrap.servers on line 2 wins over it (use A.bootstrap.servers, or A->B.source.consumer.bootstrap.servers and its like)"},
		{"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "warning: [hidden]: a line of PEM text or of a key stands by itself; nothing reads it (end every line of it but the last with a backslash)"},
		// read by nothing in this file
		{"B->A.topics = x", "warning: B->A.topics: B->A is not enabled, so nothing is copied by it (write B->A.enabled = true, or false if that is meant)"},
		{"B->A.heartbeats.topic.replication.factor = 1", ""},
		{"config.providers.env.class = EnvVarConfigProvider", `warning: config.providers.env.class: config provider "env" is not declared; nothing reads it (add env to config.providers)`},
		{"A->B.consumer.override.client.rack = r", "warning: A->B.consumer.override.client.rack: not read at this place: in MirrorMaker only exactly-once offset clients take it (use A.consumer.client.rack)"},
		{"offset.flush.interval.ms = 1000", "warning: offset.flush.interval.ms: not read at this place (use B.offset.flush.interval.ms)"},
		{"A->B.offset.flush.interval.ms = 1000", "warning: A->B.offset.flush.interval.ms: not read at this place (use B.offset.flush.interval.ms)"},
		{"use.defaults.from = source", "warning: use.defaults.from: not read at this place (use A->B.use.defaults.from)"},
		{"A.topics = x", "warning: A.topics: not read at this place (use A->B.topics or topics)"},
		{"B.clusters = x", "warning: B.clusters: not read at this place (use clusters)"},
		{"B.producer.auto.offset.reset = latest", "warning: B.producer.auto.offset.reset: has no effect on this kind of client (it belongs to consumer)"},
		// of a cluster that is not there
		{"C.bootstrap.servers = c:1", `warning: C.bootstrap.servers: "C" is not among clusters (add it to clusters)`},
		{"a.bootstrap.servers = c:1", `warning: a.bootstrap.servers: "a" is not among clusters (aliases are case-sensitive and hold no blanks: A)`},
		{"A->C.enabled = true", `warning: A->C.enabled: flow of a cluster that is not among clusters: "C" (add it to clusters)`},
		{"A->A.enabled = true", "warning: A->A.enabled: a flow from A to itself is none"},
		// values that cannot be read
		{"A->B.sync.topic.acls.enabled = yes", `error: A->B.sync.topic.acls.enabled: "yes" is neither true nor false (true or false)`},
		{"B->A.enabled = true # both ways", `error: B->A.enabled: "true # both ways" is neither true nor false (this format has no comments at the end of a line; write true alone)`},
		{"B->A.enabled = false # passive", `warning: B->A.enabled: "false # passive" is read as false (this format has no comments at the end of a line; write false alone)`},
		{"replication.factor = 3 # three", `error: replication.factor: "3 # three" is not a number that fits (this format has no comments at the end of a line; write 3 alone)`},
		{"replication.factor = 0", "error: replication.factor: 0 is not a replication factor (-1 for the broker's default, or 1 and more)"},
		{"replication.factor = 99999", `error: replication.factor: "99999" is not a number that fits (a whole number)`},
		{"offset-syncs.topic.location = something", `error: offset-syncs.topic.location: "something" is not a value of it (one of source, target)`},
		{"A->B.use.defaults.from = sources", `warning: A->B.use.defaults.from: "sources" is read as target (source or target)`},
		{"security.protocol = abc", `error: security.protocol: "abc" is not a value of it (one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)`},
		{"A.consumer.isolation.level = read_committd", `error: A.consumer.isolation.level: "read_committd" is not a value of it (did you mean read_committed? one of read_uncommitted, read_committed)`},
		{"heliograph.memory.bytes = lots", `error: heliograph.memory.bytes: "lots" is not a size that fits (a number of bytes, with KiB, MiB or GiB if you like, or unlimited)`},
		{"tasks.max = 0", "error: tasks.max: 0 is too small"},
		// intervals
		{"refresh.topics.interval.seconds = 86400", ""},
		{"refresh.topics.interval.seconds = 86401", "warning: refresh.topics.interval.seconds: 86401 seconds are 1d 1s (the unit is seconds)"},
		{"A->B.sync.topic.acls.interval.seconds = 600000", "warning: A->B.sync.topic.acls.interval.seconds: 600000 seconds are 6d 22h 40m (the unit is seconds; if milliseconds were meant, write 600)"},
		{"emit.heartbeats.interval.seconds = 0", "warning: emit.heartbeats.interval.seconds: an interval of 0 is read as off; MirrorMaker would fail or run without a pause (write the matching .enabled = false)"},
		{"emit.heartbeats.interval.seconds = -1", "info: emit.heartbeats.interval.seconds: a negative interval switches the job off (write the matching .enabled = false)"},
		// patterns
		{`A->B.topics = *`, `error: A->B.topics: "*" alone is not a pattern (write .* for everything)`},
		{`A->B.topics = orders.*,!orders.tmp`, `warning: A->B.topics: "!orders.tmp" matches names that begin with "!"; a leading "!" does not exclude (use the matching .exclude key)`},
		{`A->B.topics = [\-a]x`, ""},
		{`A->B.topics = \w+`, `warning: A->B.topics: "\w" lost its backslash when the file was read; the pattern is now w+ (write \\w)`},
		{`A->B.topics = \\w+`, ""},
		{`groups = a{2,}`, `error: groups: a list is split at every comma: "a{2,}" became the pieces "a{2" and "}" (no comma may stand inside a pattern; write "aaa*")`},
		{`groups = (ab){0,2}c`, `error: groups: a list is split at every comma: "(ab){0,2}c" became the pieces "(ab){0" and "2}c" (no comma may stand inside a pattern; write "(ab)?(ab)?c")`},
		{`groups = a{1,900}`, `error: groups: a list is split at every comma: "a{1,900}" became the pieces "a{1" and "900}" (no comma may stand inside a pattern)`},
		// classes
		{"A->B.replication.policy.class = com.acme.Policy", "error: A->B.replication.policy.class: replication policy com.acme.Policy is not known, and guessing it could write into the wrong topics (use DefaultReplicationPolicy, which prefixes topics with the source's alias, or IdentityReplicationPolicy, which keeps their names)"},
		{"replication.policy.class = com.acme.IdentityReplicationPolicy", "error: replication.policy.class: replication policy com.acme.IdentityReplicationPolicy is not known, and guessing it could write into the wrong topics (use DefaultReplicationPolicy, which prefixes topics with the source's alias, or IdentityReplicationPolicy, which keeps their names)"},
		{"topic.filter.class = com.acme.Filter", "error: topic.filter.class: class com.acme.Filter cannot be run here: the class runs in a JVM only (remove it, or use DefaultTopicFilter)"},
		{"topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter", ""},
		{"key.converter = org.apache.kafka.connect.converters.ByteArrayConverter", ""},
		{"B.value.converter = org.apache.kafka.connect.storage.StringConverter", "error: B.value.converter: class org.apache.kafka.connect.storage.StringConverter cannot be run here: the class runs in a JVM only (remove it, or use ByteArrayConverter)"},
		{"A->B.predicates = p", "error: A->B.predicates: p cannot be honoured: records are copied as bytes; a predicate that is not run would leave wrong data without a word (remove it)"},
		{"A->B.transforms =", ""},
		{"B.producer.interceptor.classes = com.acme.I", "error: B.producer.interceptor.classes: cannot be honoured: the class runs in a JVM only (remove it)"},
		{"name = x", "error: name: x cannot be honoured: it would give all three connectors of a flow one name (remove it)"},
		// accepted without effect
		{"A.consumer.max.poll.records = 5", "info: A.consumer.max.poll.records: accepted, has no effect: batches are forwarded as the source holds them"},
		{"B.scheduled.rebalance.max.delay.ms = 5", "info: B.scheduled.rebalance.max.delay.ms: accepted, has no effect: work is shared by heliograph's own group protocol"},
		{"A.consumer.auto.offset.reset = none", `error: A.consumer.auto.offset.reset: "none" is not a value of it (one of earliest, latest)`},
		{"A.sasl.mechanism = PLAIN", "warning: A.sasl.mechanism: not used: security.protocol of A is PLAINTEXT (set A.security.protocol to SASL_SSL or SASL_PLAINTEXT)"},
		{"A.ssl.truststore.location = /t", "warning: A.ssl.truststore.location: not used: security.protocol of A is PLAINTEXT (set A.security.protocol to SSL or SASL_SSL)"},
		{"source.cluster.bootstrap.servers = x:1", "warning: source.cluster.bootstrap.servers: a key of a connector's own configuration; nothing reads it here (use A.bootstrap.servers)"},
		{"target.cluster.max.request.size = 1", "warning: target.cluster.max.request.size: a key of a connector's own configuration; nothing reads it here (use B.producer.max.request.size)"},
		{"B.producer.override.max.request.size = 1", "info: B.producer.override.max.request.size: not a client setting that is known here; it has no effect (did you mean B.producer.max.request.size?)"},
		// what it all means
		{"enabled = true", "warning: enabled: at the top level it enables every pair of clusters that writes heartbeats (write S->T.enabled = true for the flows that are meant)"},
		{"A->B.exactly.once.support = required", "error: A->B.exactly.once.support: exactly-once is required, and isolation.level of the source consumer is not read_committed (add A.consumer.isolation.level = read_committed)|error: A->B.exactly.once.support: exactly-once is required and not switched on (add B.exactly.once.source.support = enabled)"},
		{"B.exactly.once.source.support = enabled", "warning: B.exactly.once.source.support: aborted records of A->B are copied: the source is not read with read_committed (add A.consumer.isolation.level = read_committed)"},
		{"emit.checkpoints.enabled = false", "warning: emit.checkpoints.enabled: A->B writes no checkpoints, so no group can be followed"},
		{"emit.offset-syncs.enabled = false", "warning: emit.offset-syncs.enabled: A->B writes no checkpoints, so no group can be followed"},
		{"source.cluster.alias = A", ""},
		{"source.cluster.alias = source", `error: source.cluster.alias: it would prefix topics of A->B with "source" in place of "A" (rename the cluster in clusters instead)`},
		{"source.cluster.alias =", `error: source.cluster.alias: an empty alias would create topics such as ".orders" (remove it; to keep names use replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy)`},
		{"replication.policy.separator =", "error: replication.policy.separator: with an empty separator no name tells where its topic came from (choose a separator, or replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy to keep names)"},
		{"replication.policy.separator = /", `error: replication.policy.separator: "/" cannot be part of a topic's name (letters, digits, dots, dashes and underscores)`},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			var want []string
			if tt.want != "" {
				for w := range strings.SplitSeq(tt.want, "|") {
					want = append(want, "f:5: "+w)
				}
			}
			wantProblems(t, load(base+tt.line+"\n").Problems, Info, want)
		})
	}
}

func TestBrokersThatAreNone(t *testing.T) {
	for servers, want := range map[string]string{
		"a:1,b:2":                  "",
		" a:1 , b:2 ,":             "",
		"PLAINTEXT://a:1":          "",
		"[::1]:9092":               "",
		"my_host:9092":             "",
		"":                         "no broker is named (write host:port, separated by commas)",
		"a":                        `"a" is not a broker (the port is missing: a:9092)`,
		"a:x":                      `"a:x" is not a broker (write host:port)`,
		"a:0":                      `"a:0" has no port that exists (ports go from 1 to 65535)`,
		"a:70000":                  `"a:70000" has no port that exists (ports go from 1 to 65535)`,
		"a:1;b:2":                  `"a:1;b:2" is not a broker (entries are separated by commas`,
		"a:1 # main":               `"a:1 # main" is not a broker (entries are separated by commas`,
		"a:1,,b:2":                 "no broker in entry 2 (write host:port, separated by commas)",
		"=a:1,b:2":                 `"=a:1" is not a broker (a second "=" became part of the value; write one only)`,
		"<host>:9092":              "the placeholder <host> is left in (fill in the template)",
		"your-kafka-broker:9092":   "the placeholder your-kafka-broker is left in (fill in the template)",
		"${BROKERS}":               "the placeholder ${BROKERS} is left in (fill in the template)",
		"{{ brokers }}":            "the placeholder {{ brokers }} is left in (fill in the template)",
		"[IP_ADDRESS]:9092,TODO:1": "the placeholder [IP_ADDRESS], TODO is left in (fill in the template)",
	} {
		d := load(strings.Replace(base, "a1:9092", servers, 1))
		var lines []string
		if want != "" {
			lines = []string{"f:2: error: A.bootstrap.servers: " + want}
		}
		wantProblems(t, d.Problems, Info, lines)
	}
}

func TestWithoutClustersTheRestIsCheckedAllTheSame(t *testing.T) {
	d := load("cluster = A, B\nA.bootstrap.servers = a\nB.bootstrap.servers = b:1\nA->B.enabled = tru\nA->B.topics = [\n")
	var lines []int
	for _, p := range d.Problems {
		if p.Severity == Error {
			lines = append(lines, p.Line)
		}
	}
	if want := []int{1, 2, 4, 5}; !slices.Equal(lines[:min(4, len(lines))], want) {
		t.Errorf("errors on lines %v, want %v first:\n%v", lines, want, d.Err())
	}
	if hint := d.Problems[0].Hint; hint != "did you mean clusters where cluster stands?" {
		t.Errorf("hint %q", hint)
	}
}

func TestProviderParametersThatNothingReads(t *testing.T) {
	d := load(base + "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n" +
		"config.providers.env.param.allowlist.pattern = (?!X).*\nconfig.providers.env.param.allowed.path = /x\n")
	wantProblems(t, d.Problems, Info, []string{"f:8: warning: config.providers.env.param.allowed.path: not a parameter of the built-in config providers; nothing reads it (did you mean config.providers.env.param.allowed.paths?)"})
}

func TestFlowsThatAreSwitchedOffMayHoldKeys(t *testing.T) {
	d := load(base + "B->A.enabled = false\nB->A.topics = x\nB->A.groups = x\n")
	wantProblems(t, d.Problems, Info, []string{"f:6: info: B->A.topics: no effect on records: B->A is switched off on line 5"})
}

func TestAllProblemsComeAtOnce(t *testing.T) {
	d := load("clusters = A, B\nA.bootstrap.servers = a\nB.bootstrap.servers = <b>\nA->B.enabled = true\ntopics = [\nreplication.factor = x\nA.security.protocol = SSLL\nfoo = 1\n")
	wantProblems(t, d.Problems, Warning, []string{
		"f:2: error: A.bootstrap.servers", "f:3: error: B.bootstrap.servers", "f:5: error: topics",
		"f:6: error: replication.factor", "f:7: error: A.security.protocol", "f:8: warning: foo",
	})
	if err := d.Err(); err == nil || strings.Count(err.Error(), "\n") != 4 || strings.Contains(err.Error(), "foo") {
		t.Errorf("the error must list five errors and no warning: %v", err)
	}
}

func TestFlowsThatWouldShareAGroup(t *testing.T) {
	d := load("clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\nA->C.enabled = true\nC.group.id = mm2\n")
	wantProblems(t, d.Problems, Info, nil)
	if got := flowOf(t, d, "A->C").Positions.GroupID; got != "mm2" {
		t.Errorf("group %q", got)
	}
	d = load("clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\nA->C.enabled = true\nB->C.enabled = true\nC.group.id = mm2\n")
	wantProblems(t, d.Problems, Info, []string{"f:7: error: C.group.id: flows A->C, B->C would share one group and collide"})
}

func TestWhereLayersBeatEachOther(t *testing.T) {
	d := load(base + "A->B.consumer.client.rack = flow\nA.consumer.client.rack = cluster\nA->B.source.admin.request.timeout.ms = 5\nA->B.source.cluster.security.protocol = PLAINTEXT\n")
	wantProblems(t, d.Problems, Info, []string{"f:5: info: A->B.consumer.client.rack: A.consumer.client.rack on line 6 wins over it for the clients on A"})
	c := flowOf(t, d, "A->B").Clients
	if c.SourceConsumer.Rack != "cluster" || c.TargetConsumer.Rack != "flow" || c.SourceAdmin.RequestTimeout.Or(0).Milliseconds() != 5 || c.TargetAdmin.RequestTimeout.Set {
		t.Errorf("%+v", c)
	}
}

func TestReferencesInAFile(t *testing.T) {
	src := Source{Name: "f", LookupEnv: func(name string) (string, bool) { return "7", name == "SEVEN" }}
	const declare = base + "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"
	src.Bytes = []byte(declare + "replication.factor = ${env:SEVEN}\nA->B.topics = t${env:SEVEN}, u\n")
	d := Load(src)
	wantProblems(t, d.Problems, Info, nil)
	if f := flowOf(t, d, "A->B"); f.Topics.ReplicationFactor != 7 || !f.Selection.Filter.Accepts("t7") {
		t.Errorf("%+v", f.Topics)
	}
	src.Bytes = []byte(declare + "replication.factor = x${env:SEVEN}\ntasks.max = ${env:NONE}\n")
	wantProblems(t, Load(src).Problems, Info, []string{
		`f:7: error: replication.factor: "x${env:SEVEN}" is not a number that fits`, "f:8: error: tasks.max: ${env:NONE}: the environment variable is not set",
	})
}

// A value that is a reference again is neither looked up nor passed over in silence.
func TestReferenceThatStandsForAReference(t *testing.T) {
	d := Load(Source{
		Name: "f", LookupEnv: func(string) (string, bool) { return "${env:PASSWORD}", true },
		Bytes: []byte(base + "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n" +
			"A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = ${env:LOGIN}\n"),
	})
	wantProblems(t, d.Problems, Info, []string{
		"f:9: warning: A.sasl.jaas.config: ${env:LOGIN}: what it stands for is a reference again, which is taken as it is written (write the value itself where ${env:LOGIN} points to)",
		"f:9: error: A.sasl.jaas.config: the login cannot be read",
	})
}

func TestStrictRefusesWhatIsOtherwiseDoubtful(t *testing.T) {
	text := base + "topics.blacklst = x\nproducer.linger.ms = 1\nA.consumer.nonsense = 1\n"
	if err := load(text).Err(); err != nil {
		t.Errorf("not strict: %v", err)
	}
	for name, d := range map[string]*Deployment{
		"flag": Load(Source{Name: "f", Bytes: []byte(text), Strict: true}), "key": load(text + "heliograph.strict = true\n"),
	} {
		if n := d.Problems.Count(Error); n != 2 || !d.Process.Strict {
			t.Errorf("%s: %d errors: %v", name, n, d.Problems)
		}
	}
}

func TestRepeatedKeys(t *testing.T) {
	d := load(base + "A->B.topics = a\nA->B.topics = b\ngroups = g\ngroups = g\n")
	wantProblems(t, d.Problems, Info, []string{
		"f:5: warning: A->B.topics: written again on line 6 with another value, which wins", "f:7: info: groups: written again on line 8",
	})
	if f := flowOf(t, d, "A->B"); !f.Selection.Filter.Accepts("b") || f.Selection.Filter.Accepts("a") {
		t.Error("the last one must win")
	}
}

func TestFilesWithoutFlows(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "f: error: clusters: clusters is missing"},
		{"clusters =", "f:1: error: clusters: at least two clusters are needed, and 0 is named"},
		{"clusters = A, B # two", `f:1: error: clusters: an alias would be "B # two" (this format has no comments at the end of a line; write B alone)`},
		{"clusters = A", "f:1: error: clusters: at least two clusters are needed, and 1 is named"},
		{strings.Replace(base, "true", "false", 1), "f: error: no flow is enabled, so nothing would be replicated (write A->B.enabled = true)"},
		{strings.Replace(base, "A->B.enabled", "emit.heartbeats.enabled", 1), "f:4: warning: emit.heartbeats.enabled: no flow is enabled: only heartbeats are written"},
		{strings.Replace(base, "B.boot", "#", 1), `f:1: error: B.bootstrap.servers: cluster "B" has no brokers (add it)`},
	}
	for _, tt := range tests {
		d := load(tt.text)
		if !slices.ContainsFunc(d.Problems, func(p Problem) bool { return strings.HasPrefix(p.String(), tt.want) }) {
			t.Errorf("%q: %v, want %q", tt.text, d.Problems, tt.want)
		}
	}
}

func TestLoops(t *testing.T) {
	const identity = "replication.policy.class = IdentityReplicationPolicy\n"
	const back = "B->A.enabled = true\n"
	tests := []struct {
		name, text string
		loop       string // names of the flows; empty: none
	}{
		{"default policy both ways", back, ""},
		{"identity one way", identity, ""},
		{"identity both ways", back + identity, "A->B and B->A"},
		{"identity both ways, disjoint filters", back + identity + `A->B.topics = a-.*` + "\n" + `B->A.topics = b-.*` + "\n", ""},
		{"identity both ways, overlap in one odd name", back + identity + "A->B.topics = x, [q-z]{2}7\nB->A.topics = y, qq7\n", "A->B and B->A"},
		{"identity both ways, kept apart by an exclusion", back + identity + "A->B.topics.exclude = .*-b\nB->A.topics = .*-b\n", ""},
		{"identity there, default back: names grow", back + "A->B." + identity, "A->B and B->A"},
		{"identity on a ring", "clusters = A, B, C\nC.bootstrap.servers = c:1\nB->C.enabled = true\nC->A.enabled = true\n" + identity, "A->B and B->C and C->A"},
		{"identity on a chain", "clusters = A, B, C\nC.bootstrap.servers = c:1\nB->C.enabled = true\n" + identity, ""},
		{"default policy on a full mesh", "clusters = A, B, C\nC.bootstrap.servers = c:1\nB->C.enabled=true\nC->A.enabled=true\nC->B.enabled=true\nA->C.enabled=true\n" + back, ""},
		{"old trick both ways", back + "replication.policy.separator =\nsource.cluster.alias =\n", "A->B and B->A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var found string
			for _, p := range load(base + tt.text).Problems {
				if p.Severity == Error {
					found = strings.TrimPrefix(p.Message, "flows ")
				}
			}
			if got, _, _ := strings.Cut(found, " would copy"); got != tt.loop {
				t.Errorf("loop %q, want %q", found, tt.loop)
			}
		})
	}
}

func TestNaming(t *testing.T) {
	tests := []struct{ text, orders, heartbeats, syncs, checkpoints string }{
		{"", "A.orders", "A.heartbeats", "mm2-offset-syncs.B.internal", "A.checkpoints.internal"},
		{"replication.policy.separator = __", "A__orders", "A__heartbeats", "mm2-offset-syncs__B__internal", "A__checkpoints__internal"},
		{"replication.policy.separator = _\nreplication.policy.internal.topic.separator.enabled = false", "A_orders", "A_heartbeats", "mm2-offset-syncs.B.internal", "A.checkpoints.internal"},
		{"replication.policy.class = io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy", "orders", "A.heartbeats", "mm2-offset-syncs.B.internal", "A.checkpoints.internal"},
		{"A->B.replication.policy.class = IdentityReplicationPolicy", "orders", "A.heartbeats", "mm2-offset-syncs.B.internal", "A.checkpoints.internal"},
		{"B.replication.policy.class = IdentityReplicationPolicy", "A.orders", "A.heartbeats", "mm2-offset-syncs.B.internal", "A.checkpoints.internal"},
	}
	for _, tt := range tests {
		f := flowOf(t, load(base+tt.text+"\n"), "A->B")
		got := []string{f.Policy.RemoteTopic("A", "orders"), f.Policy.RemoteTopic("A", "heartbeats"), f.Policy.OffsetSyncsTopic("B"), f.Policy.CheckpointsTopic("A")}
		if diff := cmp.Diff([]string{tt.orders, tt.heartbeats, tt.syncs, tt.checkpoints}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestInternalTopicsFollowTheChosenRules(t *testing.T) {
	for text, want := range map[string]bool{"": true, "heliograph.compatibility = 3.9\n": false} {
		f := flowOf(t, load(base+text), "A->B")
		if got, _ := f.Selection.Replicates("billing-internal"); got != want {
			t.Errorf("%q: billing-internal is copied: %v", text, got)
		}
		if got, _ := f.Selection.Replicates("mm2-offsets.X.internal"); got {
			t.Errorf("%q: a topic of MirrorMaker is copied", text)
		}
	}
}

func TestAliasesThatNeedCare(t *testing.T) {
	d := load("clusters = xx.kafka-1, source, target\nxx.kafka-1.bootstrap.servers = a:1\nsource.bootstrap.servers = b:1\ntarget.bootstrap.servers = c:1\n" +
		"xx.kafka-1->target.enabled = true\nsource->target.enabled = true\nsource->target.source.consumer.client.rack = r\nsource.cluster.alias = source\n" +
		"xx.kafka-1->target.source.cluster.alias = xx.kafka-1\ntarget.consumer.client.rack = s\n")
	wantProblems(t, d.Problems, Info, nil)
	f := flowOf(t, d, "xx.kafka-1->target")
	if source, ok := f.Policy.TopicSource(f.Policy.RemoteTopic("xx.kafka-1", "orders")); !ok || source != "xx.kafka-1" {
		t.Errorf("source of the copy: %q", source)
	}
	if rack := flowOf(t, d, "source->target").Clients.SourceConsumer.Rack; rack != "r" {
		t.Errorf("rack %q", rack)
	}
	d = load("clusters = source, target\nsource.bootstrap.servers = b:1\ntarget.bootstrap.servers = c:1\nsource->target.enabled = true\ntarget.cluster.batch.size = 4\n")
	wantProblems(t, d.Problems, Info, []string{"f:5: warning: target.cluster.batch.size: a key of a connector's own configuration; nothing reads it here (use target.producer.batch.size)"})
	// A name that no topic can bear is refused only where a topic would bear it.
	hostile := "clusters = A, B- ._~\nA.bootstrap.servers = a:1\nB-\\ ._~.bootstrap.servers = b:1\nA->B-\\ ._~.enabled = true\n"
	if err := load(hostile).Err(); err == nil || !strings.Contains(err.Error(), "offset-syncs.topic.location = target") {
		t.Errorf("hostile alias: %v", err)
	}
	if err := load(hostile + "offset-syncs.topic.location = target\n").Err(); err != nil {
		t.Errorf("hostile alias with syncs on the target: %v", err)
	}
}

func TestIntervalsAreHeldOrOurs(t *testing.T) {
	f := flowOf(t, load(base), "A->B")
	silent := joined(f.Topics.Refresh, f.Topics.SyncConfigs, f.Topics.SyncACLs, f.Checkpoints.RefreshGroups, f.Positions.Commit, f.Heartbeats.Every)
	if want := "every 5s, every 1m, every 1m, every 5s, every 5s, every 1s"; silent != want {
		t.Errorf("silent: %s, want %s", silent, want)
	}
	f = flowOf(t, load(base+"refresh.topics.interval.seconds = 600\nA->B.sync.topic.configs.interval.seconds = 7\nsync.topic.acls.enabled = false\nB.offset.flush.interval.ms = 60000\n"), "A->B")
	said := joined(f.Topics.Refresh, f.Topics.SyncConfigs, f.Topics.SyncACLs, f.Positions.Commit)
	if want := "every 10m (said), every 7s (said), off, every 1m (said)"; said != want {
		t.Errorf("said: %s, want %s", said, want)
	}
}

func joined(all ...Every) string {
	var out []string
	for _, e := range all {
		text := e.String()
		if e.Set {
			text += " (said)"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestOwnKeys(t *testing.T) {
	d := load(base + `heliograph.memory.bytes = 1GiB
heliograph.rate.bytes.per.second = 10MB
A.heliograph.rate.bytes.per.second = 5000
A->B.heliograph.rate.bytes.per.second = 1KiB
heliograph.metrics.address = off
heliograph.retention.hold.hours = off
heliograph.poison = skip-and-record
A->B.heliograph.missing.position = scan
heliograph.retention.overtaken = park
heliograph.foreign.writer = park
`)
	wantProblems(t, d.Problems, Info, nil)
	f := flowOf(t, d, "A->B")
	if d.Process.MemoryBytes != 1<<30 || d.Process.BytesPerSecond != 10e6 || d.Process.MetricsAddress != "" ||
		d.Clusters["A"].BytesPerSecond != 5000 || d.Clusters["B"].BytesPerSecond != 0 || f.BytesPerSecond != 1024 ||
		f.Topics.HoldDeletions != 0 || f.Losses.Poison != PoisonSkipAndRecord || f.Losses.Missing != MissingScan ||
		f.Losses.Overtaken != OvertakenPark || f.Losses.ForeignWriter != ForeignPark {
		t.Errorf("%+v %+v %+v", d.Process, d.Clusters["A"], f)
	}
	quiet := load(base)
	if f := flowOf(t, quiet, "A->B"); f.Topics.HoldDeletions.Hours() != 24 || f.Losses.Poison != PoisonStop || f.Losses.Missing != MissingPark || f.BytesPerSecond != 0 || f.Losses.Overtaken != OvertakenContinue {
		t.Errorf("defaults: %+v", f)
	}
}

func TestForeignWritersParkWhereTopicsKeepTheirNames(t *testing.T) {
	const identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
	for text, want := range map[string]ForeignWriter{
		"":       ForeignNote,
		identity: ForeignPark,
		identity + "heliograph.foreign.writer = note\n": ForeignNote,
		"A->B.heliograph.foreign.writer = park\n":       ForeignPark,
	} {
		if got := flowOf(t, load(base+text), "A->B").Losses.ForeignWriter; got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestLogins(t *testing.T) {
	const sasl = "A.security.protocol = SASL_PLAINTEXT\n"
	tests := []struct {
		name, text string
		want       Credential
		problem    string
	}{
		{"scram", "A.sasl.mechanism = SCRAM-SHA-512\nA.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule  required  username=\"mm\"  password=\"p\" ;", Scram{Username: "mm", Password: NewSecret("p")}, ""},
		{"iam", "A.sasl.mechanism = AWS_MSK_IAM\nA.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;\nA.sasl.client.callback.handler.class = software.amazon.msk.auth.iam.IAMClientCallbackHandler", MSKIAM{}, ""},
		{"iam by profile", "A.sasl.mechanism = AWS_MSK_IAM\nA.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName=\"prod\";", MSKIAM{}, "option awsProfileName cannot be honoured"},
		{"ticket cache", "A.sasl.jaas.config = com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true serviceName=kafka;", Kerberos{ServiceName: "kafka"}, "the ticket cache is not read"},
		{"keytab", "A.sasl.jaas.config = com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab=\"/k\" principal=\"p@R\" serviceName=kafka;", Kerberos{ServiceName: "kafka", Principal: "p@R", Keytab: "/k"}, ""},
		{"no login", "A.sasl.mechanism = PLAIN", nil, "PLAIN needs a login, and there is none"},
		{"no mechanism means GSSAPI", "A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username=\"a\" password=\"b\";", nil, "PlainLoginModule does not serve sasl.mechanism=GSSAPI"},
		{"unknown mechanism", "A.sasl.mechanism = NTLM", nil, "login mechanism NTLM is not supported"},
		{"unknown module", "A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = com.acme.Module required;", nil, "login module com.acme.Module is not known"},
		{"no password", "A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = x.PlainLoginModule required username=\"a\";", Plain{Username: "a"}, "PlainLoginModule needs the option password"},
		{"placeholder", "A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = x.PlainLoginModule required username=\"a\" password=\"CHANGE_ME\";", Plain{Username: "a", Password: NewSecret("CHANGE_ME")}, "a placeholder is left in option password"},
		{"two modules", "A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = x.PlainLoginModule required username=\"a\" password=\"b\"; x.PlainLoginModule required;", nil, "it holds 2 login modules"},
		{"no keytab", "A.sasl.jaas.config = x.Krb5LoginModule required;\nA.sasl.kerberos.service.name=kafka", Kerberos{ServiceName: "kafka"}, "names no keytab"},
		{"no endpoint", "A.sasl.mechanism = OAUTHBEARER\nA.sasl.jaas.config = x.OAuthBearerLoginModule required clientId=a clientSecret=b;", OAuth{ClientID: "a", ClientSecret: NewSecret("b"), Extensions: map[string]string{}, TLS: map[string]string{}}, "needs sasl.oauthbearer.token.endpoint.url"},
		{"token file", "A.sasl.mechanism = OAUTHBEARER\nA.sasl.oauthbearer.token.endpoint.url = file:///run/token\nA.sasl.jaas.config = x.OAuthBearerLoginModule required extension_tenant=t;", OAuth{TokenFile: "/run/token", Extensions: map[string]string{"tenant": "t"}, TLS: map[string]string{}}, ""},
		{"no URL", "A.sasl.mechanism = OAUTHBEARER\nA.sasl.oauthbearer.token.endpoint.url = login.example\nA.sasl.jaas.config = x.OAuthBearerLoginModule required clientId=a clientSecret=b;", OAuth{ClientID: "a", ClientSecret: NewSecret("b"), Extensions: map[string]string{}, TLS: map[string]string{}}, "not a URL that tokens can be obtained from"},
		{"custom handler", "A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = x.PlainLoginModule required username=a password=b;\nA.sasl.login.callback.handler.class = com.acme.Handler", Plain{Username: "a", Password: NewSecret("b")}, "class com.acme.Handler cannot be run here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := load(base + sasl + tt.text + "\n")
			var got Credential
			if s := d.Clusters["A"].SASL; s != nil {
				got = s.Credential
			}
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b Secret) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			err := d.Err()
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%v, want %q", err, tt.problem)
			}
			if err != nil && strings.Contains(err.Error(), "CHANGE_ME") {
				t.Errorf("the password is shown: %v", err)
			}
		})
	}
}

func TestTLSVersions(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "TLSv1.2 to TLSv1.3"},
		{"A.ssl.protocol = TLSv1.2", "TLSv1.2 to TLSv1.2"},
		{"A.ssl.protocol = TLS", "TLSv1.2 to TLSv1.3"},
		{"A.ssl.enabled.protocols = TLSv1.3", "TLSv1.3 to TLSv1.3"},
		{"A.ssl.protocol = TLSv1.2\nA.ssl.enabled.protocols = TLSv1.3,TLSv1.2", "TLSv1.2 to TLSv1.3"},
		{"A.ssl.enabled.protocols = TLSv1.1,TLSv1.2", "TLSv1.2 to TLSv1.2"},
	}
	for _, tt := range tests {
		d := load(base + "A.security.protocol = ssl\n" + tt.text + "\n")
		if got := d.Clusters["A"].TLS; d.Err() != nil || got.MinVersion+" to "+got.MaxVersion != tt.want {
			t.Errorf("%q: %+v, want %s; %v", tt.text, got, tt.want, d.Problems)
		}
	}
	for _, text := range []string{"A.ssl.protocol = TLSv1.1", "A.ssl.enabled.protocols = TLSv1", "A.ssl.truststore.type = JCEKS", "A.ssl.endpoint.identification.algorithm = ldap", "A.ssl.keystore.key = nonsense"} {
		if err := load(base + "A.security.protocol = ssl\n" + text + "\n").Err(); err == nil || strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPEMJoinedIntoOneLineIsMadeWhole(t *testing.T) {
	got := normalPEM("-----BEGIN CERTIFICATE----- " + strings.Repeat("QUJD", 20) + "  RA== -----END CERTIFICATE----- -----BEGIN X-----\\nQQ==-----END X-----")
	want := "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("QUJD", 16) + "\n" + strings.Repeat("QUJD", 4) + "RA==\n-----END CERTIFICATE-----\n-----BEGIN X-----\n\\nQQ==\n-----END X-----\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEffectiveSettings(t *testing.T) {
	d := Load(Source{
		Name: "mm2.properties",
		Bytes: []byte(base + `A.security.protocol = SASL_SSL
A.sasl.mechanism = PLAIN
A.sasl.jaas.config = x.PlainLoginModule required username="u" password="p";
A.ssl.truststore.location = /t
A.ssl.truststore.password = ${env:STORE}
config.providers = env
config.providers.env.class = EnvVarConfigProvider
A.consumer.fetch.max.bytes = 1048576
A->B.topics = orders.*, payments
topics.exclude =
B.producer.compression.type = lz4
`),
		LookupEnv: func(string) (string, bool) { return "sesame", true },
	})
	var b strings.Builder
	for _, s := range flowOf(t, d, "A->B").Effective() {
		fmt.Fprintf(&b, "%s = %s  # %s\n", s.Key, s.Value, s.Origin)
	}
	golden(t, "testdata/effective.golden", b.String())
	if strings.Contains(b.String(), "sesame") {
		t.Error("a resolved secret is shown")
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(base), false)
	f.Add([]byte("clusters:\n  A: {bootstrap.servers: [a:1]}\n  B: {bootstrap.servers: [b:1]}\nflows:\n  A->B:\n    topics: [x]\n"), true)
	for name := range corpusVerdicts {
		f.Add(readCorpus(f, name), strings.HasPrefix(name, "strimzi"))
	}
	f.Fuzz(func(t *testing.T, data []byte, yaml bool) {
		if bytes.Count(data, []byte(",")) > 30 {
			return // flows grow with the square of the clusters
		}
		name := "f.properties"
		if yaml {
			name = "f.yaml"
		}
		d := Load(Source{Name: name, Bytes: data})
		again := Load(Source{Name: name, Bytes: data})
		if diff := cmp.Diff(d.Problems, again.Problems); diff != "" {
			t.Fatalf("two loads differ:\n%s", diff)
		}
		if d.Err() == nil && flowsOf(d) == "" && d.Problems.Count(Warning) == 0 {
			t.Fatal("accepted in silence, and nothing would be replicated")
		}
	})
}
