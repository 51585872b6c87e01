package cluster

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// piped returns a link whose other end is in the test's hands.
func piped(c *Client, fetch, produce int16) (*link, net.Conn) {
	ours, theirs := net.Pipe()
	return &link{client: c, nc: bulkConn{Conn: ours}, addr: "broker:9092", fetch: fetch, produce: produce}, theirs
}

// bare is a client without connections, for what needs none.
func bare() *Client {
	c := &Client{opts: Options{Alias: "west"}.withDefaults(), fetchPool: newPool(nil), smallPool: newPool(nil)}
	c.topo.init(c)
	c.pulse.init(c)
	c.mu.conns = make(map[*ProduceConn]struct{})
	return c
}

func fetchOver(l *link) *FetchConn {
	f := &FetchConn{client: l.client, pool: l.client.fetchPool, session: newFetchSession()}
	f.link.Store(l)
	return f
}

// canned answers every request with the same bytes, without allocating.
func canned(conn io.ReadWriter, answer []byte) {
	var size [4]byte
	request := make([]byte, 1<<20)
	for {
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if _, err := io.ReadFull(conn, request[:n]); err != nil {
			return
		}
		copy(answer[4:8], request[4:8]) // correlation id
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// framed is an answer with its size, correlation id and tags in front.
func framed(resp kmsg.Response, correlation int32) []byte {
	out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(correlation))
	if resp.IsFlexible() {
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

var theTopic = kafka.TopicID{1, 2, 3}

func fetchAnswer(version int16, partitions int, records []byte) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = version
	resp.SessionID = 7
	t := kmsg.NewFetchResponseTopic()
	t.Topic, t.TopicID = "orders", theTopic
	for p := range partitions {
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.Partition, rp.HighWatermark, rp.LastStableOffset, rp.RecordBatches = int32(p), 10, 9, records
		rp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 5, FirstOffset: 3}, {ProducerID: 6, FirstOffset: 4}}
		rp.CurrentLeader.LeaderID, rp.CurrentLeader.LeaderEpoch = 4, 9
		rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = 2, 8
		rp.PreferredReadReplica = 3
		t.Partitions = append(t.Partitions, rp)
	}
	resp.Topics = append(resp.Topics, t)
	if version >= 16 {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port = 4, "new.example", 9094
		resp.Brokers = append(resp.Brokers, b)
	}
	return resp
}

func produceAnswer(version int16) *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = version
	t := kmsg.NewProduceResponseTopic()
	t.Topic, t.TopicID = "orders", theTopic
	rp := kmsg.NewProduceResponseTopicPartition()
	rp.BaseOffset, rp.LogAppendTime, rp.LogStartOffset = 42, -1, 1
	t.Partitions = append(t.Partitions, rp)
	resp.Topics = append(resp.Topics, t)
	return resp
}

// Everything a fetch answer can say, in each version that can say it.
func TestFetchAnswerIsReadInEveryVersion(t *testing.T) {
	for v := minFetch; v <= maxFetch; v++ {
		c := bare()
		l, _ := piped(c, v, maxProduce)
		f := fetchOver(l)
		for p := range int32(2) {
			f.Want(wantFrom(kafka.TopicPartition{Topic: "orders", Partition: p}, theTopic, 0))
		}
		f.session.appendRequest(nil, v, 1, "id", "rack", limits)
		body := framed(fetchAnswer(v, 2, []byte("records")), 1)[4:]
		got, err := f.decode(1, kafka.NewBuffer(body, nil))
		if err != nil || got == nil || len(got.Partitions) != 2 {
			t.Fatalf("version %d: %+v, %v", v, got, err)
		}
		p := got.Partitions[1]
		if p.Topic != "orders" || p.Partition != 1 || p.HighWatermark != 10 || p.LastStableOffset != 9 ||
			string(p.Records) != "records" || len(p.Aborted) != 2 || p.Aborted[1] != (kafka.AbortedTxn{ProducerID: 6, FirstOffset: 4}) {
			t.Errorf("version %d: %+v", v, p)
		}
		if v >= 11 && p.PreferredReplica != 3 {
			t.Errorf("version %d: preferred replica %d", v, p.PreferredReplica)
		}
		if v >= 12 && (p.DivergingEpoch != 2 || p.DivergingEnd != 8 || p.Leader != (kafka.LeaderHint{Node: 4, Epoch: 9})) {
			t.Errorf("version %d: %+v", v, p)
		}
		if where, ok := c.topo.node(4); v >= 16 && (!ok || where.addr() != "new.example:9094") {
			t.Errorf("version %d: the new leader's address is not learnt: %v", v, where)
		}
	}
}

