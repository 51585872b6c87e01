package cluster

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
)

// transactionTimeout is after how long the coordinator aborts a transaction whose owner is silent.
const transactionTimeout = 30 * time.Second

// Transact takes a transactional id over, which fences whoever used it before, asks records
// what to write, and writes that to one partition in a transaction. Between the asking and the end
// nobody else can commit under the id. No records is no transaction. An error of the class
// [kafka.ClassFence] means that another took the id over, and nothing of ours can be read; after other
// errors that is not known until the id is taken over again.
func (c *Client) Transact(ctx context.Context, txnID string, tp kafka.TopicPartition, records func(ctx context.Context) ([]kafka.Record, error)) error {
	const op = "write in a transaction to"
	own, err := kgo.NewClient(append(c.kgoOptions(), kgo.TransactionalID(txnID), kgo.TransactionTimeout(transactionTimeout))...)
	if err != nil {
		return c.fail(op, tp.String(), err)
	}
	defer own.Close()
	if _, _, err := own.ProducerID(ctx); err != nil {
		return c.fail(op, tp.String(), err)
	}
	list, err := records(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := own.BeginTransaction(); err != nil {
		return c.fail(op, tp.String(), err)
	}
	out := make([]*kgo.Record, len(list))
	for i := range list {
		out[i] = &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Key: list[i].Key, Value: list[i].Value}
	}
	if err := own.ProduceSync(ctx, out...).FirstErr(); err != nil {
		// The next one who takes the id over aborts what this may leave open.
		_ = own.EndTransaction(ctx, kgo.TryAbort) // it could not be helped either
		return c.fail(op, tp.String(), err)
	}
	if err := own.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return c.fail(op, tp.String(), err)
	}
	return nil
}
