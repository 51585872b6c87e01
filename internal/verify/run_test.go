package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is two embedded clusters with one topic, "t", copied by hand.
type world struct {
	t              testing.TB
	source, target *node
}

type node struct {
	t      testing.TB
	client *cluster.Client
	kgo    *kgo.Client
	admin  *kadm.Client
	addrs  []string
}

// DialFetch gives the node the shape of verify's port.
func (n *node) DialFetch(ctx context.Context, id int32) (verify.Fetcher, error) {
	c, err := n.client.DialFetch(ctx, id)
	if err != nil {
		return nil, err
	}
	return c, nil
}

type port struct {
	*cluster.Client
	*node
}

func (p port) DialFetch(ctx context.Context, id int32) (verify.Fetcher, error) {
	return p.node.DialFetch(ctx, id)
}

func (n *node) port() port { return port{n.client, n} }

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return &world{t: tb, source: newNode(tb, "A"), target: newNode(tb, "B")}
}

func newNode(tb testing.TB, alias string) *node {
	tb.Helper()
	k, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(k.Close)
	n := &node{t: tb, addrs: k.ListenAddrs()}
	if n.client, err = cluster.Open(cluster.Options{Alias: alias, BootstrapServers: n.addrs}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(n.client.Close)
	n.kgo = n.open()
	n.admin = kadm.NewClient(n.kgo)
	return n
}

func (n *node) open(opts ...kgo.Opt) *kgo.Client {
	n.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(n.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(cl.Close)
	return cl
}

func (n *node) topic(configs ...string) {
	n.t.Helper()
	values := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		values[configs[i]] = &configs[i+1]
	}
	if _, err := n.admin.CreateTopic(n.t.Context(), 1, 1, values, "t"); err != nil {
		n.t.Fatal(err)
	}
}

// write appends records in batches of up to ten.
func (n *node) write(records ...*kgo.Record) {
	n.t.Helper()
	for chunk := range slices.Chunk(records, 10) {
		fresh := make([]*kgo.Record, len(chunk))
		for i, r := range chunk {
			fresh[i] = &kgo.Record{Topic: "t", Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		}
		if err := n.kgo.ProduceSync(n.t.Context(), fresh...).FirstErr(); err != nil {
			n.t.Fatal(err)
		}
	}
}

// produceAll appends records in batches as large as the client makes them.
func (n *node) produceAll(records []*kgo.Record) {
	n.t.Helper()
	for _, r := range records {
		fresh := *r
		fresh.Topic = "t"
		n.kgo.Produce(n.t.Context(), &fresh, nil)
	}
	if err := n.kgo.Flush(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// trim takes away what lies before an offset, as retention does.
func (n *node) trim(offset int64) {
	n.t.Helper()
	var o kadm.Offsets
	o.AddOffset("t", 0, offset, -1)
	answers, err := n.admin.DeleteRecords(n.t.Context(), o)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// numbered are records that nothing but their number tells apart.
func numbered(from, to int) []*kgo.Record {
	var out []*kgo.Record
	for i := from; i < to; i++ {
		out = append(out, &kgo.Record{
			Key: fmt.Appendf(nil, "key-%d", i), Value: fmt.Appendf(nil, "value-%d", i),
			Headers:   []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i)}},
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
		})
	}
	return out
}

// verify runs with the options that a case changes.
func (w *world) verify(change ...func(*verify.Options)) *verify.Partition {
	w.t.Helper()
	o := verify.Options{
		Flow:      mirror.FlowID{Source: "A", Target: "B"},
		Pairs:     []verify.Pair{{Source: "t", Target: "t", Partitions: 1, TargetPartitions: 1}},
		Isolation: kafka.ReadUncommitted,
	}
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	r, err := verify.Run(ctx, w.source.port(), w.target.port(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(r.Partitions) != 1 || r.Verdict != r.Partitions[0].Verdict {
		w.t.Fatalf("%+v", r)
	}
	return &r.Partitions[0]
}

func expect(t *testing.T, p *verify.Partition, verdict verify.Verdict, equal int64, kinds ...verify.Kind) {
	t.Helper()
	var got []verify.Kind
	for i := range p.Listed {
		got = append(got, p.Listed[i].Kind)
	}
	if p.Verdict != verdict || p.Equal != equal || !slices.Equal(got, kinds) {
		t.Errorf("%s (%s), %d equal, differences %+v; want %s, %d equal, %v", p.Verdict, p.Reason, p.Equal, p.Listed, verdict, equal, kinds)
	}
}

func TestRetentionOnEitherSideIsNoDifference(t *testing.T) {
	for _, c := range []struct {
		name           string
		source, target int64 // trimmed to
		equal          int64
	}{
		{"neither", 0, 0, 500},
		{"target", 0, 233, 267},
		{"source", 233, 0, 267},
		{"both, the target more", 100, 317, 183},
		{"both, the source more", 317, 100, 183},
		{"both to their ends", 500, 500, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.source.topic()
			w.target.topic()
			w.source.write(numbered(0, 500)...)
			w.target.write(numbered(0, 500)...)
			w.source.trim(c.source)
			w.target.trim(c.target)
			expect(t, w.verify(), verify.Equal, c.equal)
		})
	}
}

func TestTamperedTargetBehindRetention(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	all := numbered(0, 400)
	w.source.write(all...)
	changed := numbered(153, 154)[0]
	changed.Value = []byte("tampered")
	w.target.write(all[:153]...)
	w.target.write(changed) // among the first records that the target still has
	w.target.write(all[154:300]...)
	w.target.write(all[301:]...) // without 300
	w.target.write(all[10])      // an old one again
	w.target.trim(150)
	p := w.verify(func(o *verify.Options) { o.ShowRecords = true })
	expect(t, p, verify.Different, 248, verify.Changed, verify.Missing, verify.Extra)
	if d := p.Listed[0]; d.SourceOffset != 153 || d.TargetOffset != 153 || strings.Join(d.Fields, " ") != "value" || d.Target.Value.Text != "tampered" {
		t.Errorf("changed: %+v", d)
	}
	if d := p.Listed[1]; d.SourceOffset != 300 || d.TargetOffset != 300 {
		t.Errorf("missing: %+v", d)
	}
	if d := p.Listed[2]; d.TargetOffset != 399 {
		t.Errorf("extra: %+v", d)
	}
}

// A target that still has its first record and lacks the source's first ones has
// not lost them to retention.
func TestMissingHeadIsADifference(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 100)...)
	w.source.trim(10)
	w.target.write(numbered(40, 100)...)
	p := w.verify()
	expect(t, p, verify.Different, 60, verify.Missing)
	if p.Missing != 30 || p.Listed[0].SourceOffset != 10 {
		t.Errorf("%+v", p)
	}
	expect(t, w.verify(func(o *verify.Options) { o.StartAtLatest = true }), verify.Equal, 60)
}

// Records that repeat cannot be aligned by content; that must not pass for equal
// nor for a loss that did not happen.
func TestRepeatingRecordsAreNeverTakenForEqual(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	same := make([]*kgo.Record, 200)
	for i := range same {
		same[i] = &kgo.Record{Value: []byte("same"), Timestamp: time.UnixMilli(1_700_000_000_000)}
	}
	w.source.write(same...)
	w.target.write(same...)
	w.target.trim(150)
	if p := w.verify(); p.Verdict != verify.Unknown || !strings.Contains(p.Reason, "repeat") {
		t.Errorf("%s: %s", p.Verdict, p.Reason)
	}
	// An offset sync settles it.
	p := w.verify(w.sync(170, 170))
	expect(t, p, verify.Equal, 50)
}

// sync writes an offset sync to the target and names its topic.
func (w *world) sync(upstream, downstream int64) func(*verify.Options) {
	w.t.Helper()
	const topic = "syncs"
	if _, err := w.target.admin.CreateTopic(w.t.Context(), 1, 1, nil, topic); err != nil {
		w.t.Fatal(err)
	}
	s := mirror.OffsetSync{
		TopicPartition: kafka.TopicPartition{Topic: "t"},
		Upstream:       mirror.UpstreamOffset(upstream), Downstream: mirror.DownstreamOffset(downstream),
	}
	r := &kgo.Record{Topic: topic, Key: s.AppendKey(nil), Value: s.AppendValue(nil)}
	if err := w.target.kgo.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	return func(o *verify.Options) { o.SyncsTopic = topic }
}

func TestUnrelatedLogsAreUnknown(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 100)...)
	w.target.write(numbered(1000, 1100)...)
	w.source.trim(10)
	w.target.trim(10)
	p := w.verify()
	if p.Verdict != verify.Unknown || !strings.Contains(p.Reason, "no place could be found") {
		t.Errorf("%s: %s", p.Verdict, p.Reason)
	}
}

