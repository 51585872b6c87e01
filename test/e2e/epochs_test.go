//go:build e2e && long

package e2e

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// Where the epochs of a producer id have run out, a commit by protocol 2 answers another
// id, also to who asks again. The epoch is raised 32,766 times for it.
func TestCommitAnswersAnotherProducerID(t *testing.T) {
	_, c := kafkatest.Pair(t)
	topic, txnID := kafkatest.Name(t, ""), kafkatest.Name(t, "lane")
	c.CreateTopic(t, topic, 1, nil)
	o := newOwner(t, c, txnID, topic)
	const last = 1<<15 - 2
	for o.Epoch < last {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &txnID, 60_000
		resp, err := req.RequestWith(t.Context(), o.client)
		if err != nil {
			t.Fatal(err)
		}
		if kerr.ErrorForCode(resp.ErrorCode) == nil {
			o.ProducerID = kafka.ProducerID{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}
		}
	}
	old := o.ProducerID
	if code := o.joins(0, 0); code != kafka.CodeNone {
		t.Fatal(code)
	}
	next, code := o.end(old, true, endTxn2)
	if code != kafka.CodeNone || next.ID == old.ID || next.Epoch != 0 {
		t.Errorf("the commit of %v answered %v, %v: want another id", old, next, code)
	}
	again, code := o.end(old, true, endTxn2)
	if code != kafka.CodeNone || again != next {
		t.Errorf("asked again it answered %v, %v: want %v", again, code, next)
	}
	o.ProducerID = again
	if code := o.joins(0, 0); code != kafka.CodeNone {
		t.Errorf("the first batch under the other id: %v", code)
	}
	if _, code := o.end(again, true, endTxn2); code != kafka.CodeNone {
		t.Errorf("its commit: %v", code)
	}
}
