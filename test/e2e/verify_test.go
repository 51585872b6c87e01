//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// proof is what a report of "heliograph verify" says, as far as the tests look.
type proof struct {
	Verdict string
	Flows   []struct{ Partitions []proofPartition }
}

type proofPartition struct {
	Topic       string
	Partition   int32
	Verdict     string
	Reason      string
	Method      string
	Equal       int64
	Untimed     int64 `json:"timestamps_not_compared"`
	Differences []struct {
		Kind   string
		Source int64 `json:"source_offset"`
		Target int64 `json:"target_offset"`
	}
}

// verify runs the verb, expects its exit code and returns its report.
func verify(tb testing.TB, code int, file string, args ...string) proof {
	tb.Helper()
	report := filepath.Join(tb.TempDir(), "proof.json")
	h := launch(tb, binary(tb), append([]string{"verify", file, "--report", report}, args...)...)
	h.exit(code)
	data, err := os.ReadFile(report)
	if err != nil {
		tb.Fatal(err)
	}
	var p proof
	if err := json.Unmarshal(data, &p); err != nil {
		tb.Fatal(err)
	}
	return p
}

// equal sums what has its equal in a topic, and fails unless all of it is equal.
func (p proof) equal(tb testing.TB, topic string) (n, untimed int64) {
	tb.Helper()
	for _, f := range p.Flows {
		for _, part := range f.Partitions {
			if part.Topic != topic {
				continue
			}
			if part.Verdict != "equal" {
				tb.Errorf("%s-%d: %+v", topic, part.Partition, part)
			}
			n, untimed = n+part.Equal, untimed+part.Untimed
		}
	}
	return n, untimed
}

// only is the report's only partition that is not equal.
func (p proof) only(tb testing.TB) proofPartition {
	tb.Helper()
	var found []proofPartition
	for _, f := range p.Flows {
		for _, part := range f.Partitions {
			if part.Verdict != "equal" {
				found = append(found, part)
			}
		}
	}
	if len(found) != 1 || len(found[0].Differences) != 1 {
		tb.Fatalf("want one partition with one difference: %+v", found)
	}
	return found[0]
}

// produceTransactions writes n transactions of ten records, every third aborted.
func produceTransactions(tb testing.TB, c *kafkatest.Cluster, topic string, n int) (committed int64) {
	tb.Helper()
	cl := c.Client(tb, kgo.TransactionalID(topic))
	for i := range n {
		var records []*kgo.Record
		for j := range 10 {
			records = append(records, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "transaction %d record %d", i, j)})
		}
		end := kgo.TryCommit
		if i%3 == 2 {
			end = kgo.TryAbort
		} else {
			committed += 10
		}
		if err := transact(tb.Context(), cl, end, records...); err != nil {
			tb.Fatal(err)
		}
	}
	return committed
}

// Copies of every kind of topic are proved equal, live and at rest, also after
// retention has taken the beginnings of either side; and one record too many is
// found where it lies.
func TestVerify(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	plain, txn, compacted := f.topic("test-topic-plain"), f.topic("test-topic-txn"), f.topic("test-topic-compacted")
	stamped, stamping := f.topic("test-topic-stamped"), f.topic("test-topic-stamping")
	f.primary.CreateTopic(t, plain, 3, nil)
	f.primary.CreateTopic(t, txn, 1, nil)
	f.primary.CreateTopic(t, compacted, 1, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "1000",
	})
	f.primary.CreateTopic(t, stamped, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	f.primary.CreateTopic(t, stamping, 1, nil)
	f.backup.CreateTopic(t, f.remote(stamping), 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	f.produce(f.primary, plain, 3, 3000)
	f.produce(f.primary, stamped, 1, 100)
	f.produce(f.primary, stamping, 1, 100)
	for range 5 {
		f.produce(f.primary, compacted, 1, 50)
	}
	committed := produceTransactions(t, f.primary, txn, 12)
	file := f.oneWay(f.from+".consumer.isolation.level = read_committed", "emit.heartbeats.enabled = false",
		`config.properties.exclude = message\\.timestamp\\.type`)
	h := start(t, file)
	f.backup.AwaitRecords(within(t, patience), t, f.remote(plain), 3000)

	// Live, with traffic.
	f.produce(f.primary, plain, 3, 300)
	p := verify(t, 0, file, "--live")
	if n, _ := p.equal(t, plain); n < 3300 {
		t.Errorf("%d records of %s are equal, want 3300", n, plain)
	}
	h.stop()

	p = verify(t, 0, file, "--at-rest")
	for topic, want := range map[string]int64{plain: 3300, txn: committed, compacted: 50, stamped: 100, stamping: 100} {
		n, untimed := p.equal(t, topic)
		if n != want {
			t.Errorf("%d of %s are equal, want %d", n, topic, want)
		}
		if topic != stamping && untimed != 0 || topic == stamping && untimed != want {
			t.Errorf("%d times of %s were not compared", untimed, topic)
		}
	}

	// Retention on both sides.
	deleteRecords(t, f.primary, plain, map[int32]int64{0: 100})
	deleteRecords(t, f.backup, f.remote(plain), map[int32]int64{0: 333})
	deleteRecords(t, f.primary, txn, map[int32]int64{0: 25})
	deleteRecords(t, f.backup, f.remote(txn), map[int32]int64{0: 8})
	p = verify(t, 0, file, "--at-rest", "--topic", plain, "--topic", txn)
	if n, _ := p.equal(t, plain); n != 3300-333 {
		t.Errorf("%d records of %s are equal, want %d", n, plain, 3300-333)
	}

	// Somebody writes to the copy.
	f.backup.Produce(t, []*kgo.Record{{Topic: f.remote(plain), Partition: 1, Value: []byte("intruder")}})
	bad := verify(t, 3, file, "--at-rest", "--topic", plain).only(t)
	if d := bad.Differences[0]; bad.Partition != 1 || d.Kind != "foreign" && d.Kind != "extra" || d.Target != 1100 {
		t.Errorf("%+v", bad)
	}
}

// A copy that lacks a record in its middle is found out, record for record.
func TestVerifyFindsAMissingRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic("test-topic-hand")
	f.primary.CreateTopic(t, topic, 1, nil)
	f.backup.CreateTopic(t, f.remote(topic), 1, nil)
	f.produce(f.primary, topic, 1, 500)
	var byHand []*kgo.Record
	for _, r := range f.primary.ReadTopic(t, topic)[0] {
		if r.Offset != 271 {
			byHand = append(byHand, handRecord(f.remote(topic), r))
		}
	}
	f.backup.Produce(t, byHand)
	file := f.oneWay("emit.heartbeats.enabled = false")
	bad := verify(t, 3, file, "--at-rest").only(t)
	if d := bad.Differences[0]; d.Kind != "missing" || d.Source != 271 || d.Target != 271 || bad.Equal != 499 {
		t.Errorf("%+v", bad)
	}
	text := launch(t, binary(t), "verify", file, "--at-rest", "--show-records")
	text.exit(3)
	if log := text.Log(); !strings.Contains(log, "source record at offset 271") || !strings.Contains(log, "message-271") {
		t.Errorf("the record is not shown:\n%s", log)
	}
}

// handRecord is a read record as a producer writes it to another topic.
func handRecord(topic string, r kafka.Record) *kgo.Record {
	out := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return out
}
