//go:build e2e

package e2e

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

var update = flag.Bool("update", false, "write the bytes captured from Java MirrorMaker 2 to the goldens")

// javaGoldens is where package mirror keeps the captured bytes that its own tests read.
const javaGoldens = "../../internal/mirror/testdata/java"

// goldenFile is MirrorMaker's configuration for the capture. A sync for every
// record and a checkpoint a second make the last state exact.
const goldenFile = `clusters = A, B
A.bootstrap.servers = %s
B.bootstrap.servers = %s
A->B.enabled = true
B->A.enabled = false
topics = orders, dotted\\.orders-v1
groups = .*
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
offset.lag.max = 0
emit.heartbeats.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
refresh.topics.interval.seconds = 1
refresh.groups.interval.seconds = 1
A.offset.flush.interval.ms = 1000
B.offset.flush.interval.ms = 1000
dedicated.mode.enable.internal.rest = false
`

// goldenGroups have names that JSON must escape and names beyond ASCII. (White
// space at an end is lost in MirrorMaker's own list of groups.)
var goldenGroups = []string{"billing", "we\"ird\\gr\töup"}

// goldenTopics are read whole; the letter is the cluster they lie on.
var goldenTopics = []struct{ cluster, topic string }{
	{"A", "heartbeats"},
	{"A", "mm2-offset-syncs.B.internal"},
	{"A", "mm2-offsets.B.internal"},
	{"B", "heartbeats"},
	{"B", "A.checkpoints.internal"},
	{"B", "mm2-offsets.A.internal"},
}

// goldenLines is how many keys the topics above hold in the end: a heartbeat on
// each side with its position, 4 partitions' syncs and positions, a checkpoint
// with its position for each group and partition it has committed.
const goldenLines = 1 + 4 + 1 + 1 + 8 + (1 + 4 + 8)

// TestJavaMirrorMakerGoldens runs Java MirrorMaker 2 and compares the last record
// of every key in its bookkeeping topics with the goldens that package mirror is
// tested against. Times are the only bytes that may differ.
func TestJavaMirrorMakerGoldens(t *testing.T) {
	for _, version := range []string{kafkatest.ReleaseSource, kafkatest.ReleaseTarget} {
		t.Run(version, func(t *testing.T) {
			got := captureGolden(t, version)
			path := filepath.Join(javaGoldens, version+".txt")
			if *update {
				if err := os.MkdirAll(javaGoldens, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSpace(string(raw)), "\n")
			if !slices.Equal(maskTimes(got), maskTimes(want)) {
				t.Errorf("captured\n%s\ngolden %s\n%s", strings.Join(got, "\n"), path, raw)
			}
		})
	}
}

// captureGolden lets MirrorMaker of a release replicate between fresh clusters
// until its bookkeeping stands still, and returns that in the goldens' form.
func captureGolden(t *testing.T, version string) []string {
	a := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "A", Version: kafkatest.ReleaseSource})
	b := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "B", Version: kafkatest.ReleaseTarget})
	a.CreateTopic(t, "orders", 3, nil)
	a.CreateTopic(t, "dotted.orders-v1", 1, nil)
	a.Produce(t, append(kafkatest.Messages("orders", 3, 10), kafkatest.Messages("dotted.orders-v1", 1, 5)...))

	dir := t.TempDir()
	file := filepath.Join(dir, "mm2.properties")
	if err := os.WriteFile(file, fmt.Appendf(nil, goldenFile, a.Bootstrap(), b.Bootstrap()), 0o600); err != nil {
		t.Fatal(err)
	}
	mm, err := kafkatest.MirrorMaker(t.Context(), kafkatest.MirrorMakerOptions{Version: version, File: file, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Log(mm.Tail(60))
		}
		if err := mm.Kill(); err != nil {
			t.Error(err)
		}
	}()
	clusters := map[string]*kafkatest.Cluster{"A": a, "B": b}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b.AwaitRecords(ctx, t, "A.orders", 30)
	b.AwaitRecords(ctx, t, "A.dotted.orders-v1", 5)
	// More records after the topics are mirrored give every partition a sync of
	// this life of the tasks; the groups stand at the end.
	a.Produce(t, append(kafkatest.Messages("orders", 3, 10), kafkatest.Messages("dotted.orders-v1", 1, 5)...))
	b.AwaitRecords(ctx, t, "A.orders", 60)
	for _, group := range goldenGroups {
		a.CommitGroup(t, group, "orders", 20, 20, 20)
		a.CommitGroup(t, group, "dotted.orders-v1", 10)
	}
	return awaitStill(ctx, t, clusters, version)
}

// awaitStill reads the bookkeeping until all keys are there and three readings
// in a row, over seconds in which everything is written again, agree.
func awaitStill(ctx context.Context, t *testing.T, clusters map[string]*kafkatest.Cluster, version string) []string {
	poll := time.NewTicker(1500 * time.Millisecond)
	defer poll.Stop()
	var last []string
	for same := 0; ; {
		lines, records := dumpGolden(ctx, clusters, version)
		if ctx.Err() == nil && records == goldenLines && slices.Equal(maskTimes(lines), maskTimes(last)) {
			same++
		} else {
			same = 0
		}
		if same == 2 {
			return lines
		}
		if ctx.Err() == nil {
			last = lines
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not %d keys that stay:\n%s", goldenLines, strings.Join(last, "\n"))
		case <-poll.C:
		}
	}
}

// dumpGolden is the last record of each key, one a line: cluster, topic,
// partition, key and value in hex, separated by spaces.
func dumpGolden(ctx context.Context, clusters map[string]*kafkatest.Cluster, version string) (lines []string, records int) {
	lines = []string{
		"# Last record per key that Java MirrorMaker 2 " + version + " wrote, running A->B.",
		"# cluster topic partition key value; key and value in hex.",
	}
	for _, from := range goldenTopics {
		read, err := clusters[from.cluster].Read(ctx, from.topic, kafka.ReadCommitted)
		if err != nil {
			// Not created yet.
			continue
		}
		var some []string
		for partition, list := range read {
			last := map[string][]byte{}
			for _, r := range list {
				last[string(r.Key)] = r.Value
			}
			for key, value := range last {
				if aboutHeartbeats(from.topic, key) {
					continue
				}
				line := fmt.Sprintf("%s %s %d %x %s", from.cluster, from.topic, partition, key, hex.EncodeToString(value))
				if strings.HasPrefix(from.topic, "mm2-offsets.") {
					line = fmt.Sprintf("# %s %s\n%s", key, value, line)
				}
				some = append(some, line)
			}
		}
		slices.Sort(some)
		records += len(some)
		for _, s := range some {
			lines = append(lines, strings.Split(s, "\n")...)
		}
	}
	return lines, records
}

// aboutHeartbeats finds the syncs and positions of the replicated heartbeats topic,
// which never stand still.
func aboutHeartbeats(topic, key string) bool {
	return strings.Contains(key, `"topic":"heartbeats"`) ||
		strings.HasPrefix(topic, "mm2-offset-syncs.") && strings.Contains(key, "heartbeats")
}

// maskTimes hides the times in heartbeats, which end each value.
func maskTimes(lines []string) []string {
	out := slices.Clone(lines)
	for i, line := range out {
		if f := strings.Fields(line); len(f) == 5 && f[1] == "heartbeats" {
			const timeDigits = 16
			f[4] = f[4][:len(f[4])-timeDigits] + strings.Repeat("t", timeDigits)
			out[i] = strings.Join(f, " ")
		}
	}
	return out
}
