//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// migrations are the ways there and back that every run takes; HELIOGRAPH_LONG
// takes all.
var migrations = []struct {
	name     string
	version  string // of Java MirrorMaker
	once     bool   // exactly-once
	kill     bool   // both are killed rather than stopped
	flush    string // offset.flush.interval.ms; MirrorMaker's own is a minute
	always   bool
	identity bool
}{
	{name: "3.9.2-default-killed", version: kafkatest.ReleaseSource, kill: true, flush: "60000", always: true},
	{name: "4.3.1-default-stopped", version: kafkatest.ReleaseTarget, flush: "60000", identity: true, always: true},
	{name: "4.3.1-exactly-once-killed", version: kafkatest.ReleaseTarget, once: true, kill: true, flush: "60000", always: true},
	{name: "3.9.2-exactly-once-stopped", version: kafkatest.ReleaseSource, once: true, flush: "60000"},
	{name: "4.3.1-default-killed-with-positions", version: kafkatest.ReleaseTarget, kill: true, flush: "3000"},
	{name: "3.9.2-exactly-once-killed", version: kafkatest.ReleaseSource, once: true, kill: true, flush: "60000"},
}

// From Java MirrorMaker to heliograph and back, under load: not one record twice,
// not one missing, groups go on, no name changes. While the one is alive the
// other refuses.
func TestMigration(t *testing.T) {
	t.Parallel()
	for _, m := range migrations {
		if !m.always && !long() {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			a, b := kafkatest.Pair(t)
			lines := []string{
				oneBroker,
				"sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.checkpoints.interval.seconds = 1",
				"refresh.groups.interval.seconds = 1",
			}
			if m.identity {
				lines = append(lines, identityPolicy)
			}
			tr := newTrial(t, a, b, lines...)
			more := []string{"groups = " + tr.alias + "-.*", tr.to + ".offset.flush.interval.ms = " + m.flush}
			if m.once {
				more = append(more, tr.to+".exactly.once.source.support = enabled", tr.alias+".consumer.isolation.level = read_committed")
			}
			tr.append(more...)
			tr.committed = m.once
			end := func(p *kafkatest.Process) {
				t.Helper()
				how := (*kafkatest.Process).Stop
				if m.kill {
					how = (*kafkatest.Process).Kill
				}
				if err := how(p); err != nil {
					t.Fatal(err)
				}
			}
			topic := tr.topic("orders")
			a.CreateTopic(t, topic, 4, nil)
			l := startLoad(t, a, topic, 4, 2000, 0)

			java := tr.java(m.version)
			tr.arrived(l, 2000)
			refused := tr.verb(t, 3, "takeover", tr.file, "--wait", "1s")
			if !strings.Contains(refused, "Java MirrorMaker is alive in group "+tr.alias+"-mm2") {
				t.Errorf("takeover beside MirrorMaker says %q", refused)
			}
			tr.moves(l)
			end(java)

			h := tr.takeover()
			h.awaitLog("flow starts")
			at := make([]int64, len(l.sent))
			for p := range at {
				at[p] = l.sent[p].Load()
			}
			tr.moves(l)
			tr.followed(l, tr.alias+"-group", at)
			end(h.Process)
			if m.kill {
				tr.verb(t, 0, "handback", tr.file)
			}

			java = tr.java(m.version)
			tr.moves(l)
			tr.equal(l)
			end(java)
		})
	}
}

// java starts Java MirrorMaker with the trial's file.
func (tr *trial) java(version string) *kafkatest.Process {
	tr.tb.Helper()
	dir := tr.tb.TempDir()
	p, err := kafkatest.MirrorMaker(tr.tb.Context(), kafkatest.MirrorMakerOptions{Version: version, File: tr.file, Dir: dir})
	if err != nil {
		tr.tb.Fatal(err)
	}
	tr.tb.Cleanup(func() {
		if tr.tb.Failed() {
			tr.tb.Log(p.Tail(60))
		}
		if err := p.Kill(); err != nil {
			tr.tb.Error(err)
		}
	})
	return p
}

// verb runs a verb to its end, expects its code, and returns all it said.
func (tr *trial) verb(tb testing.TB, code int, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(within(tb, patience), binary(tb), args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		tb.Fatalf("%v: %v, want code %d\n%s", args, err, code, out)
	}
	return string(out)
}

// followed commits a group on the source at records that were copied lately, and
// waits until the target's group stands at the very same records. Of its record a
// load's number is its offset on the source.
func (tr *trial) followed(l *load, group string, at []int64) {
	tr.tb.Helper()
	tr.source.CommitGroup(tr.tb, group, l.topic, at...)
	tr.standsAt(group, l.topic, at)
}

// standsAt waits until a group's position on the target in every partition of a copy
// is the record of that number.
func (tr *trial) standsAt(group, topic string, at []int64) {
	tr.tb.Helper()
	remote := tr.remote(topic)
	await(tr.tb, "group "+group+" stands on the target at the same records", func() string {
		offsets := groupOffsets(tr.tb, tr.target, group, remote)
		for p, want := range at {
			there, ok := offsets[int32(p)]
			if !ok {
				return fmt.Sprintf("partition %d has no offset", p)
			}
			if got := tr.numberAt(remote, int32(p), there); got != want {
				return fmt.Sprintf("partition %d stands at record %d, want %d", p, got, want)
			}
		}
		return ""
	})
}

