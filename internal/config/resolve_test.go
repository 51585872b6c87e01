package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"heliograph/internal/mirror"
)

// loaded makes a resolver of a properties file, references replaced by env.
func loaded(t *testing.T, text string, env map[string]string) *resolver {
	t.Helper()
	var r report
	entries, _ := ParseProperties("f", []byte(text))
	raw := collect(entries, &r)
	src := Source{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	ps := newProviders(src, raw, &r)
	for _, key := range raw.ordered() {
		raw[key] = ps.resolve(raw[key], &r)
	}
	if r.problems.HasErrors() {
		t.Fatalf("%v", r.problems)
	}
	return &resolver{raw: raw, keys: newCatalogue()}
}

var ab = mirror.FlowID{Source: "a", Target: "b"}

// wantValues compares keys of a view; "-" wants the key absent.
func wantValues(t *testing.T, v view, want map[string]string) {
	t.Helper()
	for key, text := range want {
		val, ok := v[key]
		switch {
		case text == "-" && ok:
			t.Errorf("%s = %q, want none", key, val.Text)
		case text != "-" && val.Text != text:
			t.Errorf("%s = %q, want %q", key, val.Text, text)
		}
	}
}

func TestConnectorTakesClusterKeysAsSides(t *testing.T) {
	r := loaded(t, `
clusters = a, b
a.bootstrap.servers = servers-one
b.bootstrap.servers = servers-two
security.protocol = SSL
replication.factor = 4
a->b.tasks.max = 123
xxx = yyy
a.xxx = yyy
a->b.xxx = yyy
use.defaults.from = source
producer.linger.ms = 1
`, nil)
	wantValues(t, r.connector(ab, mirror.SourceConnector), map[string]string{
		"source.cluster.bootstrap.servers": "servers-one", "target.cluster.bootstrap.servers": "servers-two",
		"source.cluster.security.protocol": "SSL", "source.consumer.security.protocol": "SSL", "security.protocol": "SSL",
		"tasks.max": "123", "replication.factor": "4", "enabled": "false", "name": "MirrorSourceConnector",
		"source.cluster.alias": "a", "target.cluster.alias": "b",
		"xxx": "yyy", "use.defaults.from": "-", "producer.linger.ms": "-",
	})
	back := r.connector(mirror.FlowID{Source: "b", Target: "a"}, mirror.SourceConnector)
	wantValues(t, back, map[string]string{"xxx": "-", "tasks.max": "-"})
	wantValues(t, connectorClient(back, "source", "admin"), map[string]string{"xxx": "-"})
}

func TestClusterKeysBeatTopLevelKeysOfConnections(t *testing.T) {
	r := loaded(t, `
clusters = a, b
security.protocol = SSL
a.security.protocol = PLAINTEXT
a.producer.security.protocol = SSL
b.bootstrap.servers = x:1
`, nil)
	conn := r.connector(ab, mirror.SourceConnector)
	for role, want := range map[string]string{"admin": "PLAINTEXT", "producer": "SSL", "consumer": "PLAINTEXT"} {
		wantValues(t, connectorClient(conn, "source", role), map[string]string{"security.protocol": want})
	}
	for _, role := range roleNames {
		wantValues(t, connectorClient(conn, "target", role), map[string]string{"security.protocol": "SSL"})
	}
}

func TestWorkerOfAFlow(t *testing.T) {
	r := loaded(t, `
clusters = a, b
a.bootstrap.servers = servers-one
b.bootstrap.servers = servers-two
offset.storage.replication.factor = 123
b.offset.storage.replication.factor = 7
b.status.storage.replication.factor = 456
b.producer.client.id = clid
ssl.truststore.password = secret1
offset.flush.interval.ms = 1
b.offset.flush.interval.ms = 2
a->b.offset.flush.timeout.ms = 3
replication.policy.separator = _
`, nil)
	w := r.worker(ab)
	wantValues(t, w, map[string]string{
		"bootstrap.servers": "servers-two", "client.id": "a->b", "group.id": "a-mm2",
		"offset.storage.topic": "mm2-offsets.a.internal", "status.storage.topic": "mm2-status.a.internal", "config.storage.topic": "mm2-configs.a.internal",
		"offset.storage.replication.factor": "123", "status.storage.replication.factor": "456",
		"producer.client.id": "clid", "ssl.truststore.password": "secret1", "producer.ssl.truststore.password": "secret1",
		"offset.flush.interval.ms": "2", "offset.flush.timeout.ms": "-", "key.converter": byteArrayConverter,
		"replication.policy.separator": "_",
	})
	wantValues(t, r.worker(mirror.FlowID{Source: "b", Target: "a"}), map[string]string{"client.id": "b->a", "group.id": "b-mm2", "offset.flush.interval.ms": "-"})
}

func TestReferencesAreResolvedAndKept(t *testing.T) {
	r := loaded(t, `
clusters = a, b
config.providers = fake
config.providers.fake.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
a.ssl.truststore.password = ${fake:SECRET}
b.ssl.truststore.password = ${fake:SECRET}
a->b.topics = ${fake:TOPICS}
`, map[string]string{"SECRET": "secret2", "TOPICS": "orders"})
	w, conn := r.worker(ab), r.connector(ab, mirror.SourceConnector)
	wantValues(t, w, map[string]string{"ssl.truststore.password": "secret2", "producer.ssl.truststore.password": "secret2", "config.providers": "fake"})
	for key, want := range map[string]string{"source.cluster.ssl.truststore.password": "${fake:SECRET}", "topics": "${fake:TOPICS}", "config.providers": "fake"} {
		if got := conn[key].Raw; got != want {
			t.Errorf("%s is shown as %q, want %q", key, got, want)
		}
	}
}

func TestPairsThatGetAWorker(t *testing.T) {
	names := func(n int) string { return strings.Join(strings.Split("a b c d e f", " ")[:n], ", ") }
	tests := []struct {
		name     string
		clusters int
		text     string
		want     int
	}{
		{"three clusters by default", 3, "", 6},
		{"heartbeats off", 3, "emit.heartbeats.enabled=false", 0},
		{"heartbeats off, in any case and with blanks", 3, "emit.heartbeats.enabled= False ", 0},
		{"four flows, heartbeats off", 3, "emit.heartbeats.enabled=false\na->b.enabled=true\nb->a.enabled=true\na->c.enabled=TRUE\nc->b.enabled=true ", 4},
		{"two flows of two", 2, "a->b.enabled=true\nb->a.enabled=true\nemit.heartbeats.enabled=false", 2},
		{"six clusters", 6, "emit.heartbeats.enabled=false\na->b.enabled=true\na->c.enabled=true\nc->d.enabled=true\nd->a.enabled=false\ne->f.enabled=false", 3},
		{"heartbeats of one flow", 4, "emit.heartbeats.enabled=false\na->b.enabled=true\nb->a.enabled=true\nc->d.emit.heartbeats.enabled=true", 3},
		{"heartbeats off for one pair", 2, "b->a.emit.heartbeats.enabled=false", 1},
		{"what is not a key does not count", 2, "emit.heartbeats=false", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := loaded(t, "clusters="+names(tt.clusters)+"\n"+tt.text, nil)
			var aliases []mirror.ClusterAlias
			for _, item := range r.raw["clusters"].list() {
				aliases = append(aliases, mirror.ClusterAlias(item))
			}
			if got := len(r.pairs(aliases)); got != tt.want {
				t.Errorf("%d pairs, want %d", got, tt.want)
			}
		})
	}
}

