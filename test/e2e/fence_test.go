//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/recordbatch"
)

// protocol1 is the newest version of AddPartitionsToTxn and EndTxn before
// transactions of KIP-890, which begin by themselves.
const protocol1 = 3

var errNoMarker = errors.New("not exactly one abort marker in the partition")

// owner writes plain idempotent batches under a transactional id's producer id.
type owner struct {
	t       *testing.T
	cluster *kafkatest.Cluster
	client  *kgo.Client
	txnID   string
	topic   string
	kafka.ProducerID
}

// newOwner takes the id over, as the next instance of a lane does.
func newOwner(t *testing.T, c *kafkatest.Cluster, txnID, topic string) *owner {
	t.Helper()
	return newOwnerFor(t, c, txnID, topic, time.Minute)
}

// newOwnerFor is newOwner with another time that a transaction may stay open.
func newOwnerFor(t *testing.T, c *kafkatest.Cluster, txnID, topic string, timeout time.Duration) *owner {
	t.Helper()
	o := &owner{t: t, cluster: c, client: c.Client(t), txnID: txnID, topic: topic}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &txnID, int32(timeout.Milliseconds())
	// A coordinator that was never asked before takes a moment.
	eventually(t, func() error {
		resp, err := req.RequestWith(t.Context(), o.client)
		if err != nil {
			return err
		}
		o.ProducerID = kafka.ProducerID{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return o
}

// write sends one batch of four records and returns the broker's verdict.
func (o *owner) write(partition, sequence int32, named bool) kafka.Code {
	o.t.Helper()
	batch := good(time.Now().UnixMilli())
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = o.ID, o.Epoch, sequence
	in := kafkatest.RawProduce{Topic: o.topic, Partition: partition, Batches: batch.Bytes()}
	if named {
		in.TransactionalID = o.txnID
	}
	answer, err := o.cluster.ProduceRaw(o.t.Context(), in)
	if err != nil {
		o.t.Fatal(err)
	}
	return answer.Code
}

// add adds partitions to the transaction by protocol 1.
func (o *owner) add(partitions ...int32) {
	o.t.Helper()
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = o.txnID, o.ID, o.Epoch
	topic := kmsg.NewAddPartitionsToTxnRequestTopic()
	topic.Topic, topic.Partitions = o.topic, partitions
	add.Topics = append(add.Topics, topic)
	eventually(o.t, func() error {
		raw, err := kafkatest.RequestCapped(o.t.Context(), o.client, add, protocol1)
		if err != nil {
			return err
		}
		for _, p := range raw.(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
		return nil
	})
}

// fence puts an abort marker into every partition of the topic.
func (o *owner) fence(partitions ...int32) {
	o.t.Helper()
	o.add(partitions...)
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch = o.txnID, o.ID, o.Epoch
	eventually(o.t, func() error {
		raw, err := kafkatest.RequestCapped(o.t.Context(), o.client, end, protocol1)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(raw.(*kmsg.EndTxnResponse).ErrorCode)
	})
}

// TestAbortMarkerFencesZombies restates the fence step by step, on every release
// we support: a marker, and nothing before it, ends a predecessor's writing.
func TestAbortMarkerFencesZombies(t *testing.T) {
	a, b := kafkatest.Pair(t)
	for _, c := range []*kafkatest.Cluster{kafkatest.Shared(t, kafkatest.ReleaseOld), a, b} {
		t.Run(c.Version(), func(t *testing.T) { fenceSteps(t, c) })
	}
}

func fenceSteps(t *testing.T, c *kafkatest.Cluster) {
	topic, txnID := kafkatest.Name(t, ""), kafkatest.Name(t, "lane")
	c.CreateTopic(t, topic, 2, nil)
	expect := func(step string, got, want kafka.Code) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
	}

	zombie := newOwner(t, c, txnID, topic)
	expect("plain batch under a transactional id's producer id", zombie.write(0, 0, false), kafka.CodeNone)
	expect("the same with the id in the request", zombie.write(0, 4, true), kafka.CodeNone)
	expect("on another partition", zombie.write(1, 0, false), kafka.CodeNone)

	next := newOwner(t, c, txnID, topic)
	if next.ID != zombie.ID || next.Epoch != zombie.Epoch+1 {
		t.Fatalf("the next owner got %v after %v, want the same id and the next epoch", next.ProducerID, zombie.ProducerID)
	}
	expect("a zombie's batch after InitProducerId", zombie.write(0, 8, false), kafka.CodeNone)

	next.fence(0, 1)
	for p := range int32(2) {
		awaitMarker(t, c, topic, p)
		expect("a zombie's batch after the marker", zombie.write(p, 12, false), kafka.CodeInvalidProducerEpoch)
		expect("the next owner's first batch", next.write(p, 0, false), kafka.CodeNone)
	}
	// Three batches of the zombie and one of the next owner; nothing was aborted.
	if got := len(c.ReadTopic(t, topic)[0]); got != 16 {
		t.Errorf("%d records to read, want 16", got)
	}
}

// awaitMarker waits for exactly one abort marker in a partition.
func awaitMarker(t *testing.T, c *kafkatest.Cluster, topic string, partition int32) {
	t.Helper()
	eventually(t, func() error {
		raw, err := c.StoredBatches(t.Context(), topic, partition, 0)
		if err != nil {
			return err
		}
		markers := 0
		scanner := recordbatch.NewScanner(raw)
		for batch := (recordbatch.Batch{}); scanner.Next(&batch); {
			if kind, ok := recordbatch.Control(&batch); ok && kind == recordbatch.ControlAbort {
				markers++
			}
		}
		if err := scanner.Err(); err != nil {
			return err
		}
		if markers != 1 {
			return errNoMarker
		}
		return nil
	})
}

// eventually repeats a step until it succeeds, for half a minute.
func eventually(t *testing.T, step func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		err := step()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-poll.C:
		}
	}
}
