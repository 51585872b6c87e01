package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

func write(t *testing.T, c *Client, tp kafka.TopicPartition, values ...string) {
	t.Helper()
	for _, v := range values {
		if _, err := c.WriteRecords(deadline(t), tp, []kafka.Record{{Value: []byte(v)}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTailFollowsItsPartitionToAnotherLeader(t *testing.T) {
	k, c := fake(t, nil, kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	write(t, c, tp, "0", "1")
	node, _ := leaderOf(t, c, tp)
	ctx, cancel := context.WithCancelCause(deadline(t))
	defer cancel(nil)
	done := errors.New("seen all")
	next := 0
	var late sync.WaitGroup
	err := c.Tail(ctx, map[kafka.TopicPartition]int64{tp: 0}, kafka.ReadUncommitted, func(_ kafka.TopicPartition, r kafka.Record) error {
		if string(r.Value) != fmt.Sprint(next) || r.Offset != int64(next) {
			t.Errorf("record %d is %+v", next, r)
		}
		if next++; next == 4 {
			cancel(done)
		}
		return nil
	}, func() {
		if err := k.MoveTopicPartition("orders", 0, 1-node); err != nil {
			t.Error(err)
		}
		late.Go(func() { write(t, c, tp, "2", "3") })
	})
	if !errors.Is(err, done) || next != 4 {
		t.Errorf("%v after %d records", err, next)
	}
	late.Wait()
}

func TestTailSkipsWhatRetentionTook(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	write(t, c, tp, "0", "1", "2")
	var upTo kadm.Offsets
	upTo.Add(kadm.Offset{Topic: "orders", At: 2})
	if _, err := c.adm.DeleteRecords(deadline(t), upTo); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := c.ReadRecords(deadline(t), tp, 0, 3, kafka.ReadUncommitted, func(r kafka.Record) error {
		got = append(got, string(r.Value))
		return nil
	})
	if err != nil || len(got) != 1 || got[0] != "2" {
		t.Errorf("%v, %v", got, err)
	}
	// Beyond the end there is nothing to skip to: that is for the caller.
	err = c.ReadRecords(deadline(t), tp, 50, 60, kafka.ReadUncommitted, func(kafka.Record) error { return nil })
	if kafka.CodeOf(err) != kafka.CodeOffsetOutOfRange {
		t.Error(err)
	}
}

// A committed reader passes aborted records and markers, and still arrives.
func TestReadPassesAbortedRecords(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	ctx := deadline(t)
	for _, commit := range []bool{false, true} {
		pid, err := c.InitProducerID(ctx, "txn", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddPartitionsToTxn(ctx, "txn", pid, []kafka.TopicPartition{tp}); err != nil {
			t.Fatal(err)
		}
		node, id := leaderOf(t, c, tp)
		p := dialProduce(t, c, node)
		answered := make(chan outcome, 1)
		req := &kafka.ProduceRequest{TransactionalID: "txn", Acks: -1, TimeoutMillis: 5000, Partitions: []kafka.ProducePartition{
			{TopicPartition: tp, TopicID: id, Batch: transactional(batch(fmt.Sprint("committed ", commit)), pid)},
		}}
		if err := p.Send(req, func(a *kafka.Produced, err error) { answered <- copyOutcome(a, err) }); err != nil {
			t.Fatal(err)
		}
		o := <-answered
		if err := o.failed(); err != nil {
			t.Fatal(err)
		}
		if err := c.EndTxn(ctx, "txn", pid, commit); err != nil {
			t.Fatal(err)
		}
	}
	for iso, want := range map[kafka.Isolation]int{kafka.ReadUncommitted: 2, kafka.ReadCommitted: 1} {
		var got []string
		// Two records and two markers.
		err := c.ReadRecords(ctx, tp, 0, 4, iso, func(r kafka.Record) error {
			got = append(got, string(r.Value))
			return nil
		})
		if err != nil || len(got) != want || got[len(got)-1] != "committed true" {
			t.Errorf("isolation %d: %q, %v", iso, got, err)
		}
	}
}

// transactional puts a producer into a batch of the test's own.
func transactional(b []byte, pid kafka.ProducerID) []byte {
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(b); err != nil {
		panic(err)
	}
	rb.Attributes |= 1 << 4
	rb.ProducerID, rb.ProducerEpoch, rb.FirstSequence = pid.ID, pid.Epoch, 0
	return sealed(rb)
}

func TestFetchRenewsItsLogin(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	produceTo(t, c, tp, batch("x"))
	node, id := leaderOf(t, c, tp)
	f := dialFetch(t, c, node)
	f.Want(wantFrom(tp, id, 1))
	fetchOnce(t, f)
	old := f.link.Load()
	old.reauth, old.ended = time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	where, _ := c.topo.node(node)
	c.topo.noteNode(node, endpoint{host: "127.0.0.1", port: 1})
	fetchOnce(t, f) // the new link cannot be had: the old one goes on
	if f.link.Load() != old || time.Until(old.reauth) <= 0 {
		t.Error("the next try is not put off")
	}
	c.topo.noteNode(node, where)
	old.reauth = time.Now().Add(-time.Second)
	fetchOnce(t, f)
	if f.link.Load() == old || c.Stats().Reauthentications != 1 {
		t.Errorf("%+v", c.Stats())
	}
	f.Want(wantFrom(tp, id, 0))
	got, _ := fetchUntil(t, f, tp)
	got.Buffer.Release()
	f.Close()
	f.Close()
	if n := c.Stats().Connections; n != 0 {
		t.Errorf("%d connections are counted after all were closed", n)
	}
}