// TestSourceConsumerPrecedence sets one key at every place where it is read and
// takes the strongest away, step by step.
func TestSourceConsumerPrecedence(t *testing.T) {
	places := []string{"a->b.source.consumer.ssl.provider", "a.consumer.ssl.provider", "a->b.consumer.ssl.provider", "a.ssl.provider", "ssl.provider"}
	// A connection key of the cluster is copied into a.consumer, and so beats the flow's.
	order := []int{0, 1, 3, 2, 4}
	for from := range order {
		var b strings.Builder
		for _, i := range order[from:] {
			fmt.Fprintf(&b, "%s = %d\n", places[i], i)
		}
		conn := loaded(t, b.String(), nil).connector(ab, mirror.SourceConnector)
		want := fmt.Sprint(order[from])
		if from == 3 { // the top-level key is copied into a.consumer, too
			want = "4"
		}
		wantValues(t, connectorClient(conn, "source", "consumer"), map[string]string{"ssl.provider": want})
	}
}

func TestClientLayering(t *testing.T) {
	consumer := func(text string) view {
		return connectorClient(loaded(t, text, nil).connector(ab, mirror.SourceConnector), "source", "consumer")
	}
	wantValues(t, consumer(""), map[string]string{"auto.offset.reset": "earliest", "enable.auto.commit": "false"})
	wantValues(t, consumer("a->b.consumer.max.poll.interval.ms = 120000\na.consumer.enable.auto.commit = true"),
		map[string]string{"max.poll.interval.ms": "120000", "enable.auto.commit": "false"})
	for _, key := range []string{"a->b.consumer.auto.offset.reset", "a->b.source.consumer.auto.offset.reset", "a.consumer.auto.offset.reset"} {
		wantValues(t, consumer(key+" = latest"), map[string]string{"auto.offset.reset": "latest"})
	}
	wantValues(t, consumer("a->b.consumer.x = flow\na.consumer.x = cluster"), map[string]string{"x": "cluster"})
	wantValues(t, consumer("consumer.fetch.max.bytes = 1\na.fetch.max.bytes = 2"), map[string]string{"fetch.max.bytes": "-"})
	wantValues(t, consumer("consumer.poll.timeout.ms = 1"), map[string]string{"poll.timeout.ms": "1"}) // leaks, as in MirrorMaker
}

