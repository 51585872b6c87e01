package cluster

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"heliograph/internal/kafka"
)

// Every version pair a broker may offer carries batches unchanged.
func TestBatchesGoInAndComeOutUnchanged(t *testing.T) {
	for name, versions := range map[string]*kversion.Versions{
		"2.4": kversion.V2_4_0(), "2.7": kversion.V2_7_0(), "2.8": kversion.V2_8_0(),
		"3.0": kversion.V3_0_0(), "3.9": kversion.V3_9_0(), "newest": kversion.V4_3_0(),
	} {
		t.Run(name, func(t *testing.T) {
			_, c := fake(t, nil, kfake.SeedTopics(2, "orders", "bills"), kfake.MaxVersions(versions))
			roundTrips(t, c)
		})
	}
}

// Every version of the two requests, whatever the release that had it.
func TestEveryVersionIsSpoken(t *testing.T) {
	for fetch := minFetch; fetch <= maxFetch; fetch++ {
		versions := kversion.V4_3_0()
		versions.SetMaxKeyVersion(keyFetch, fetch)
		versions.SetMaxKeyVersion(keyProduce, min(fetch, maxProduce))
		_, c := fake(t, nil, kfake.SeedTopics(1, "orders", "bills"), kfake.MaxVersions(versions))
		node, _ := leaderOf(t, c, kafka.TopicPartition{Topic: "orders"})
		if l := dialFetch(t, c, node).link.Load(); l.fetch != fetch || l.produce != min(fetch, maxProduce) {
			t.Errorf("fetch %d: negotiated %d and %d", fetch, l.fetch, l.produce)
		}
		roundTrips(t, c)
	}
}

func roundTrips(t *testing.T, c *Client) {
	t.Helper()
	for _, topic := range []string{"orders", "bills"} {
		tp := kafka.TopicPartition{Topic: topic}
		b := batch("one", "two", "three")
		produceTo(t, c, tp, b)
		node, id := leaderOf(t, c, tp)
		f := dialFetch(t, c, node)
		f.Want(wantFrom(tp, id, 0))
		got, p := fetchUntil(t, f, tp)
		if p.Code != kafka.CodeNone || p.HighWatermark != 3 || p.PreferredReplica != kafka.NoNode || p.DivergingEpoch != kafka.NoLeaderEpoch {
			t.Errorf("%s: %+v", tp, p)
		}
		// All but the base offset and the leader epoch, which the broker sets.
		if !bytes.Equal(p.Records[16:], b[16:]) {
			t.Errorf("%s: the batch came back changed", tp)
		}
		got.Buffer.Release()
		f.Close()
	}
}

// seen is what one fetch request named.
type seen struct {
	session, epoch int32
	wants, forgets int
}

// watchFetches records every fetch request that reaches the fake cluster.
func watchFetches(k *kfake.Cluster) func() []seen {
	ch := make(chan seen, 1000)
	k.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		r := req.(*kmsg.FetchRequest)
		s := seen{session: r.SessionID, epoch: r.SessionEpoch}
		for _, topic := range r.Topics {
			s.wants += len(topic.Partitions)
		}
		for _, topic := range r.ForgottenTopics {
			s.forgets += len(topic.Partitions)
		}
		ch <- s
		return nil, nil, false
	})
	return func() []seen {
		var all []seen
		for len(ch) > 0 {
			all = append(all, <-ch)
		}
		return all
	}
}

