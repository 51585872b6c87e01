package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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

// endTxn2 is the first version of EndTxn that answers the producer id and epoch of
// the next transaction.
const endTxn2 = 5

// CommitTxn commits by protocol 2 (KIP-890's second part) and returns under which
// producer id and epoch the lane goes on. Asked again after a lost answer it
// answers the same, unless another owner has taken the id over.
func (c *Client) CommitTxn(ctx context.Context, txnID string, pid kafka.ProducerID) (kafka.ProducerID, error) {
	const op = "commit transaction"
	ender, err := c.ender()
	if err != nil {
		return kafka.NoProducer, c.fail(op, txnID, err)
	}
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = txnID, pid.ID, pid.Epoch, true
	resp, err := req.RequestWith(ctx, ender)
	if err != nil {
		return kafka.NoProducer, c.fail(op, txnID, err)
	}
	if err := c.answered(op, txnID, resp.ErrorCode, nil); err != nil {
		return kafka.NoProducer, err
	}
	if resp.Version < endTxn2 || resp.ProducerID < 0 {
		return kafka.NoProducer, &kafka.Error{
			Op: op, Cluster: c.opts.Alias, Subject: txnID, Class: kafka.ClassOperator, Err: kafka.CodeUnsupportedVersion,
			Hint: "the coordinator is older than the cluster's feature transaction.version says",
		}
	}
	return kafka.ProducerID{ID: resp.ProducerID, Epoch: resp.ProducerEpoch}, nil
}

func (c *Client) ender() (*kgo.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, errClientClosed
	}
	if c.mu.ender == nil {
		v := versions()
		v.SetMaxKeyVersion(int16(kmsg.EndTxn), endTxn2)
		cl, err := kgo.NewClient(append(c.kgoOptions(), kgo.MaxVersions(v))...)
		if err != nil {
			return nil, err
		}
		c.mu.ender = cl
	}
	return c.mu.ender, nil
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
