package coord

import (
	"context"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
)

const (
	// SessionTimeout is the lane group's session: how long a silent owner keeps its lanes.
	SessionTimeout = 10 * time.Second
)

// Fence is a rung of the ladder: how an owner makes sure that the last one is silent.
type Fence string

// The rungs, from the strongest.
const (
	FenceMarker Fence = "marker"
	FenceLease  Fence = "lease+wait+scan"
)

// identity is the producer identity of a lane for this ownership.
type identity struct {
	producer kafka.ProducerID
	txnID    string // empty on the lower rung
	fence    Fence
	why      string // why the lower rung
}

// coordinatorPatience is how long a transaction coordinator may be moving. A
// target that cannot make its transaction log, for want of brokers, never has
// one: MirrorMaker runs there all the same, and so do we. A coordinator that
// comes later costs nothing: the lower rung is as safe, only slower.
const coordinatorPatience = 20 * time.Second

// identify takes the lane's producer id. Where the target gives no transactional
// one (no right, no coordinator, too old), a plain id serves and the fence is
// the lower rung.
func (k *Keeper) identify(ctx context.Context, lane int32) (identity, error) {
	txnID := fmt.Sprintf("%s-%s-%d", k.opts.GroupID, mirror.SourceConnector, lane)
	for began := time.Now(); ; {
		pid, err := k.target.InitProducerID(ctx, txnID, replicate.TransactionTimeout)
		if err == nil {
			return identity{producer: pid, txnID: txnID, fence: FenceMarker}, nil
		}
		if !kafka.Heals(err) && k.opts.ExactlyOnce {
			return identity{}, fmt.Errorf("exactly-once needs transactional id %s on the target: %w", txnID, err)
		}
		none := kafka.CodeOf(err) == kafka.CodeCoordinatorNotAvailable && time.Since(began) > coordinatorPatience
		if !kafka.Heals(err) || none && !k.opts.ExactlyOnce {
			k.log.Warn("the target gives no transactional producer id: lanes are fenced by lease, wait and scan", "lane", lane, "err", err)
			return k.identifyPlain(ctx, err)
		}
		if ctx.Err() != nil {
			return identity{}, err
		}
		pause(ctx, retryPause)
	}
}

func (k *Keeper) identifyPlain(ctx context.Context, cause error) (identity, error) {
	pid, err := k.target.InitProducerID(ctx, "", replicate.TransactionTimeout)
	if err != nil {
		return identity{}, fmt.Errorf("no producer id from the target: %w", err)
	}
	return identity{producer: pid, fence: FenceLease, why: cause.Error()}, nil
}

// mark writes an abort marker into partitions, under the lane's identity. It keeps
// to protocol 1 on every feature level: the epoch that InitProducerId gave stays,
// and whether an owner holds the newest one hangs on no answer that may be lost. A
// deleted partition would fail the whole request, so that each failing set is
// tried partition by partition; those that cannot be marked are left out and
// named. It tells under which identity each was marked.
func (k *Keeper) mark(ctx context.Context, id identity, tps []kafka.TopicPartition) (marked map[kafka.TopicPartition]kafka.ProducerID, err error) {
	marked = map[kafka.TopicPartition]kafka.ProducerID{}
	if len(tps) == 0 {
		return marked, nil
	}
	added, err := k.addPartitions(ctx, id, tps)
	if err != nil {
		return nil, err
	}
	if len(added) == 0 {
		return marked, nil
	}
	if err := k.retry(ctx, func() error { return k.target.EndTxn(ctx, id.txnID, id.producer, false) }); err != nil {
		return nil, fmt.Errorf("end the fencing transaction %s: %w", id.txnID, err)
	}
	for _, tp := range added {
		marked[tp] = id.producer
	}
	return marked, nil
}

func (k *Keeper) addPartitions(ctx context.Context, id identity, tps []kafka.TopicPartition) ([]kafka.TopicPartition, error) {
	err := k.retry(ctx, func() error { return k.target.AddPartitionsToTxn(ctx, id.txnID, id.producer, tps) })
	if err == nil {
		return tps, nil
	}
	if kafka.ClassOf(err) == kafka.ClassFence || ctx.Err() != nil {
		return nil, fmt.Errorf("fence %d partitions with %s: %w", len(tps), id.txnID, err)
	}
	if len(tps) == 1 {
		k.log.Warn("a partition cannot be fenced yet", "topic", tps[0].Topic, "partition", tps[0].Partition, "err", err)
		return nil, nil
	}
	var added []kafka.TopicPartition
	for _, tp := range tps {
		one, err := k.addPartitions(ctx, id, []kafka.TopicPartition{tp})
		if err != nil {
			return nil, err
		}
		added = append(added, one...)
	}
	return added, nil
}

// retries is how often a coordinator is asked again before a set is split or a
// takeover starts over.
const retries = 50

func (k *Keeper) retry(ctx context.Context, ask func() error) error {
	var err error
	for range retries {
		if err = ask(); err == nil || kafka.ClassOf(err) != kafka.ClassRetry || ctx.Err() != nil {
			return err
		}
		pause(ctx, retryPause)
	}
	return err
}

// NoteTransactionVersion tells the target's finalized feature transaction.version.
// It may be raised and lowered while lanes run.
func (k *Keeper) NoteTransactionVersion(level int16) { k.transactionVersion.Store(int32(level)) }

// ProtocolOf is the protocol of transactions that a cluster's feature level asks for.
func ProtocolOf(transactionVersion int16) replicate.Protocol {
	if transactionVersion >= 2 {
		return replicate.Protocol2
	}
	return replicate.Protocol1
}

// transactions is a lane's transactional id for the data plane.
type transactions struct {
	keeper *Keeper
	txnID  string
}

// Protocol follows the target's feature level.
func (t transactions) Protocol() replicate.Protocol {
	return ProtocolOf(int16(t.keeper.transactionVersion.Load()))
}

// completePause is the pause while the coordinator still writes the last
// transaction's markers: usually a few milliseconds.
const completePause = 3 * time.Millisecond

// Add opens the transaction if need be and adds partitions to it.
func (t transactions) Add(ctx context.Context, pid kafka.ProducerID, tps []kafka.TopicPartition) error {
	for {
		err := t.keeper.target.AddPartitionsToTxn(ctx, t.txnID, pid, tps)
		if kafka.CodeOf(err) != kafka.CodeConcurrentTransactions || ctx.Err() != nil {
			return err
		}
		pause(ctx, completePause)
	}
}

// Commit commits it.
func (t transactions) Commit(ctx context.Context, p replicate.Protocol, pid kafka.ProducerID) (kafka.ProducerID, error) {
	if p == replicate.Protocol2 {
		return t.keeper.target.CommitTxn(ctx, t.txnID, pid)
	}
	return pid, t.keeper.target.EndTxn(ctx, t.txnID, pid, true)
}
