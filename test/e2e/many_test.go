//go:build e2e && long

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ten thousand partitions to which nothing is written, on embedded clusters: what they
// cost in memory and processor time, what a scrape of their series costs, and how a
// busy partition does among them. docs/benchmarks.md has what it said.
func TestTenThousandIdlePartitions(t *testing.T) {
	const (
		topics, parts = 100, 100
		lasts         = 30 * time.Second
		mostCPU       = 0.03 // of a core
		mostMemory    = 300 << 20
		scrapes       = 5
		mostScrape    = 500 * time.Millisecond
	)
	names := []string{}
	for i := range topics {
		names = append(names, fmt.Sprintf("idle-%d", i))
	}
	source := fakeCluster(t, kfake.ClusterID("source"), kfake.SeedTopics(parts, names...), kfake.SeedTopics(1, "busy", "busy-alone"))
	target := fakeCluster(t, kfake.ClusterID("target"))
	file := func(alias, topics string) string {
		return writeFile(t, "clusters = "+alias+", B", alias+".bootstrap.servers = "+strings.Join(source.ListenAddrs(), ","),
			"B.bootstrap.servers = "+strings.Join(target.ListenAddrs(), ","), alias+"->B.enabled = true", alias+"->B.topics = "+topics,
			"B->"+alias+".emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false", "replication.factor = 1", "heartbeats.topic.replication.factor = 1",
			"checkpoints.topic.replication.factor = 1", "offset-syncs.topic.replication.factor = 1", "offset.storage.replication.factor = 1")
	}
	const flow = `source="A"`
	many := start(t, file("A", "idle-.*,busy"))
	await(t, "all partitions run", func() string {
		return lacks(topics*parts+1, int(many.metric("heliograph_flow_partitions", flow, `state="running"`)))
	})
	time.Sleep(5 * time.Second) // until the noise of the start is over
	before := many.CPU()
	time.Sleep(lasts)
	used := (many.CPU() - before).Seconds() / lasts.Seconds()
	t.Logf("%.1f %% of one core, %d MiB at the peak", 100*used, many.PeakMemory()>>20)
	if used > mostCPU {
		t.Errorf("%.1f %% of one core", 100*used)
	}
	before = many.CPU()
	size := 0
	for range scrapes {
		status, body := many.get("/metrics")
		if size = len(body); status != http.StatusOK {
			t.Fatalf("/metrics: %d", status)
		}
	}
	each := (many.CPU() - before) / scrapes
	t.Logf("a scrape takes %v of processor time for %.1f MB", each.Round(time.Millisecond), float64(size)/1e6)
	if each > mostScrape {
		t.Errorf("a scrape takes %v of processor time", each)
	}
	if peak := many.PeakMemory(); peak > mostMemory {
		t.Errorf("%d MiB at the peak", peak>>20)
	} else {
		t.Logf("%d MiB at the peak after %d scrapes", peak>>20, scrapes+1)
	}

	// In processor time of the program: the embedded source itself looks at all
	// partitions at every fetch.
	alone := start(t, file("C", "busy-alone"))
	first := copies(t, source, target, alone, "C", "busy-alone")
	second := copies(t, source, target, many, "A", "busy")
	t.Logf("100 MB of a busy partition take %v of processor time alone and %v among the idle ones", first, second)
	if second > 2*first+time.Second {
		t.Errorf("100 MB of a busy partition take %v of processor time alone and %v among the idle ones", first, second)
	}
}

// copies measures the processor time of a program for a burst of records.
func copies(t *testing.T, source, target *kfake.Cluster, h *heliograph, alias, topic string) time.Duration {
	t.Helper()
	const records, size = 100_000, 1024
	cl, err := kgo.NewClient(kgo.SeedBrokers(target.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	has := func(want int64) string {
		ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), alias+"."+topic)
		if err != nil {
			return err.Error()
		}
		o, _ := ends.Lookup(alias+"."+topic, 0)
		return lacks(int(want), int(o.Offset))
	}
	fill(t, source, topic, 1, size)
	await(t, topic+" is copied", func() string { return has(1) })
	before := h.CPU()
	fill(t, source, topic, records, size)
	await(t, topic+" is copied whole", func() string { return has(1 + records) })
	return h.CPU() - before
}

func fill(t *testing.T, source *kfake.Cluster, topic string, records, size int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(source.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(64<<10), kgo.ProducerLinger(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for range records {
		cl.Produce(t.Context(), &kgo.Record{Value: make([]byte, size)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func fakeCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	k, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}
