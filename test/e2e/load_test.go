//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// The tests of faults share three things: a trial is one flow with a file and
// processes that come and go; a load writes numbered records to its source; a
// tally reads the target and counts them. Neither load nor tally uses any code
// of the program.

// long reports whether longer runs were asked for.
func long() bool { return os.Getenv("HELIOGRAPH_LONG") != "" }

// seeded is a random source whose seed is logged. HELIOGRAPH_SEED replays one.
func seeded(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HELIOGRAPH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("HELIOGRAPH_SEED: %v", err)
		}
	}
	tb.Logf("HELIOGRAPH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// trial is one flow between two clusters. Its alias carries the test's name,
// so that flows of several tests share brokers and nothing else.
type trial struct {
	tb             testing.TB
	source, target *kafkatest.Cluster
	alias, to      string // of the source and the target
	file           string
	identity       bool
	committed      bool // the target is read as read_committed readers see it
}

const identityPolicy = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

// oneBroker has Java MirrorMaker make topics that one broker can hold.
const oneBroker = "replication.factor = 1\nconfig.storage.replication.factor = 1\nstatus.storage.replication.factor = 1"

// newTrial writes a file for a flow of all topics that start with the test's
// name. More lines are added at the end and win. Heartbeats of other tests on the
// same clusters are not copied: they would go to and fro under ever longer names.
func newTrial(tb testing.TB, source, target *kafkatest.Cluster, lines ...string) *trial {
	tb.Helper()
	tr := &trial{tb: tb, source: source, target: target, alias: kafkatest.Name(tb, ""), to: kafkatest.Name(tb, "to")}
	text := []string{
		"clusters = " + tr.alias + ", " + tr.to,
		tr.alias + ".bootstrap.servers = " + source.Bootstrap(),
		tr.to + ".bootstrap.servers = " + target.Bootstrap(),
		tr.flow() + ".enabled = true",
		tr.to + "->" + tr.alias + ".emit.heartbeats.enabled = false",
		"topics = " + tr.alias + "-.*",
		"heartbeats.replication.enabled = false",
		"refresh.topics.interval.seconds = 1",
		"replication.factor = -1",
		"offset-syncs.topic.replication.factor = -1",
		"checkpoints.topic.replication.factor = -1",
		"heartbeats.topic.replication.factor = -1",
		"offset.storage.replication.factor = -1",
	}
	for _, line := range lines {
		tr.identity = tr.identity || line == identityPolicy
	}
	tr.file = writeFile(tb, append(text, lines...)...)
	return tr
}

// append adds lines to the trial's file.
func (tr *trial) append(lines ...string) {
	tr.tb.Helper()
	f, err := os.OpenFile(tr.file, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		tr.tb.Fatal(err)
	}
}

// start runs the program from the trial's file.
func (tr *trial) start() *heliograph { tr.tb.Helper(); return start(tr.tb, tr.file) }

// takeover takes the trial's flow over from Java MirrorMaker.
func (tr *trial) takeover() *heliograph {
	tr.tb.Helper()
	return launch(tr.tb, binary(tr.tb), "takeover", tr.file, "--admin-address", "127.0.0.1:0")
}

// flow is the flow's name.
func (tr *trial) flow() string { return tr.alias + "->" + tr.to }

// topic is a source topic of the trial.
func (tr *trial) topic(suffix string) string { return tr.alias + "-" + suffix }

// remote is a source topic's name on the target.
func (tr *trial) remote(topic string) string {
	if tr.identity {
		return topic
	}
	return tr.alias + "." + topic
}

// positions is the topic on the target that holds the flow's positions.
func (tr *trial) positions() string { return "mm2-offsets." + tr.alias + ".internal" }

// equal waits until the target holds the load's records, each once and in order.
func (tr *trial) equal(l *load) {
	tr.tb.Helper()
	t := &tally{cluster: tr.target, topic: tr.remote(l.topic), sent: l.counts(), committed: tr.committed}
	await(tr.tb, "the target has what was sent", func() string { return t.read(tr.tb) })
	tr.tb.Logf("%s: %d records over %d partitions, lost 0, doubled 0", t.topic, t.total(), len(t.sent))
}

// load writes numbered records to a topic, evenly over its partitions.
type load struct {
	topic string
	ages  time.Duration // how far back the records' times lie
	sent  []atomic.Int64
	// failed is set with the first record that could not be written.
	failed atomic.Bool
	stop   func() // ends the writing and waits until all is acknowledged
}

// startLoad writes so many records a second until stop is called.
func startLoad(tb testing.TB, c *kafkatest.Cluster, topic string, partitions int, perSecond int, back time.Duration) *load {
	tb.Helper()
	cl, err := c.Open(kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(200_000))
	if err != nil {
		tb.Fatal(err)
	}
	l := &load{topic: topic, ages: back, sent: make([]atomic.Int64, partitions)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { l.run(ctx, tb, cl, perSecond) })
	l.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		flushing, done := context.WithTimeout(context.WithoutCancel(tb.Context()), patience)
		defer done()
		if err := cl.Flush(flushing); err != nil {
			tb.Errorf("load on %s: %v", topic, err)
		}
		cl.Close()
	})
	tb.Cleanup(l.stop)
	return l
}

func (l *load) run(ctx context.Context, tb testing.TB, cl *kgo.Client, perSecond int) {
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	began := time.Now()
	for written := 0; ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for due := int(now.Sub(began).Seconds() * float64(perSecond)); written < due; written++ {
				l.write(tb, cl, written%len(l.sent))
			}
		}
	}
}

