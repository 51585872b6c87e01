package cli

import (
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/verify"
)

// scriptProduce writes one record: produce NAME TOPIC PARTITION VALUE.
func scriptProduce(ts *testscript.TestScript, _ bool, args []string) {
	_, ctx := scriptClient(ts, args[0])
	partition, err := strconv.Atoi(args[2])
	ts.Check(err)
	cl, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv(args[0])), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	ts.Check(err)
	defer cl.Close()
	ts.Check(cl.ProduceSync(ctx, &kgo.Record{Topic: args[1], Partition: int32(partition), Value: []byte(args[3])}).FirstErr())
}

func TestVerifyProgressIsALine(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		p    verify.Progress
		want string
	}{
		{
			verify.Progress{Estimate: verify.Estimate{Partitions: 4, Bytes: 4 << 20}, Bytes: 1 << 20, Partitions: 1, Since: now.Add(-10 * time.Second)},
			"[=======                       ]  25%  1.0 MiB  102 KiB/s  30s left  1/4 partitions",
		},
		{
			verify.Progress{Estimate: verify.Estimate{Partitions: 4, Unsized: 8}, Bytes: 1 << 20, Partitions: 2, Different: 1, Waiting: "waiting for the target", Since: now.Add(-10 * time.Second)},
			"[===============               ]  50%  1.0 MiB  102 KiB/s  10s left  2/4 partitions, 1 different  waiting for the target",
		},
	} {
		if got := progressText(c.p, now); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