func fetchOnce(t *testing.T, f *FetchConn) int {
	t.Helper()
	got, err := f.Fetch(deadline(t), kafka.FetchLimits{MaxWaitMillis: 1, MinBytes: 1, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	got.Buffer.Release()
	return len(got.Partitions)
}

func TestSessionSendsOnlyChanges(t *testing.T) {
	k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"))
	requests := watchFetches(k)
	node, id := leaderOf(t, c, kafka.TopicPartition{Topic: "orders"})
	f := dialFetch(t, c, node)
	tp := func(p int32) kafka.TopicPartition { return kafka.TopicPartition{Topic: "orders", Partition: p} }
	for p := range int32(4) {
		f.Want(wantFrom(tp(p), id, 0))
	}
	fetchOnce(t, f) // all four
	fetchOnce(t, f) // nothing changed
	f.Want(wantFrom(tp(1), id, 0))
	fetchOnce(t, f) // the same again is no change
	other := wantFrom(tp(1), id, 0)
	other.MaxBytes = 77
	f.Want(other)
	f.Forget(tp(2))
	fetchOnce(t, f) // one changed, one forgotten
	f.Forget(tp(3))
	f.Want(wantFrom(tp(3), id, 0))
	fetchOnce(t, f) // forgotten and wanted again: no forget
	all := requests()
	want := []seen{{wants: 4}, {epoch: 1}, {epoch: 2}, {epoch: 3, wants: 1, forgets: 1}, {epoch: 4, wants: 1}}
	for i := range all {
		all[i].session = 0
	}
	if !slices.Equal(all, want) {
		t.Errorf("got %+v\nwant %+v", all, want)
	}
}

// Whatever the broker says against a session, Fetch starts another and its
// caller sees nothing of it.
func TestRefusedSessionStartsAnew(t *testing.T) {
	for _, code := range []kafka.Code{kafka.CodeFetchSessionIDNotFound, kafka.CodeInvalidFetchSessionEpoch, kafka.CodeFetchSessionTopicIDError} {
		t.Run(code.String(), func(t *testing.T) {
			k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
			node, id := leaderOf(t, c, kafka.TopicPartition{Topic: "orders"})
			f := dialFetch(t, c, node)
			for p := range int32(2) {
				f.Want(wantFrom(kafka.TopicPartition{Topic: "orders", Partition: p}, id, 0))
			}
			fetchOnce(t, f)
			k.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
				resp := req.ResponseKind().(*kmsg.FetchResponse)
				resp.ErrorCode = int16(code)
				return resp, nil, true
			})
			if n := fetchOnce(t, f); n != 2 {
				t.Errorf("the new session's first answer has %d partitions, want 2", n)
			}
			if n := c.Stats().SessionRestarts; n != 1 {
				t.Errorf("%d restarts", n)
			}
		})
	}
}

func TestSessionRefusedForEverIsAnError(t *testing.T) {
	k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	k.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		resp.ErrorCode = int16(kafka.CodeFetchSessionIDNotFound)
		return resp, nil, true
	})
	node, id := leaderOf(t, c, kafka.TopicPartition{Topic: "orders"})
	f := dialFetch(t, c, node)
	f.Want(wantFrom(kafka.TopicPartition{Topic: "orders"}, id, 0))
	if _, err := f.Fetch(deadline(t), limits); err == nil {
		t.Error("no error")
	}
}