// Where only an offset sync aligns, what lies before it stays open.
func TestAnchorAloneProvesOnlyWhatFollows(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 400)...)
	w.target.write(numbered(1000, 1200)...)
	w.target.write(numbered(200, 400)...)
	w.source.trim(5)
	w.target.trim(5)
	p := w.verify(w.sync(250, 250))
	if p.Verdict != verify.Unknown || p.Equal != 150 || p.Source.From != 250 {
		t.Errorf("%+v", p)
	}
}

func TestTransactionsAtTheSourceShiftOffsetsOnly(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	txn := w.source.open(kgo.TransactionalID("txn"))
	for i := range 20 {
		if err := txn.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		commit := kgo.TryCommit
		if i%3 == 1 {
			commit = kgo.TryAbort
		}
		for _, r := range numbered(i*10, i*10+10) {
			r.Topic = "t"
			if err := txn.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := txn.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		if commit == kgo.TryCommit {
			w.target.write(numbered(i*10, i*10+10)...)
		}
	}
	committed := func(o *verify.Options) { o.Isolation = kafka.ReadCommitted }
	expect(t, w.verify(committed), verify.Equal, 130)
	w.target.trim(45)
	expect(t, w.verify(committed), verify.Equal, 85)
	if p := w.verify(); p.Verdict != verify.Different || p.Missing != 40 {
		t.Errorf("a flow that reads uncommitted copies aborted records too: %+v", p)
	}
}

func TestTheLedgerNamesWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 50)...)
	w.target.write(numbered(0, 20)...)
	w.target.write(numbered(24, 40)...)
	w.target.write(numbered(41, 50)...)
	entry := losses.Entry{
		Flow: mirror.FlowID{Source: "A", Target: "B"}, Source: kafka.TopicPartition{Topic: "t"},
		From: 20, To: 24, Records: 4, Kind: losses.Refused, Action: losses.Continued, Reason: "too large", At: time.UnixMilli(0),
	}
	other := entry
	other.Flow.Source, other.From, other.To = "C", 0, 50
	p := w.verify(func(o *verify.Options) {
		o.Losses = func(context.Context) ([]losses.Entry, error) { return []losses.Entry{other, entry}, nil }
	})
	expect(t, p, verify.Different, 45, verify.Missing, verify.Missing)
	if got := p.Listed[0].Known; got != "refused at 1970-01-01T00:00:00Z: too large" || p.Listed[1].Known != "" || len(p.Ledger) != 1 {
		t.Errorf("%+v, ledger %q", p.Listed, p.Ledger)
	}
}

