//go:build e2e && long

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// One partition over a round trip of 150 ms, with default settings: the windows
// find out by themselves how much has to be on its way. The broker's socket buffers
// are the kernel's to size, as docs/operations.md asks for. The delay is a proxy's, so
// the buffers themselves are not what is measured here.
func TestOnePartitionOverALongLink(t *testing.T) {
	const (
		trip    = 150 * time.Millisecond
		records = 1_500_000
		size    = 1024
		least   = 50.0 // MB of payload a second
	)
	own := map[string]string{"socket.send.buffer.bytes": "-1", "socket.receive.buffer.bytes": "-1"}
	a := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "far-A", Version: kafkatest.ReleaseSource, Proxied: true, Properties: own})
	b := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "near-B", Version: kafkatest.ReleaseTarget, Properties: own})
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 1, nil)
	fillPartition(t, a, topic, records, size)
	a.Broker(1).Proxy().Delay(trip / 2)
	p := tr.start()
	acked := func() int { return int(p.metric("heliograph_partition_records_total", fmt.Sprintf("topic=%q", topic))) }
	await(t, "the first record arrives", func() string { return lacks(1, acked()) })
	began, from := time.Now(), acked()
	await(t, "all records arrive", func() string { return lacks(records, acked()) })
	took := time.Since(began)
	got := float64(records-from) * size / 1e6 / took.Seconds()
	t.Logf("%d MB in %v: %.0f MB/s, %v of processor time, %d MiB at the peak", records*size/1_000_000, took.Round(time.Millisecond), got, p.CPU(), p.PeakMemory()>>20)
	if got < least {
		t.Errorf("%.0f MB/s over a round trip of %v, want %v", got, trip, least)
	}
	p.stop()
}

// fillPartition writes records of a size to a topic's only partition, in batches of 64 KiB.
func fillPartition(tb testing.TB, c *kafkatest.Cluster, topic string, records, size int) {
	tb.Helper()
	cl := c.Client(tb, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(64<<10),
		kgo.ProducerLinger(100*time.Millisecond), kgo.MaxBufferedRecords(50_000))
	value := make([]byte, size)
	for range records {
		cl.Produce(tb.Context(), &kgo.Record{Topic: topic, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				tb.Errorf("fill %s: %v", topic, err)
			}
		})
	}
	if err := cl.Flush(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}