// What the encoder writes, franz-go's own decoder reads.
func TestFetchRequestIsWhatTheProtocolSays(t *testing.T) {
	for v := minFetch; v <= maxFetch; v++ {
		s := newFetchSession()
		want := kafka.FetchPartition{
			TopicPartition: kafka.TopicPartition{Topic: "orders", Partition: 3}, TopicID: theTopic,
			Offset: 77, CurrentEpoch: 5, LastFetchedEpoch: 4, MaxBytes: 1000,
		}
		s.want(want)
		wire := s.appendRequest(nil, v, 9, "id", "rack", kafka.FetchLimits{MaxWaitMillis: 1, MinBytes: 2, MaxBytes: 3, Isolation: kafka.ReadCommitted})
		req := kmsg.NewPtrFetchRequest()
		req.Version = v
		if err := req.ReadFrom(wire[headerSize(v >= fetchFlexible):]); err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		if req.MaxWaitMillis != 1 || req.MinBytes != 2 || req.MaxBytes != 3 || req.IsolationLevel != 1 || v >= 11 && req.Rack != "rack" {
			t.Errorf("version %d: %+v", v, req)
		}
		p := req.Topics[0].Partitions[0]
		if p.Partition != 3 || p.FetchOffset != 77 || p.PartitionMaxBytes != 1000 || v >= 9 && p.CurrentLeaderEpoch != 5 || v >= 12 && p.LastFetchedEpoch != 4 {
			t.Errorf("version %d: %+v", v, p)
		}
		if v >= 13 && req.Topics[0].TopicID != theTopic || v < 13 && req.Topics[0].Topic != "orders" {
			t.Errorf("version %d: %+v", v, req.Topics[0])
		}
	}
}

// headerSize is that of a request whose client id is "id".
func headerSize(flexible bool) int {
	if flexible {
		return 4 + 2 + 2 + 4 + 2 + 2 + 1
	}
	return 4 + 2 + 2 + 4 + 2 + 2
}

func produceRequest(txn string) *kafka.ProduceRequest {
	return &kafka.ProduceRequest{
		TransactionalID: txn, Acks: -1, TimeoutMillis: 500,
		Partitions: []kafka.ProducePartition{{
			TopicPartition: kafka.TopicPartition{Topic: "orders"}, TopicID: theTopic, Batch: []byte("a batch"),
		}},
	}
}

func TestProduceRequestIsWhatTheProtocolSays(t *testing.T) {
	for v := minProduce; v <= maxProduce; v++ {
		for _, txn := range []string{"", "lane-1"} {
			e := produceEncoder{clientID: "id"}
			p := pendingProduce{req: produceRequest(txn), number: 3}
			p.version, p.byID = e.choose(p.req, v)
			if txn != "" && p.version > produceTxn1 {
				t.Errorf("version %d with a transactional id", p.version)
			}
			c := bare()
			l, theirs := piped(c, maxFetch, v)
			go func() {
				_, err := e.write(l, &p)
				_ = l.nc.Close()
				if err != nil {
					t.Error(err)
				}
			}()
			wire, err := io.ReadAll(theirs)
			if err != nil || int(binary.BigEndian.Uint32(wire)) != len(wire)-4 {
				t.Fatalf("version %d: %v, %d bytes", v, err, len(wire))
			}
			req := kmsg.NewPtrProduceRequest()
			req.Version = p.version
			if err := req.ReadFrom(wire[headerSize(p.version >= produceFlexible):]); err != nil {
				t.Fatalf("version %d: %v", v, err)
			}
			if req.Acks != -1 || req.TimeoutMillis != 500 || string(req.Topics[0].Partitions[0].Records) != "a batch" ||
				(req.TransactionID == nil) != (txn == "") {
				t.Errorf("version %d: %+v", v, req)
			}
		}
	}
}