func TestForeignRecordsAreNamed(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 50)...)
	w.target.write(numbered(0, 25)...)
	other := w.target.open()
	if err := other.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("foreign")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.target.write(numbered(25, 50)...)
	p := w.verify()
	expect(t, p, verify.Different, 50, verify.Foreign)
	if d := p.Listed[0]; d.TargetOffset != 25 || d.SourceOffset != 25 {
		t.Errorf("%+v", d)
	}
}

// Live, a target that lags is waited for, and what comes behind the fixed end on
// both sides does not disturb.
func TestLiveWaitsForTheTarget(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 100)...)
	w.target.write(numbered(0, 60)...)
	var once atomic.Bool
	arrived := make(chan struct{})
	p := w.verify(func(o *verify.Options) {
		o.Wait = 20 * time.Second
		o.Watch = func(p verify.Progress) {
			if p.Waiting != "" && once.CompareAndSwap(false, true) {
				go func() {
					defer close(arrived)
					w.source.write(numbered(100, 120)...)
					w.target.write(numbered(60, 110)...)
				}()
			}
		}
	})
	<-arrived
	if p.Verdict != verify.Equal || p.Equal < 100 {
		t.Errorf("%+v", p)
	}
	// At rest it is an answer, and the flow's position says which.
	lag := func(next int64) func(*verify.Options) {
		return func(o *verify.Options) {
			o.Positions = func(context.Context) (map[kafka.TopicPartition]int64, error) {
				return map[kafka.TopicPartition]int64{{Topic: "t"}: next}, nil
			}
		}
	}
	expect(t, w.verify(lag(110)), verify.Unknown, 110, verify.Missing)
	expect(t, w.verify(lag(120)), verify.Different, 110, verify.Missing)
}

