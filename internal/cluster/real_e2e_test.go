//go:build e2e

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/recordbatch"
)

// The oldest supported release, and one of each line that people run. What the
// fake cluster is asked in suite_test.go, they are asked too.
func TestRealBrokersConform(t *testing.T) {
	for _, version := range []string{kafkatest.ReleaseOld, kafkatest.ReleaseSource, kafkatest.ReleaseTarget} {
		t.Run(version, func(t *testing.T) {
			k := kafkatest.Start(t, kafkatest.ClusterOptions{
				Version: version, Authorizer: true,
				Listeners:  []kafkatest.Protocol{kafkatest.Plaintext, kafkatest.SASLSSL},
				Properties: map[string]string{"connections.max.reauth.ms": "3000"},
			})
			c := open(t, strings.Split(k.Bootstrap(), ","), nil)
			conformance(t, c)
			conformACLs(t, c)
			conformDeletion(t, c)
			if version != kafkatest.ReleaseOld { // KIP-554 is younger
				conformUsers(t, c)
			}
			realSession(t, c)
			realRenewal(t, k)
		})
	}
}

func secured(k *kafkatest.Cluster) func(*Options) {
	return func(o *Options) {
		o.Security = Security{
			Protocol: "SASL_SSL",
			TLS:      TLSFiles{TrustStore: Store{Path: k.Certificates().TrustJKS, Password: k.Certificates().Password}},
			SASL:     SASL{Mechanism: "PLAIN", Username: "admin", Password: "admin-secret"},
		}
	}
}

// A real broker forgets a session when told a wrong id.
func realSession(t *testing.T, c *Client) {
	makeNamed(t, c, "session", 2)
	tp := kafka.TopicPartition{Topic: "session", Partition: 1}
	b := batch("a", "b")
	produceTo(t, c, tp, b)
	node, id := leaderOf(t, c, tp)
	f := dialFetch(t, c, node)
	for p := range int32(2) {
		f.Want(wantFrom(kafka.TopicPartition{Topic: "session", Partition: p}, id, 0))
	}
	got, _ := fetchUntil(t, f, tp)
	got.Buffer.Release()
	f.Want(wantFrom(tp, id, 2))
	if n := fetchOnce(t, f); n != 0 {
		t.Errorf("an idle session's answer has %d partitions", n)
	}
	f.session.id++
	if n := fetchOnce(t, f); n != 2 || c.Stats().SessionRestarts != 1 {
		t.Errorf("the new session's first answer has %d partitions; %+v", n, c.Stats())
	}
	f.Want(wantFrom(tp, id, 99))
	got, p := fetchUntil(t, f, tp)
	got.Buffer.Release()
	if p.Code != kafka.CodeOffsetOutOfRange {
		t.Errorf("beyond the end: %s", p.Code)
	}
}

func makeNamed(t *testing.T, c *Client, topic string, partitions int32) {
	t.Helper()
	if err := c.CreateTopics(deadline(t), []kafka.NewTopic{{Name: topic, Partitions: partitions, ReplicationFactor: -1}}, false)[topic]; err != nil {
		t.Fatal(err)
	}
	awaitLeaders(t, c, topic, partitions)
}