func TestRecordProducerReadsTargetAndOverrides(t *testing.T) {
	r := loaded(t, `
b.bootstrap.servers = servers-two
b.producer.linger.ms = 1
b.producer.batch.size = 2
a->b.producer.linger.ms = 3
a->b.producer.override.batch.size = 4
a.producer.compression.type = gzip
`, nil)
	wantValues(t, recordProducer(r.worker(ab), r.connector(ab, mirror.SourceConnector)), map[string]string{
		"bootstrap.servers": "servers-two", "linger.ms": "1", "batch.size": "4", "compression.type": "-",
	})
	wantValues(t, connectorClient(r.connector(ab, mirror.SourceConnector), "target", "producer"), map[string]string{"linger.ms": "1", "batch.size": "2"})
}

func TestExactlyOnceSupportAnswer(t *testing.T) {
	tests := []struct {
		consumer, source string
		want             bool
	}{
		{"", "", false},
		{"read_committed", "", true},
		{"", "read_committed", true},
		{"read_uncommitted", "", false},
		{"garbage", "read_committed", true},
		{"read_committed", "garbage", false},
		{"READ_COMMITTED", "", false},
	}
	for _, tt := range tests {
		text := "a->b.unrelated = 7\n"
		if tt.consumer != "" {
			text += "a->b.consumer.isolation.level = " + tt.consumer + "\n"
		}
		if tt.source != "" {
			text += "a->b.source.consumer.isolation.level = " + tt.source + "\n"
		}
		if got := readsCommitted(loaded(t, text, nil).connector(ab, mirror.SourceConnector)); got != tt.want {
			t.Errorf("consumer %q, source.consumer %q: %v", tt.consumer, tt.source, got)
		}
	}
}