func TestCompactedTopicsAreComparedByLastValue(t *testing.T) {
	w := newWorld(t)
	w.source.topic("cleanup.policy", "compact")
	w.target.topic("cleanup.policy", "compact")
	compacted := func(o *verify.Options) { o.Pairs[0].Compacted = true }
	w.source.write(numbered(0, 50)...)
	newer := numbered(0, 50)
	for i := range newer {
		newer[i].Value = []byte("newer")
	}
	gone := numbered(7, 8)[0]
	gone.Value = nil
	w.source.write(newer...)
	w.source.write(gone)
	// Compaction has left the target with other records and the same last values.
	w.target.write(newer[:7]...)
	w.target.write(newer[8:]...)
	p := w.verify(compacted)
	expect(t, p, verify.Equal, 49)
	w.target.write(gone)
	w.target.write(numbered(12, 13)...)
	w.target.write(numbered(77, 78)...)
	p = w.verify(compacted)
	expect(t, p, verify.Different, 48, verify.Changed, verify.Extra)
	if d := p.Listed[0]; d.SourceOffset != 62 || d.TargetOffset != 50 {
		t.Errorf("%+v", d)
	}
}

// What another producer holds back on the target is not lost.
func TestOpenTransactionOnTheTargetIsTold(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	w.target.topic()
	w.source.write(numbered(0, 30)...)
	w.target.write(numbered(0, 20)...)
	txn := w.target.open(kgo.TransactionalID("open"))
	if err := txn.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := txn.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.target.write(numbered(20, 30)...)
	p := w.verify()
	expect(t, p, verify.Unknown, 20, verify.Missing)
	if !strings.Contains(p.Reason, "a transaction is open on the target") {
		t.Error(p.Reason)
	}
	if err := txn.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	expect(t, w.verify(), verify.Equal, 30)
}

func TestPartitionsOfOneSideAloneAreDifferent(t *testing.T) {
	w := newWorld(t)
	w.source.topic()
	absent := func(o *verify.Options) { o.Pairs[0].TargetPartitions = 0 }
	expect(t, w.verify(absent), verify.Equal, 0)
	w.source.write(numbered(0, 3)...)
	expect(t, w.verify(absent), verify.Different, 0)

	surplus := func(o *verify.Options) { o.Pairs[0].Partitions = 0 }
	w.target.topic()
	expect(t, w.verify(surplus), verify.Equal, 0)
	w.target.write(numbered(0, 3)...)
	expect(t, w.verify(surplus), verify.Different, 0)
}
