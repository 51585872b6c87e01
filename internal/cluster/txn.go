package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// InitProducerID takes over a transactional id: it raises the id's epoch, which
// fences older owners at the coordinator, and aborts what they left open. An
// empty id asks for a plain idempotent producer instead.
func (c *Client) InitProducerID(ctx context.Context, txnID string, timeout time.Duration) (kafka.ProducerID, error) {
	const op = "take over transactional id"
	req := kmsg.NewPtrInitProducerIDRequest()
	if txnID != "" {
		req.TransactionalID = new(txnID)
	}
	req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return kafka.NoProducer, c.fail(op, txnID, err)
	}
	if err := c.answered(op, txnID, resp.ErrorCode, nil); err != nil {
		return kafka.NoProducer, err
	}
	return kafka.ProducerID{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}, nil
}

// AddPartitionsToTxn opens the transaction if need be and adds the partitions.
// Kafka takes all or none: one missing topic fails the whole, and the error
// names the partition that was refused for a reason of its own.
func (c *Client) AddPartitionsToTxn(ctx context.Context, txnID string, pid kafka.ProducerID, tps []kafka.TopicPartition) error {
	const op = "add partitions to transaction"
	if len(tps) == 0 {
		return nil
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = txnID, pid.ID, pid.Epoch
	index := make(map[string]int)
	for _, tp := range tps {
		i, ok := index[tp.Topic]
		if !ok {
			i = len(req.Topics)
			index[tp.Topic] = i
			t := kmsg.NewAddPartitionsToTxnRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, tp.Partition)
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return c.fail(op, txnID, err)
	}
	return c.addedPartitions(op, txnID, resp)
}

func (c *Client) addedPartitions(op, txnID string, resp *kmsg.AddPartitionsToTxnResponse) error {
	var worst error
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for _, p := range t.Partitions {
			tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			err := c.answered(op, fmt.Sprintf("%s %s", txnID, tp), p.ErrorCode, nil)
			// OPERATION_NOT_ATTEMPTED only says that another partition failed.
			if err != nil && (worst == nil || kafka.CodeOf(worst) == kafka.CodeOperationNotAttempted) {
				worst = err
			}
		}
	}
	return worst
}

// EndTxn commits or aborts. The coordinator writes the markers afterwards: its
// success does not prove that a partition has one.
func (c *Client) EndTxn(ctx context.Context, txnID string, pid kafka.ProducerID, commit bool) error {
	op := "abort transaction"
	if commit {
		op = "commit transaction"
	}
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = txnID, pid.ID, pid.Epoch, commit
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return c.fail(op, txnID, err)
	}
	return c.answered(op, txnID, resp.ErrorCode, nil)
}

// FindTransactionCoordinator asks who coordinates a transactional id. A cluster
// that has never seen a transaction makes its coordinator's topic on the way,
// which takes a second or two: asking early takes that off the first takeover.
func (c *Client) FindTransactionCoordinator(ctx context.Context, txnID string) error {
	const transactional = 1
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys, req.CoordinatorType = txnID, []string{txnID}, transactional
	if _, err := req.RequestWith(ctx, c.kgo); err != nil {
		return c.fail("find transaction coordinator", txnID, err)
	}
	return nil
}