func (l *load) write(tb testing.TB, cl *kgo.Client, partition int) {
	n := l.sent[partition].Add(1) - 1
	value := make([]byte, 100)
	putNumber(value, n)
	r := &kgo.Record{Topic: l.topic, Partition: int32(partition), Value: value, Timestamp: time.Now().Add(-l.ages)}
	cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		if err != nil && l.failed.CompareAndSwap(false, true) {
			tb.Errorf("load on %s-%d: record %d: %v", l.topic, partition, n, err)
		}
	})
}

// A record's number is written in front, in digits.
const digits = 12

func putNumber(value []byte, n int64) { copy(value, fmt.Appendf(nil, "%0*d", digits, n)) }

func number(value []byte) int64 {
	n, err := strconv.ParseInt(string(value[:min(digits, len(value))]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// counts stops the load and tells how many records each partition was sent.
func (l *load) counts() []int64 {
	l.stop()
	counts := make([]int64, len(l.sent))
	for p := range l.sent {
		counts[p] = l.sent[p].Load()
	}
	return counts
}

// tally counts numbered records on the target, each reading going on where
// the last one ended. It counts records and never looks at offsets to judge.
type tally struct {
	cluster *kafkatest.Cluster
	topic   string
	sent    []int64 // what there should be, by partition
	next    []int64 // the number expected next, by partition
	offset  []int64 // where to read on
	// committed passes over what was aborted.
	committed bool
}

func (t *tally) total() int64 {
	var sum int64
	for _, n := range t.next {
		sum += n
	}
	return sum
}

// read reads to the log's present end and says what is missing; empty when all
// has arrived. A record that is doubled, or left out, fails the test at once.
func (t *tally) read(tb testing.TB) string {
	tb.Helper()
	if t.next == nil {
		t.next, t.offset = make([]int64, len(t.sent)), make([]int64, len(t.sent))
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	if err := t.readAll(ctx); err != nil {
		if wrong, ok := errors.AsType[*miscount](err); ok {
			tb.Fatal(wrong)
		}
		return err.Error()
	}
	for p, n := range t.next {
		if n < t.sent[p] {
			return fmt.Sprintf("%s-%d: %d of %d records", t.topic, p, n, t.sent[p])
		}
	}
	return ""
}

// miscount is a record that should not be where it was found.
type miscount struct {
	topic     string
	partition int32
	offset    int64
	got, want int64
}

func (m *miscount) Error() string {
	what := "LOST"
	if m.got < m.want {
		what = "DOUBLED"
	}
	return fmt.Sprintf("%s: %s-%d holds record %d at offset %d, expected %d", what, m.topic, m.partition, m.got, m.offset, m.want)
}

func (t *tally) readAll(ctx context.Context) error {
	from := map[int32]kgo.Offset{}
	for p, at := range t.offset {
		from[int32(p)] = kgo.NewOffset().At(at)
	}
	// Control records are kept: only by them does a reader learn that it has
	// reached an end behind which only a marker lies.
	cl, err := t.cluster.Open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.topic: from}), kgo.KeepControlRecords(), kgo.FetchMaxWait(200*time.Millisecond), kgo.FetchIsolationLevel(t.isolation()))
	if err != nil {
		return err
	}
	defer cl.Close()
	list := kadm.NewClient(cl).ListEndOffsets
	if t.committed {
		list = kadm.NewClient(cl).ListCommittedOffsets
	}
	ends, err := list(ctx, t.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	for !t.reached(ends) {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			t.offset[r.Partition] = r.Offset + 1
			if r.Attrs.IsControl() {
				continue
			}
			got, want := number(r.Value), t.next[r.Partition]
			if got != want || got >= t.sent[r.Partition] {
				return &miscount{t.topic, r.Partition, r.Offset, got, want}
			}
			t.next[r.Partition]++
		}
	}
	return nil
}

func (t *tally) isolation() kgo.IsolationLevel {
	if t.committed {
		return kgo.ReadCommitted()
	}
	return kgo.ReadUncommitted()
}

func (t *tally) reached(ends kadm.ListedOffsets) bool {
	for p, at := range t.offset {
		end, ok := ends.Lookup(t.topic, int32(p))
		if !ok || at < end.Offset {
			return false
		}
	}
	return true
}

// arrived waits until the target has at least so many of the load's records in
// every partition, while the load goes on.
func (tr *trial) arrived(l *load, each int64) {
	tr.tb.Helper()
	await(tr.tb, "records arrive on the target", func() string {
		listed, err := tr.target.Admin(tr.tb).ListEndOffsets(tr.tb.Context(), tr.remote(l.topic))
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return err.Error()
		}
		for p := range l.sent {
			end, ok := listed.Lookup(tr.remote(l.topic), int32(p))
			if !ok || end.Offset < each {
				return fmt.Sprintf("partition %d ends at %d", p, end.Offset)
			}
		}
		return ""
	})
}

// transact writes records in a transaction of their own, which is committed or aborted.
func transact(ctx context.Context, cl *kgo.Client, how kgo.TransactionEndTry, records ...*kgo.Record) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	var written kgo.FirstErrPromise
	for _, r := range records {
		cl.Produce(ctx, r, written.Promise())
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if err := written.Err(); err != nil {
		return err
	}
	return cl.EndTransaction(ctx, how)
}

// numbered makes records of partition 0 with the numbers [from, to).
func numbered(topic string, from, to int64) []*kgo.Record {
	var out []*kgo.Record
	for n := from; n < to; n++ {
		value := make([]byte, digits)
		putNumber(value, n)
		out = append(out, &kgo.Record{Topic: topic, Value: value})
	}
	return out
}