func TestMovedLeaderIsNamedByTheAnswer(t *testing.T) {
	k, c := fake(t, nil, kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	p, f := dialProduce(t, c, node), dialFetch(t, c, node)
	f.Want(wantFrom(tp, id, 0))
	if err := k.MoveTopicPartition("orders", 0, 1-node); err != nil {
		t.Fatal(err)
	}
	o := send(t, p, kafka.ProducePartition{TopicPartition: tp, TopicID: id, Batch: batch("x")})
	if o.err != nil || o.produced.Partitions[0].Code != kafka.CodeNotLeaderOrFollower {
		t.Fatalf("%+v", o)
	}
	got, fp := fetchUntil(t, f, tp)
	got.Buffer.Release()
	if fp.Code != kafka.CodeNotLeaderOrFollower {
		t.Fatalf("%+v", fp)
	}
	if hint := o.produced.Partitions[0].Leader; hint.Node != 1-node || fp.Leader != hint {
		t.Fatalf("hints %+v and %+v", hint, fp.Leader)
	}
	// The hint is in the cache without a question.
	refreshes := c.Stats().MetadataRefreshes
	if now, _, _, ok := c.Leader(tp); !ok || now != 1-node {
		t.Errorf("the cache says %d", now)
	}
	o = send(t, dialProduce(t, c, 1-node), kafka.ProducePartition{TopicPartition: tp, TopicID: id, Batch: batch("x")})
	if err := o.failed(); err != nil {
		t.Error(err)
	}
	if c.Stats().MetadataRefreshes != refreshes {
		t.Error("metadata was asked for")
	}
}

func TestRecreatedTopicIsRefusedByID(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	id[3] ^= 0xff
	f := dialFetch(t, c, node)
	f.Want(wantFrom(tp, id, 0))
	got, p := fetchUntil(t, f, tp)
	got.Buffer.Release()
	if p.Code != kafka.CodeUnknownTopicID {
		t.Errorf("%s", p.Code)
	}
	o := send(t, dialProduce(t, c, node), kafka.ProducePartition{TopicPartition: tp, TopicID: id, Batch: batch("x")})
	if o.err != nil || o.produced.Partitions[0].Code != kafka.CodeUnknownTopicID || o.produced.Partitions[0].Topic != "orders" {
		t.Errorf("%+v", o)
	}
}

func TestAnswersComeInOrderAndOnce(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	p := dialProduce(t, c, node)
	const n = 200
	offsets := make(chan int64, n)
	for range n {
		req := &kafka.ProduceRequest{Acks: -1, TimeoutMillis: 5000, Partitions: []kafka.ProducePartition{{TopicPartition: tp, TopicID: id, Batch: batch("x", "y")}}}
		err := p.Send(req, func(a *kafka.Produced, err error) {
			if err != nil {
				t.Error(err)
				offsets <- -1
				return
			}
			offsets <- a.Partitions[0].BaseOffset
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(n) {
		if got := <-offsets; got != 2*i {
			t.Fatalf("answer %d has base offset %d", i, got)
		}
	}
}

// A topic named twice in one request would be dropped by a broker, so its
// partitions are brought together whatever their order.
func TestPartitionsOfATopicAreGrouped(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(2, "a", "b"))
	var parts []kafka.ProducePartition
	for _, tp := range []kafka.TopicPartition{{Topic: "b"}, {Topic: "a", Partition: 1}, {Topic: "b", Partition: 1}, {Topic: "a"}} {
		_, id := leaderOf(t, c, tp)
		parts = append(parts, kafka.ProducePartition{TopicPartition: tp, TopicID: id, Batch: batch(tp.String())})
	}
	node, _ := leaderOf(t, c, parts[0].TopicPartition)
	o := send(t, dialProduce(t, c, node), parts...)
	if err := o.failed(); err != nil || len(o.produced.Partitions) != 4 {
		t.Fatalf("%+v", o)
	}
	for _, part := range parts {
		f := dialFetch(t, c, node)
		f.Want(wantFrom(part.TopicPartition, part.TopicID, 0))
		got, p := fetchUntil(t, f, part.TopicPartition)
		if !bytes.Contains(p.Records, []byte(part.String())) {
			t.Errorf("%s has another's batch", part.TopicPartition)
		}
		got.Buffer.Release()
	}
}

// behind puts a relay between the client and a node. It hands each accepted
// connection to serve together with one to the real broker.
func behind(t *testing.T, c *Client, node int32, serve func(client, broker net.Conn)) {
	t.Helper()
	where, ok := c.topo.node(node)
	if !ok {
		t.Fatalf("node %d is not known", node)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", where.addr())
			if err != nil {
				client.Close()
				continue
			}
			serve(client, broker)
			client.Close()
			broker.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	addr := ln.Addr().(*net.TCPAddr)
	c.topo.noteNode(node, endpoint{host: "127.0.0.1", port: int32(addr.Port)})
}

// cutAfter relays until more than n bytes of the broker have passed.
func cutAfter(n int64) func(client, broker net.Conn) {
	return func(client, broker net.Conn) {
		up := make(chan struct{})
		go func() {
			defer close(up)
			buf := make([]byte, 64<<10)
			for {
				m, err := client.Read(buf)
				if err != nil {
					return
				}
				if _, err := broker.Write(buf[:m]); err != nil {
					return
				}
			}
		}()
		left := n
		buf := make([]byte, 4<<10)
		for left > 0 {
			m, err := broker.Read(buf[:min(int64(len(buf)), left)])
			if err != nil {
				break
			}
			left -= int64(m)
			if _, err := client.Write(buf[:m]); err != nil {
				break
			}
		}
		client.Close()
		broker.Close()
		<-up
	}
}

func TestConnectionCutInTheMiddleOfAFetchAnswer(t *testing.T) {
	held := &countingBudget{}
	_, c := fake(t, func(o *Options) { o.Budget = held }, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	produceTo(t, c, tp, batch(strings.Repeat("x", 100_000)))
	behind(t, c, node, cutAfter(50_000))
	f := dialFetch(t, c, node)
	f.Want(wantFrom(tp, id, 0))
	got, err := f.Fetch(deadline(t), limits)
	if err == nil {
		t.Fatalf("got %+v", got)
	}
	if kafka.ClassOf(err) != kafka.ClassRetry || !strings.Contains(err.Error(), "127.0.0.1:") {
		t.Error(err)
	}
	if _, err := f.Fetch(deadline(t), limits); !errors.Is(err, errClosed) {
		t.Errorf("after its end the connection says %v", err)
	}
	if n := held.now.Load(); n != 0 || held.most.Load() < 100_000 {
		t.Errorf("%d bytes held, at most %d", n, held.most.Load())
	}
}

// countingBudget never refuses.
type countingBudget struct{ now, most atomic.Int64 }

func (b *countingBudget) Acquire(_ context.Context, n int) error {
	if now := b.now.Add(int64(n)); now > b.most.Load() {
		b.most.Store(now)
	}
	return nil
}

func (b *countingBudget) Release(n int) { b.now.Add(-int64(n)) }

func TestConnectionCutFailsEverySend(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	behind(t, c, node, cutAfter(2_000))
	p := dialProduce(t, c, node)
	var accepted, answered, failed atomic.Int64
	for p.Send(&kafka.ProduceRequest{Acks: -1, TimeoutMillis: 1000, Partitions: []kafka.ProducePartition{{TopicPartition: tp, TopicID: id, Batch: batch("x")}}},
		func(_ *kafka.Produced, err error) {
			answered.Add(1)
			if err != nil {
				failed.Add(1)
			}
		}) == nil {
		accepted.Add(1)
	}
	select {
	case <-p.Done():
	case <-deadline(t).Done():
		t.Fatal("the connection does not end")
	}
	if accepted.Load() != answered.Load() || failed.Load() == 0 {
		t.Errorf("%d accepted, %d answered, %d of them failed", accepted.Load(), answered.Load(), failed.Load())
	}
}

func TestCloseFailsWhatIsUnanswered(t *testing.T) {
	k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	hold := make(chan struct{})
	k.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		<-hold
		return nil, nil, false
	})
	defer close(hold)
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	p := dialProduce(t, c, node)
	errs := make(chan error, 3)
	for range 3 {
		req := &kafka.ProduceRequest{Acks: -1, TimeoutMillis: 5000, Partitions: []kafka.ProducePartition{{TopicPartition: tp, TopicID: id, Batch: batch("x")}}}
		if err := p.Send(req, func(_ *kafka.Produced, err error) { errs <- err }); err != nil {
			t.Fatal(err)
		}
	}
	p.Close()
	for range 3 {
		if err := <-errs; !errors.Is(err, errClosed) {
			t.Error(err)
		}
	}
	<-p.Done()
	if err := p.Send(&kafka.ProduceRequest{Acks: -1}, nil); !errors.Is(err, errClosed) {
		t.Errorf("a closed connection says %v", err)
	}
}

func TestCancelledFetchReturnsAtOnce(t *testing.T) {
	k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	f := dialFetch(t, c, node)
	f.Want(wantFrom(tp, id, 0))
	why := errors.New("the flow stops")
	ctx, cancel := context.WithCancelCause(deadline(t))
	k.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		cancel(why)
		return nil, nil, false
	})
	_, err := f.Fetch(ctx, kafka.FetchLimits{MaxWaitMillis: 15_000, MinBytes: 1, MaxBytes: 1})
	if !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestOversizedAnswerEndsTheConnection(t *testing.T) {
	_, c := fake(t, func(o *Options) { o.MaxResponseBytes = 4 << 10 }, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	produceTo(t, c, tp, batch(strings.Repeat("x", 10_000)))
	f := dialFetch(t, c, node)
	f.Want(wantFrom(tp, id, 0))
	_, err := f.Fetch(deadline(t), limits)
	if err == nil || !strings.Contains(err.Error(), "over the limit of 4096") {
		t.Error(err)
	}
}