func TestProduceAnswerTellsWhyRecordsWereRefused(t *testing.T) {
	for v := minProduce; v <= maxProduce; v++ {
		resp := produceAnswer(v)
		rp := &resp.Topics[0].Partitions[0]
		rp.ErrorCode = int16(kafka.CodeInvalidRecord)
		rp.ErrorMessage = new("no key")
		rp.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 2, ErrorMessage: new("this one")}}
		rp.CurrentLeader.LeaderID, rp.CurrentLeader.LeaderEpoch = 4, 9
		resp.ThrottleMillis = 12
		p := pendingProduce{req: produceRequest(""), version: v, byID: v >= produceTopicIDs, number: 5}
		d := produceDecoder{client: bare()}
		if err := d.decode(framed(resp, 5)[4:], &p); err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		got := d.answer.Partitions[0]
		if d.answer.ThrottleMillis != 12 || got.Topic != "orders" || got.Code != kafka.CodeInvalidRecord || got.BaseOffset != 42 {
			t.Errorf("version %d: %+v", v, d.answer)
		}
		if v >= 8 && (got.Message != "no key" || len(got.RecordErrors) != 1 || got.RecordErrors[0] != (kafka.RecordError{Index: 2, Message: "this one"})) {
			t.Errorf("version %d: %+v", v, got)
		}
		if v >= 9 && got.Leader != (kafka.LeaderHint{Node: 4, Epoch: 9}) {
			t.Errorf("version %d: %+v", v, got.Leader)
		}
	}
}

// Bytes that are no answer give an error and never a panic, and no length
// inside them makes us allocate more than they hold.
func FuzzFetchAnswer(f *testing.F) {
	for v := minFetch; v <= maxFetch; v++ {
		f.Add(byte(v), framed(fetchAnswer(v, 2, []byte("records")), 1)[4:])
	}
	f.Fuzz(func(t *testing.T, v byte, body []byte) {
		version := minFetch + int16(v)%(maxFetch-minFetch+1)
		c := bare()
		l, _ := piped(c, version, maxProduce)
		conn := fetchOver(l)
		conn.Want(wantFrom(kafka.TopicPartition{Topic: "orders"}, theTopic, 0))
		conn.session.appendRequest(nil, version, 1, "id", "", limits)
		got, err := conn.decode(1, kafka.NewBuffer(body, nil))
		if err == nil && got != nil {
			for _, p := range got.Partitions {
				if len(p.Records) > len(body) {
					t.Fatal("records larger than the answer")
				}
			}
		}
	})
}

func FuzzProduceAnswer(f *testing.F) {
	for v := minProduce; v <= maxProduce; v++ {
		f.Add(byte(v), framed(produceAnswer(v), 5)[4:])
	}
	f.Fuzz(func(_ *testing.T, v byte, body []byte) {
		version := minProduce + int16(v)%(maxProduce-minProduce+1)
		p := pendingProduce{req: produceRequest(""), version: version, byID: version >= produceTopicIDs, number: 5}
		d := produceDecoder{client: bare()}
		_ = d.decode(body, &p)
	})
}

// A fetch round trip allocates nothing once warm, however many batches it has.
func TestFetchAllocatesNothing(t *testing.T) {
	c := bare()
	l, theirs := piped(c, maxFetch, maxProduce)
	defer theirs.Close()
	go canned(theirs, framed(fetchAnswer(maxFetch, 100, make([]byte, 4000)), 0))
	f := fetchOver(l)
	defer f.finish()
	ctx := deadline(t)
	offset := int64(0)
	once := func() {
		offset++
		for p := range int32(100) {
			f.Want(wantFrom(kafka.TopicPartition{Topic: "orders", Partition: p}, theTopic, offset))
		}
		got, err := f.Fetch(ctx, limits)
		if err != nil || len(got.Partitions) != 100 {
			t.Fatal(err)
		}
		got.Buffer.Release()
	}
	once()
	// The hint's address is one string an answer; net.Pipe's deadlines are timers.
	if n := testing.AllocsPerRun(200, once); n > 15 {
		t.Errorf("%.1f allocations for 100 batches", n)
	}
}

func TestProduceAllocatesNothing(t *testing.T) {
	c := bare()
	var req kafka.ProduceRequest
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = maxProduce
	topic := kmsg.NewProduceResponseTopic()
	topic.TopicID = theTopic
	for p := range int32(100) {
		req.Partitions = append(req.Partitions, kafka.ProducePartition{
			TopicPartition: kafka.TopicPartition{Topic: "orders", Partition: p}, TopicID: theTopic, Batch: make([]byte, 4000),
		})
		rp := kmsg.NewProduceResponseTopicPartition()
		rp.Partition = p
		topic.Partitions = append(topic.Partitions, rp)
	}
	resp.Topics = append(resp.Topics, topic)
	req.Acks = -1
	l, theirs := piped(c, maxFetch, maxProduce)
	defer theirs.Close()
	go canned(theirs, framed(resp, 0))
	p := c.newProduceConn(t.Context(), l)
	answered := make(chan int, 1)
	done := func(a *kafka.Produced, _ error) { answered <- len(a.Partitions) }
	once := func() {
		if err := p.Send(&req, done); err != nil {
			t.Fatal(err)
		}
		if n := <-answered; n != 100 {
			t.Fatal(n)
		}
	}
	once()
	if n := testing.AllocsPerRun(200, once); n > 5 {
		t.Errorf("%.1f allocations for 100 batches", n)
	}
	p.Close()
	<-p.Done()
}