// numberAt is the number of the record that a reader meets first at an offset.
func (tr *trial) numberAt(topic string, partition int32, offset int64) int64 {
	tr.tb.Helper()
	cl, err := tr.target.Open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(offset)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		tr.tb.Fatal(err)
	}
	defer cl.Close()
	ctx := within(tr.tb, patience)
	for ctx.Err() == nil {
		for _, r := range cl.PollFetches(ctx).Records() {
			return number(r.Value)
		}
	}
	tr.tb.Fatalf("%s-%d: no record at offset %d", topic, partition, offset)
	return -1
}

// MirrorMaker as a connector of a Connect cluster: takeover refuses while it runs,
// and once it is stopped goes on at the very next record, by its offset syncs.
func TestTakeoverFromAConnectCluster(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "emit.heartbeats.enabled = false")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 2, nil)
	l := startLoad(t, a, topic, 2, 500, 0)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rest := "http://" + lis.Addr().String()
	_ = lis.Close()
	bytesOnly := "org.apache.kafka.connect.converters.ByteArrayConverter"
	worker, err := kafkatest.ConnectWorker(t.Context(), kafkatest.MirrorMakerOptions{
		Version: kafkatest.ReleaseTarget, Name: "connect", Dir: t.TempDir(), File: writeFile(t,
			"bootstrap.servers = "+b.Bootstrap(), "group.id = "+tr.alias+"-workers", "listeners = "+rest,
			"config.storage.topic = "+tr.alias+"-connect-configs", "config.storage.replication.factor = 1",
			"offset.storage.topic = "+tr.alias+"-connect-offsets", "offset.storage.replication.factor = 1", "offset.storage.partitions = 1",
			"status.storage.topic = "+tr.alias+"-connect-status", "status.storage.replication.factor = 1", "status.storage.partitions = 1",
			"key.converter = "+bytesOnly, "value.converter = "+bytesOnly),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(worker.Tail(60))
		}
		if err := worker.Kill(); err != nil {
			t.Error(err)
		}
	})
	var status struct{ Tasks []any }
	call := func(method, path string, body any) string {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, rest+path, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			return resp.Status
		}
		if method == http.MethodGet {
			err = json.NewDecoder(resp.Body).Decode(&status)
			if err != nil || len(status.Tasks) > 0 {
				return fmt.Sprintf("%d tasks (%v)", len(status.Tasks), err)
			}
		}
		return ""
	}
	await(t, "the connector is made", func() string {
		return call(http.MethodPut, "/connectors/copies-orders/config", map[string]string{
			"connector.class":      "org.apache.kafka.connect.mirror.MirrorSourceConnector",
			"source.cluster.alias": tr.alias, "target.cluster.alias": tr.to,
			"source.cluster.bootstrap.servers": a.Bootstrap(), "target.cluster.bootstrap.servers": b.Bootstrap(),
			"topics": tr.alias + "-.*", "replication.factor": "1", "offset-syncs.topic.replication.factor": "1",
			"key.converter": bytesOnly, "value.converter": bytesOnly, "sync.topic.acls.enabled": "false",
		})
	})
	tr.arrived(l, 1000)
	refused := tr.verb(t, 3, "takeover", tr.file, "--wait", "1s")
	for _, want := range []string{"Java MirrorMaker's connector copies-orders of a Connect cluster", "is alive in group " + tr.alias + "-workers on cluster " + tr.to} {
		if !strings.Contains(refused, want) {
			t.Errorf("takeover says nothing of %q: %s", want, refused)
		}
	}
	await(t, "the connector is stopped", func() string { return call(http.MethodPut, "/connectors/copies-orders/stop", nil) })
	await(t, "its tasks have ended", func() string { return call(http.MethodGet, "/connectors/copies-orders/status", nil) })
	h := tr.takeover()
	h.awaitLog("flow starts")
	tr.moves(l)
	l.stop()
	tr.equal(l)
	h.stop()
}

// Beside a running MirrorMaker: a canary copies into names of its own, verify
// compares them with MirrorMaker's copies, and nothing of MirrorMaker's is touched.
func TestCanaryBesideMirrorMaker(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, oneBroker,
		"emit.heartbeats.enabled = false")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	l := startLoad(t, a, topic, 4, 1000, 0)
	java := tr.java(kafkatest.ReleaseTarget)
	tr.arrived(l, 100)
	h := start(t, tr.file, "--canary")
	awaitTopic(t, b, "mm2-canary."+tr.remote(topic)+".internal", 4)
	tr.moves(l)
	l.stop()
	said := tr.verb(t, 0, "verify", tr.file, "--canary")
	if !strings.Contains(said, "equal") {
		t.Errorf("verify says %q", said)
	}
	h.stop()
	if !java.Running() {
		t.Error("MirrorMaker has ended")
	}
	for _, name := range a.TopicNames(t) {
		if strings.Contains(name, "canary."+tr.alias) {
			t.Errorf("the canary made %s on the source", name)
		}
	}
	tr.equal(l)
}