func TestCheckpointConflicts(t *testing.T) {
	tests := []struct {
		text string
		want string
	}{
		{"a->b.enabled = true", ""},
		{"a->b.enabled = false\nemit.checkpoints.enabled = false", ""},
		{"a->b.enabled = true\nemit.checkpoints.enabled = false", "emit.checkpoints.enabled"},
		{"a->b.enabled = true\na->b.emit.offset-syncs.enabled = false", "emit.offset-syncs.enabled"},
	}
	for _, tt := range tests {
		if got := strings.Join(checkpointConflicts(loaded(t, tt.text, nil).connector(ab, mirror.CheckpointConnector)), " "); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestProviders(t *testing.T) {
	files := map[string]string{
		"/etc/mirror/s.properties": "user = alice\npassword = a\\=b\n", "/etc/mirror/d/token": "t0ken\n", "/other/s.properties": "user = eve",
		"/etc/mirror/latin1": "user = \xff",
	}
	declare := `
config.providers = file, dir, env
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.file.param.allowed.paths = /etc/mirror
config.providers.dir.class = org.apache.kafka.common.config.provider.DirectoryConfigProvider
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.env.param.allowlist.pattern = MM_.*
`
	src := Source{
		ReadFile: func(name string) ([]byte, error) {
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
		},
		ReadDir: func(name string) ([]string, error) {
			if name == "/etc/mirror/d" {
				return []string{"token"}, nil
			}
			return nil, os.ErrNotExist
		},
		LookupEnv: func(name string) (string, bool) { return "v-" + name, strings.HasSuffix(name, "SET") },
	}
	tests := []struct{ value, want, problem string }{
		{"${file:/etc/mirror/s.properties:user}", "alice", ""},
		{"u=${file:/etc/mirror/s.properties:user};p=${file:/etc/mirror/s.properties:password}", "u=alice;p=a=b", ""},
		{"${dir:/etc/mirror/d:token}", "t0ken\n", ""},
		{"${env:MM_SET}", "v-MM_SET", ""},
		{"$ConnectionString ${} ${x} $1", "$ConnectionString ${} ${x} $1", ""},
		{"${file:/etc/mirror/s.properties:nope}", "", "the file has no such key"},
		{"${file:/other/s.properties:user}", "", "outside allowed.paths"},
		{"${file:/etc/mirror/../../other/s.properties:user}", "", "outside allowed.paths"},
		{"${file:/etc/mirrored:user}", "", "outside allowed.paths"},
		{"${file:/etc/mirror/none:user}", "", "cannot be read"},
		{"${file:/etc/mirror/latin1:user}", "", "not UTF-8"},
		{"${dir:/etc/mirror/d:nope}", "", "no such file"},
		{"${dir:/nowhere:token}", "", "cannot be read"},
		{"${env:MM_OTHER}", "", "is not set"},
		{"${env:PATH_SET}", "", "not allowed by allowlist.pattern"},
		{"${env:/x:MM_SET}", "", "has no path"},
		{"${vault:secret/x:y}", "", `config provider "vault" is not declared`},
	}
	for _, tt := range tests {
		var r report
		entries, _ := ParseProperties("f", []byte(declare))
		raw := collect(entries, &r)
		got := newProviders(src, raw, &r).resolve(value{Raw: tt.value, Text: tt.value, Origin: Origin{File: "f", Line: 9, Key: "k"}}, &r)
		if tt.problem == "" {
			if got.Text != tt.want || len(r.problems) > 0 {
				t.Errorf("%s = %q with %v, want %q", tt.value, got.Text, r.problems, tt.want)
			}
			continue
		}
		if len(r.problems) != 1 || r.problems[0].Key != "k" || !strings.Contains(r.problems[0].Message, tt.problem) {
			t.Errorf("%s: %v, want %q at k", tt.value, r.problems, tt.problem)
		}
	}
}

func TestProviderDeclarations(t *testing.T) {
	tests := []struct{ text, want string }{
		{"config.providers = v\nconfig.providers.v.class = com.hashicorp.VaultConfigProvider", "com.hashicorp.VaultConfigProvider is not known"},
		{"config.providers = v", `config provider "v" has no class`},
		{"config.providers = f\nconfig.providers.f.class = FileConfigProvider\nconfig.providers.f.param.allowed.paths = rel", "not an absolute path"},
		{"config.providers = e\nconfig.providers.e.class = EnvVarConfigProvider\nconfig.providers.e.param.allowlist.pattern = (", "not a pattern"},
	}
	for _, tt := range tests {
		var r report
		entries, _ := ParseProperties("f", []byte(tt.text))
		newProviders(Source{}, collect(entries, &r), &r)
		if len(r.problems) != 1 || !strings.Contains(r.problems[0].Message, tt.want) {
			t.Errorf("%q: %v, want %q", tt.text, r.problems, tt.want)
		}
	}
}
