package cluster

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"heliograph/internal/kafka"
)

func TestBatchesGoInAndComeOutUnchanged(t *testing.T) {
	_, c := fake(t, nil, kfake.SeedTopics(3, "orders", "bills"))
	for _, topic := range []string{"orders", "bills"} {
		for n := range int32(3) {
			tp := kafka.TopicPartition{Topic: topic, Partition: n}
			b := batch("one", "two", "three")
			produceTo(t, c, tp, b)
			node, id := leaderOf(t, c, tp)
			f := dialFetch(t, c, node)
			f.Want(wantFrom(tp, id, 0))
			got, p := fetchUntil(t, f, tp)
			if p.Code != kafka.CodeNone || p.HighWatermark != 3 {
				t.Fatalf("%s: code %s, high watermark %d", tp, p.Code, p.HighWatermark)
			}
			// All but the base offset and the leader epoch, which the broker sets.
			if !bytes.Equal(p.Records[16:], b[16:]) {
				t.Errorf("%s: the batch came back changed", tp)
			}
			got.Buffer.Release()
			f.Close()
		}
	}
}
