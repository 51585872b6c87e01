//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/recordbatch"
)

const (
	transactionFeature = "transaction.version"
	// produce2 is the first version of Produce in which partitions join a transaction by
	// being written to; endTxn2 ends such ones.
	produce2, endTxn2 = 12, 5
	lastOfProtocol1   = 11 // of Produce
)

// transact writes one transactional batch of four records in a version of Produce.
func (o *owner) transact(partition, sequence int32, version int16) kafka.Code {
	o.t.Helper()
	batch := good(time.Now().UnixMilli())
	batch.Attributes |= kafkatest.BitTransactional
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = o.ID, o.Epoch, sequence
	answer, err := o.cluster.ProduceRaw(o.t.Context(), kafkatest.RawProduce{
		Topic: o.topic, Partition: partition, Batches: batch.Bytes(), TransactionalID: o.txnID, Version: version,
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return answer.Code
}

// end asks once for the end of the transaction, under the identity given, until no
// marker is on its way any more.
func (o *owner) end(pid kafka.ProducerID, commit bool, version int16) (kafka.ProducerID, kafka.Code) {
	o.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = o.txnID, pid.ID, pid.Epoch, commit
	var got *kmsg.EndTxnResponse
	eventually(o.t, func() error {
		raw, err := kafkatest.RequestCapped(o.t.Context(), o.client, req, version)
		if err != nil {
			return err
		}
		got = raw.(*kmsg.EndTxnResponse)
		if err := kerr.ErrorForCode(got.ErrorCode); errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		return nil
	})
	return kafka.ProducerID{ID: got.ProducerID, Epoch: got.ProducerEpoch}, kafka.Code(got.ErrorCode)
}

// joins writes the first batch of a transaction, again while the last one's markers
// are on their way.
func (o *owner) joins(partition, sequence int32) kafka.Code {
	o.t.Helper()
	var code kafka.Code
	eventually(o.t, func() error {
		if code = o.transact(partition, sequence, produce2); code == kafka.CodeConcurrentTransactions {
			return code
		}
		return nil
	})
	return code
}

// TestTransactionsOfProtocol2 states what the model of the coordinator in package
// replicate's tests rests on: what the transactions of KIP-890's second part do on
// clusters of either feature level.
func TestTransactionsOfProtocol2(t *testing.T) {
	levels := []int16{2, 0}
	if long() {
		levels = []int16{2, 1, 0}
	}
	for _, level := range levels {
		t.Run(fmt.Sprintf("level %d", level), func(t *testing.T) {
			c := kafkatest.Start(t, kafkatest.ClusterOptions{
				Name: fmt.Sprintf("level%d", level), Version: kafkatest.ReleaseTarget, Features: map[string]int16{transactionFeature: level},
				Properties: map[string]string{"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"},
			})
			if level == 0 {
				noProtocol2(t, c)
			} else {
				protocol2(t, c)
			}
		})
	}
}

// On level 0 a coordinator cannot write down that a transaction is of protocol 2, and
// stays in the middle of it until it is loaded again.
func noProtocol2(t *testing.T, c *kafkatest.Cluster) {
	topic, txnID := kafkatest.Name(t, ""), kafkatest.Name(t, "lane")
	c.CreateTopic(t, topic, 1, nil)
	o := newOwner(t, c, txnID, topic)
	if code := o.transact(0, 0, produce2); code != kafka.CodeUnsupportedVersion {
		t.Errorf("a partition that would join by being written to: %v, want %v", code, kafka.CodeUnsupportedVersion)
	}
	if code := o.transact(0, 0, produce2); code != kafka.CodeConcurrentTransactions {
		t.Errorf("the same again: %v, want %v", code, kafka.CodeConcurrentTransactions)
	}
	broker := c.Brokers()[0]
	if err := broker.Kill(); err != nil {
		t.Fatal(err)
	}
	restart(t, broker)
	o = newOwner(t, c, txnID, topic)
	o.add(0)
	if code := o.transact(0, 0, lastOfProtocol1); code != kafka.CodeNone {
		t.Errorf("a batch of protocol 1 behind a restart: %v", code)
	}
	if _, code := o.end(o.ProducerID, true, protocol1); code != kafka.CodeNone {
		t.Errorf("its commit: %v", code)
	}
}

func protocol2(t *testing.T, c *kafkatest.Cluster) {
	topic, txnID := kafkatest.Name(t, ""), kafkatest.Name(t, "lane")
	c.CreateTopic(t, topic, 3, nil)
	expect := func(step string, got, want kafka.Code) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
	}
	o := newOwner(t, c, txnID, topic)
	first := o.ProducerID
	expect("a partition that joins by being written to", o.joins(0, 0), kafka.CodeNone)
	expect("its next batch", o.transact(0, 4, produce2), kafka.CodeNone)
	expect("one that was not added, in a version of protocol 1", o.transact(1, 0, lastOfProtocol1), kafka.CodeTransactionAbortable)
	next, code := o.end(first, true, endTxn2)
	expect("a commit", code, kafka.CodeNone)
	if next != (kafka.ProducerID{ID: first.ID, Epoch: first.Epoch + 1}) {
		t.Fatalf("the commit of %v answered %v, want the next epoch", first, next)
	}
	again, code := o.end(first, true, endTxn2)
	expect("the commit asked again", code, kafka.CodeNone)
	if again != next {
		t.Errorf("the commit asked again answered %v, want %v", again, next)
	}
	_, code = o.end(first, false, endTxn2)
	expect("an abort of what is committed", code, kafka.CodeInvalidTxnState)
	late := *o
	o.ProducerID = next
	expect("a late batch of the transaction that is committed", late.transact(0, 8, produce2), kafka.CodeInvalidProducerEpoch)
	expect("the next transaction begins at sequence 0", o.joins(0, 0), kafka.CodeNone)
	expect("a second partition at once", o.joins(1, 0), kafka.CodeNone)
	_, code = o.end(first, true, endTxn2)
	expect("the first commit asked a third time, while the next transaction is open", code, kafka.CodeProducerFenced)

	// Another owner.
	heir := newOwner(t, c, txnID, topic)
	if heir.ID != o.ID || heir.Epoch <= o.Epoch {
		t.Fatalf("the next owner got %v after %v", heir.ProducerID, o.ProducerID)
	}
	_, code = o.end(o.ProducerID, true, endTxn2)
	expect("a commit of an owner that was replaced", code, kafka.CodeProducerFenced)
	expect("a batch of it where its transaction was aborted", o.transact(1, 4, produce2), kafka.CodeInvalidProducerEpoch)
	expect("a batch of it elsewhere", o.transact(2, 0, produce2), kafka.CodeInvalidProducerEpoch)

	// The fence between two transactions keeps to protocol 1.
	expect("the heir's batch", heir.joins(0, 0), kafka.CodeNone)
	heir.ProducerID, code = heir.end(heir.ProducerID, true, endTxn2)
	expect("its commit", code, kafka.CodeNone)
	heir.fence(2)
	awaitMarker(t, c, topic, 2)
	expect("a batch behind the fence, under the same epoch", heir.joins(0, 0), kafka.CodeNone)
	heir.ProducerID, code = heir.end(heir.ProducerID, true, endTxn2)
	expect("its commit", code, kafka.CodeNone)

	// The protocols follow each other under one identity, both ways.
	heir.add(0)
	expect("protocol 1 behind protocol 2", heir.transact(0, 0, lastOfProtocol1), kafka.CodeNone)
	_, code = heir.end(heir.ProducerID, true, protocol1)
	expect("its commit", code, kafka.CodeNone)
	heir.add(0)
	expect("protocol 2 behind protocol 1: sequences go on", heir.joins(0, 4), kafka.CodeNone)
	heir.ProducerID, code = heir.end(heir.ProducerID, true, endTxn2)
	expect("its commit", code, kafka.CodeNone)
	expect("the next one begins at 0", heir.joins(0, 0), kafka.CodeNone)

	// A coordinator that is restarted remembers; then what is left open times out.
	broker := c.Brokers()[0]
	if err := broker.Kill(); err != nil {
		t.Fatal(err)
	}
	restart(t, broker)
	before := heir.ProducerID
	heir.ProducerID, code = heir.end(before, true, endTxn2)
	expect("a commit behind a restart", code, kafka.CodeNone)
	if again, code = heir.end(before, true, endTxn2); again != heir.ProducerID {
		t.Errorf("a commit asked again behind a restart: %v %v, want %v", code, again, heir.ProducerID)
	}
	brief := newOwnerFor(t, c, txnID, topic, time.Second)
	expect("a batch of a transaction that will time out", brief.joins(0, 0), kafka.CodeNone)
	eventually(t, func() error {
		if code := brief.transact(0, 4, produce2); code != kafka.CodeInvalidProducerEpoch {
			return fmt.Errorf("a batch of a transaction that has timed out: %w", code)
		}
		return nil
	})
	_, code = brief.end(brief.ProducerID, true, endTxn2)
	if code == kafka.CodeNone {
		t.Error("a transaction that has timed out was committed")
	}
	t.Logf("the commit of a transaction that has timed out: %v", code)
	values := c.ReadTopic(t, topic)[0]
	if len(values) != 28 {
		t.Errorf("a read_committed reader sees %d records, want the 28 of seven committed batches", len(values))
	}
}

// An exactly-once flow follows the target's feature level while it runs, and neither
// loses nor doubles a record by either protocol: killed, with answers lost (of commits
// too, which come every second), with its coordinator killed, and while the level is
// raised and lowered again.
func TestExactlyOnceFollowsTheFeatureLevel(t *testing.T) {
	a := kafkatest.Shared(t, kafkatest.ReleaseSource)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "levels", Version: kafkatest.ReleaseTarget, Proxied: true, Features: map[string]int16{transactionFeature: 1},
	})
	tr := newTrial(t, a, b)
	tr.append(tr.to+".exactly.once.source.support = enabled", tr.alias+".consumer.isolation.level = read_committed")
	tr.committed = true
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	l := startLoad(t, a, topic, 4, perSecond/4, 0)
	broker := b.Brokers()[0]
	trouble := func(p *heliograph) *heliograph {
		for range 5 {
			broker.Proxy().Reset()
			time.Sleep(200 * time.Millisecond)
		}
		tr.moves(l)
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		p = tr.start()
		tr.moves(l)
		return p
	}
	p := tr.start()
	p.awaitLog("transactions follow", "\"protocol\":1")
	tr.arrived(l, 1)
	p = trouble(p)
	low := epochs(t, b, tr.remote(topic))
	for _, level := range []int16{2, 1} {
		if err := b.SetFeature(t.Context(), transactionFeature, level); err != nil {
			t.Fatal(err)
		}
		p.awaitLog("feature level of transactions has changed", fmt.Sprintf("\"protocol\":%d", level))
		tr.moves(l)
		p = trouble(p)
		if err := broker.Kill(); err != nil {
			t.Fatal(err)
		}
		restart(t, broker)
		tr.moves(l)
	}
	tr.equal(l)
	p.stop()
	// By protocol 1 the epoch rises with owners, by protocol 2 with commits.
	if high := epochs(t, b, tr.remote(topic)); low > 10 || high < low+3 {
		t.Errorf("epoch %d by protocol 1, %d after protocol 2", low, high)
	}
}

// epochs is the newest producer epoch at the present end of a topic's first partition.
func epochs(t *testing.T, c *kafkatest.Cluster, topic string) (newest int16) {
	t.Helper()
	const tail = 500
	ends, err := c.Admin(t).ListEndOffsets(t.Context(), topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	raw, err := c.StoredBatches(t.Context(), topic, 0, max(0, end.Offset-tail))
	if err != nil {
		t.Fatal(err)
	}
	scanner := recordbatch.NewScanner(raw)
	for batch := (recordbatch.Batch{}); scanner.Next(&batch); {
		newest = max(newest, batch.ProducerEpoch)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return newest
}