// What follows runs on a clock of its own: nothing of it waits in real time.

func TestThrottleDelaysOnlyThisConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare()
		l, theirs := piped(c, maxFetch, maxProduce)
		defer theirs.Close()
		resp := fetchAnswer(maxFetch, 1, nil)
		resp.ThrottleMillis = 1500
		go canned(theirs, framed(resp, 0))
		f := fetchOver(l)
		defer f.finish()
		f.Want(wantFrom(kafka.TopicPartition{Topic: "orders"}, theTopic, 0))
		start := time.Now()
		for i, want := range []time.Duration{0, 1500 * time.Millisecond, 3 * time.Second} {
			got, err := f.Fetch(t.Context(), limits)
			if err != nil {
				t.Fatal(err)
			}
			got.Buffer.Release()
			if at := time.Since(start); at != want {
				t.Errorf("fetch %d at %s, want %s", i, at, want)
			}
		}
		if got := c.Stats().FetchThrottle; got != 4500*time.Millisecond {
			t.Errorf("counted %s", got)
		}
	})
}

func TestThrottleDelaysProduceWithoutBlockingSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare()
		l, theirs := piped(c, maxFetch, maxProduce)
		defer theirs.Close()
		resp := produceAnswer(maxProduce)
		resp.ThrottleMillis = 2000
		go canned(theirs, framed(resp, 0))
		p := c.newProduceConn(t.Context(), l)
		start := time.Now()
		at := make(chan time.Duration, 3)
		sendOne := func() {
			if err := p.Send(produceRequest(""), func(_ *kafka.Produced, err error) {
				if err != nil {
					t.Error(err)
				}
				at <- time.Since(start)
			}); err != nil {
				t.Fatal(err)
			}
		}
		sendOne()
		if d := <-at; d != 0 {
			t.Errorf("first answer after %s", d)
		}
		sendOne()
		if d := time.Since(start); d != 0 {
			t.Errorf("Send blocked for %s", d)
		}
		if d := <-at; d != 2*time.Second {
			t.Errorf("second answer after %s", d)
		}
		p.Close()
		<-p.Done()
		c.wg.Wait()
	})
}

func TestSilentBrokerEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare()
		l, theirs := piped(c, maxFetch, maxProduce)
		defer theirs.Close()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		p := c.newProduceConn(t.Context(), l)
		time.Sleep(time.Hour) // nothing awaited: silence is fine
		start := time.Now()
		failed := make(chan error, 1)
		if err := p.Send(produceRequest(""), func(_ *kafka.Produced, err error) { failed <- err }); err != nil {
			t.Fatal(err)
		}
		err := <-failed
		if d := time.Since(start); d != 30*time.Second+500*time.Millisecond+deadlineStep {
			t.Errorf("given up after %s", d)
		}
		if kafka.ClassOf(err) != kafka.ClassRetry || !strings.Contains(err.Error(), "no answer in time") {
			t.Error(err)
		}
		<-p.Done()
		c.wg.Wait()
	})
}

// The login's end: requests go on over the fresh link, after the old one's
// last answer.
func TestFreshLinkTakesOverInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare()
		l, theirs := piped(c, maxFetch, maxProduce)
		p := c.newProduceConn(t.Context(), l)
		var order []int
		sendOne := func(i int) {
			if err := p.Send(produceRequest(""), func(_ *kafka.Produced, err error) {
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
			}); err != nil {
				t.Error(err)
			}
		}
		go sendOne(0)
		first := make([]byte, 4)
		if _, err := io.ReadFull(theirs, first); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(first))
		if _, err := io.ReadFull(theirs, body); err != nil {
			t.Fatal(err)
		}
		fresh, freshTheirs := piped(c, maxFetch, maxProduce)
		defer freshTheirs.Close()
		p.replace(l, fresh)
		sendOne(1) // must wait: nothing of it may reach either link yet
		go canned(freshTheirs, framed(produceAnswer(maxProduce), 0))
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("answered %v before the old link's answer", order)
		}
		answer := framed(produceAnswer(maxProduce), 0)
		copy(answer[4:8], body[4:8])
		if _, err := theirs.Write(answer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(order) != 2 || order[0] != 0 || order[1] != 1 {
			t.Errorf("answered %v", order)
		}
		p.Close()
		<-p.Done()
		c.wg.Wait()
	})
}