// Logins of three seconds are renewed under load: no request is lost, doubled
// or overtaken.
func realRenewal(t *testing.T, k *kafkatest.Cluster) {
	c := open(t, strings.Split(k.BootstrapOf(kafkatest.SASLSSL), ","), secured(k))
	makeNamed(t, c, "renewal", 1)
	tp := kafka.TopicPartition{Topic: "renewal"}
	node, id := leaderOf(t, c, tp)
	fetched := make(chan error, 1)
	until := time.Now().Add(8 * time.Second)
	go func() { fetched <- readUntil(t, c, wantFrom(tp, id, 0), node, until) }()

	p := dialProduce(t, c, node)
	b := batch("a", "b")
	next := int64(0) // only the reader goroutine touches it
	inFlight := make(chan struct{}, 5)
	for time.Now().Before(until) {
		inFlight <- struct{}{}
		req := &kafka.ProduceRequest{Acks: -1, TimeoutMillis: 5000, Partitions: []kafka.ProducePartition{{TopicPartition: tp, TopicID: id, Batch: b}}}
		err := p.Send(req, func(a *kafka.Produced, err error) {
			if err != nil || a.Partitions[0].Code != 0 || a.Partitions[0].BaseOffset != next {
				t.Errorf("%v %+v, want base offset %d", err, a, next)
			}
			next += 2
			<-inFlight
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range cap(inFlight) {
		inFlight <- struct{}{}
	}
	if err := <-fetched; err != nil {
		t.Error(err)
	}
	if n := c.Stats().Reauthentications; n < 4 {
		t.Errorf("%d logins were renewed, want 2 on each connection", n)
	}
}

func readUntil(t *testing.T, c *Client, want kafka.FetchPartition, node int32, until time.Time) error {
	f, err := c.DialFetch(t.Context(), node)
	if err != nil {
		return err
	}
	defer f.Close()
	for time.Now().Before(until) {
		f.Want(want)
		got, err := f.Fetch(t.Context(), limits)
		if err != nil {
			return err
		}
		for i := range got.Partitions {
			p := &got.Partitions[i]
			_, next, err := decodeRecords(p, want.Offset, kafka.ReadUncommitted)
			if err != nil || p.Code != 0 {
				return errors.Join(err, p.Code.Err())
			}
			want.Offset = next
		}
		got.Buffer.Release()
	}
	return nil
}

func TestRealRefusalsAreExplained(t *testing.T) {
	k := kafkatest.Start(t, kafkatest.ClusterOptions{
		Version:   kafkatest.ReleaseTarget,
		Listeners: []kafkatest.Protocol{kafkatest.SASLSSL, kafkatest.SASLPlaintext},
	})
	tls, plain := k.BootstrapOf(kafkatest.SASLSSL), k.BootstrapOf(kafkatest.SASLPlaintext)
	tests := map[string]struct {
		addr   string
		change func(*Options)
		want   string
	}{
		"wrong password":    {tls, func(o *Options) { o.Security.SASL.Password = "no" }, "SASL_AUTHENTICATION_FAILED"},
		"unknown authority": {tls, func(o *Options) { o.Security.TLS.TrustStore = Store{} }, "unknown authority"},
		"plain to TLS":      {tls, func(o *Options) { o.Security.Protocol = "SASL_PLAINTEXT" }, "the listener speaks TLS"},
		"TLS to plain":      {plain, func(*Options) {}, "TLS handshake"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := open(t, []string{test.addr}, func(o *Options) {
				secured(k)(o)
				test.change(o)
			})
			_, err := c.Topics(deadline(t))
			if err == nil || !strings.Contains(err.Error(), test.want) || kafka.ClassOf(err) != kafka.ClassOperator {
				t.Errorf("class %s: %v", kafka.ClassOf(err), err)
			}
		})
	}
}

// What is read from one cluster is accepted by another as it is, whatever its
// codec: only the header is stamped.
func TestRealBatchesGoFromClusterToCluster(t *testing.T) {
	versions := []string{kafkatest.ReleaseOld, kafkatest.ReleaseSource, kafkatest.ReleaseTarget}
	for i, version := range versions {
		from := kafkatest.Start(t, kafkatest.ClusterOptions{Version: version})
		to := kafkatest.Start(t, kafkatest.ClusterOptions{Version: versions[(i+1)%len(versions)]})
		source, target := open(t, []string{from.Bootstrap()}, nil), open(t, []string{to.Bootstrap()}, nil)
		for name, codec := range map[string]kgo.CompressionCodec{
			"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
			"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		} {
			t.Run(from.Version()+" to "+to.Version()+" "+name, func(t *testing.T) {
				makeNamed(t, source, name, 1)
				makeNamed(t, target, name, 1)
				from.Produce(t, kafkatest.Messages(name, 1, 500), kgo.ProducerBatchCompression(codec))
				tp := kafka.TopicPartition{Topic: name}
				forwardAll(t, source, target, tp, 500)
				want, got := allRecords(t, source, tp, 500), allRecords(t, target, tp, 500)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func forwardAll(t *testing.T, source, target *Client, tp kafka.TopicPartition, end int64) {
	t.Helper()
	node, id := leaderOf(t, source, tp)
	f := dialFetch(t, source, node)
	toNode, toID := leaderOf(t, target, tp)
	p := dialProduce(t, target, toNode)
	for at := int64(0); at < end; {
		f.Want(wantFrom(tp, id, at))
		got, part := fetchUntil(t, f, tp)
		batches := recordbatch.NewScanner(part.Records)
		var b recordbatch.Batch
		for batches.Next(&b) {
			at = b.NextOffset()
			recordbatch.Seal(b.Bytes, recordbatch.Stamp{ProducerID: -1, Epoch: -1, Sequence: -1})
			o := send(t, p, kafka.ProducePartition{TopicPartition: tp, TopicID: toID, Batch: b.Bytes})
			if err := o.failed(); err != nil {
				t.Fatal(err)
			}
		}
		got.Buffer.Release()
	}
}

func allRecords(t *testing.T, c *Client, tp kafka.TopicPartition, end int64) []kafka.Record {
	t.Helper()
	var all []kafka.Record
	err := c.ReadRecords(deadline(t), tp, 0, end, kafka.ReadCommitted, func(r kafka.Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil || len(all) != int(end) {
		t.Fatalf("%d records, %v", len(all), err)
	}
	return all
}

// A broker that leads a partition no more names its successor (KIP-951), in the
// answer to a fetch and in the answer to a produce, and nobody asks for metadata.
func TestRealAnswersNameTheNewLeader(t *testing.T) {
	for _, version := range []string{kafkatest.ReleaseSource, kafkatest.ReleaseTarget} {
		t.Run(version, func(t *testing.T) {
			k := kafkatest.Start(t, kafkatest.ClusterOptions{Version: version, Brokers: 2})
			k.CreateTopic(t, "moving", 1, nil)
			c := open(t, strings.Split(k.Bootstrap(), ","), nil)
			tp := kafka.TopicPartition{Topic: "moving"}
			produceTo(t, c, tp, batch("a"))
			old, id := leaderOf(t, c, tp)
			_, epoch, _, _ := c.Leader(tp)
			f, p := dialFetch(t, c, old), dialProduce(t, c, old)
			f.Want(wantFrom(tp, id, 0))
			got, _ := fetchUntil(t, f, tp)
			got.Buffer.Release()
			next := passLeadership(t, k, tp)
			refreshes := c.Stats().MetadataRefreshes

			var code kafka.Code
			for ctx := deadline(t); code == kafka.CodeNone; { // the old leader hears of it a moment later
				if ctx.Err() != nil {
					t.Fatal("the old leader takes records for ever")
				}
				o := send(t, p, kafka.ProducePartition{TopicPartition: tp, TopicID: id, Batch: batch("b")})
				if o.err != nil {
					t.Fatal(o.err)
				}
				code = o.produced.Partitions[0].Code
				if code != kafka.CodeNone && (code != kafka.CodeNotLeaderOrFollower || o.produced.Partitions[0].Leader.Node != next) {
					t.Errorf("produce: %s names %+v, node %d leads", code, o.produced.Partitions[0].Leader, next)
				}
			}
			// Followers serve reads too: it is the epoch that is wrong now.
			want := wantFrom(tp, id, 0)
			want.CurrentEpoch = epoch
			f.Want(want)
			got, part := fetchUntil(t, f, tp)
			got.Buffer.Release()
			if part.Code != kafka.CodeFencedLeaderEpoch || part.Leader.Node != next {
				t.Errorf("fetch: %s names %+v, node %d leads", part.Code, part.Leader, next)
			}
			if node, _ := leaderOf(t, c, tp); node != next {
				t.Errorf("node %d is known to lead, %d leads", node, next)
			}
			g := dialFetch(t, c, next)
			g.Want(wantFrom(tp, id, 0))
			got, part = fetchUntil(t, g, tp)
			got.Buffer.Release()
			if part.Code != kafka.CodeNone {
				t.Errorf("the new leader answers %s", part.Code)
			}
			if n := c.Stats().MetadataRefreshes - refreshes; n > 0 {
				t.Errorf("%d requests for metadata", n)
			}
		})
	}
}

// passLeadership makes the other replica of a partition its leader.
func passLeadership(t *testing.T, k *kafkatest.Cluster, tp kafka.TopicPartition) int32 {
	t.Helper()
	ctx, adm := deadline(t), k.Admin(t)
	leader := func() (int32, []int32) {
		topics, err := adm.ListTopics(ctx, tp.Topic)
		if err != nil {
			t.Fatal(err)
		}
		p := topics[tp.Topic].Partitions[tp.Partition]
		return p.Leader, p.Replicas
	}
	old, replicas := leader()
	next := replicas[0]
	if next == old {
		next = replicas[1]
	}
	var order kadm.AlterPartitionAssignmentsReq
	order.Assign(tp.Topic, tp.Partition, []int32{next, old})
	assigned, err := adm.AlterPartitionAssignments(ctx, order)
	if err == nil {
		err = assigned.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	for now, order := leader(); now != next; now, order = leader() {
		if ctx.Err() != nil {
			t.Fatal("the leader stays")
		}
		if order[0] == next { // an error is an election that has happened
			_, _ = adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{tp.Topic: {tp.Partition: {}}})
		}
		time.Sleep(50 * time.Millisecond)
	}
	return next
}
