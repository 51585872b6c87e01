package replicate

import (
	"context"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

// lastEpoch is the newest epoch that a client gets (TransactionMetadata.isEpochExhausted).
const lastEpoch int16 = 1<<15 - 2

// modelCoordinator is a transaction coordinator as far as one transactional id goes
// (TransactionCoordinator, TransactionMetadata). What it shall answer was seen on real
// brokers by TestTransactionsOfProtocol2.
type modelCoordinator struct {
	level    int16 // of transaction.version
	pid      kafka.ProducerID
	previous int64 // the producer id before the last rotation
	state    txnPhase
	commit   bool // what ending and ended are about
	second   bool // they were asked for by protocol 2
	rotate   bool // epochs are exhausted: another producer id once the markers are written
	txn      *modelTxn
	slow     time.Duration // until the markers are written; drawn where it is 0
	late     int           // batches that a leader took for a transaction that had ended
}

type txnPhase uint8

const (
	txnNone   txnPhase = iota // Empty
	txnOpen                   // Ongoing
	txnEnding                 // PrepareCommit, PrepareAbort: markers are on their way
	txnEnded                  // CompleteCommit, CompleteAbort
)

// modelTxn is one transaction of a producer.
type modelTxn struct {
	producer  int64
	committed bool
	parts     map[kafka.TopicPartition]bool
}

// produceLocked checks what the transaction coordinator checks, then appends.
func (m *model) produceLocked(part kafka.ProducePartition, req *kafka.ProduceRequest) (int64, kafka.Code) {
	h, err := recordbatch.ParseHeader(part.Batch)
	if err != nil {
		return 0, kafka.CodeCorruptMessage
	}
	b := recordbatch.Batch{Header: h, Bytes: part.Batch}
	p, c := m.parts[part.TopicPartition], &m.coordinator
	pid := kafka.ProducerID{ID: h.ProducerID, Epoch: h.ProducerEpoch}
	switch pr := p.producers[pid.ID]; {
	case !b.Transactional():
		return p.produce(part.Batch, nil)
	case req.TransactionalID == "":
		return 0, kafka.CodeTransactionalIDAuthorizationFailed
	case p.open != nil && p.open.producer == pid.ID && pr != nil && pr.epoch == pid.Epoch:
		if c.state != txnOpen {
			c.late++
		}
		return p.produce(part.Batch, p.open) // only the first batch is asked for
	case req.Joins:
		if m.fails() {
			return 0, []kafka.Code{kafka.CodeNotEnoughReplicas, kafka.CodeConcurrentTransactions, kafka.CodeNotCoordinator}[m.rng.IntN(3)]
		}
		if code := c.add(pid, part.TopicPartition); code == kafka.CodeProducerFenced {
			return 0, kafka.CodeInvalidProducerEpoch
		} else if code != kafka.CodeNone {
			return 0, code
		}
	case c.state != txnOpen || c.pid != pid || !c.txn.parts[part.TopicPartition]:
		return 0, kafka.CodeTransactionAbortable
	}
	return p.produce(part.Batch, c.txn)
}

// add is AddPartitionsToTxn, asked by a client or by a broker that a batch came to.
func (c *modelCoordinator) add(pid kafka.ProducerID, tps ...kafka.TopicPartition) kafka.Code {
	switch {
	case pid.ID != c.pid.ID:
		return kafka.CodeInvalidProducerIDMapping
	case pid.Epoch != c.pid.Epoch:
		return kafka.CodeProducerFenced
	case c.state == txnEnding:
		return kafka.CodeConcurrentTransactions
	case c.state != txnOpen:
		c.state, c.second = txnOpen, false
		c.txn = &modelTxn{producer: pid.ID, parts: map[kafka.TopicPartition]bool{}}
	}
	for _, tp := range tps {
		c.txn.parts[tp] = true
	}
	return kafka.CodeNone
}

// endLocked is EndTxn.
func (m *model) endLocked(pid kafka.ProducerID, commit bool, p Protocol) (kafka.ProducerID, kafka.Code) {
	c := &m.coordinator
	again := c.second && c.pid.ID == pid.ID && c.pid.Epoch == pid.Epoch+1
	overflow := c.second && c.previous == pid.ID && pid.Epoch == lastEpoch && c.pid.Epoch == 0
	valid := c.pid == pid
	if c.second {
		valid = again || overflow
	}
	switch {
	case c.pid.ID != pid.ID && !overflow:
		return c.pid, kafka.CodeInvalidProducerIDMapping
	case !valid:
		return c.pid, kafka.CodeProducerFenced
	case c.state == txnNone || c.state != txnOpen && c.commit != commit:
		return c.pid, kafka.CodeInvalidTxnState
	case c.state == txnEnding:
		return c.pid, kafka.CodeConcurrentTransactions
	case c.state == txnEnded:
		return c.pid, kafka.CodeNone
	}
	next := m.finishLocked(commit, p == Protocol2)
	return next, kafka.CodeNone
}

// finishLocked decides on the open transaction, and has the markers written in a
// while. It returns what the producer goes on under.
func (m *model) finishLocked(commit, second bool) kafka.ProducerID {
	c := &m.coordinator
	c.state, c.commit, c.second, c.txn.committed = txnEnding, commit, second, commit
	next := c.pid
	if second {
		c.pid.Epoch++
		next = c.pid
		if c.rotate = c.pid.Epoch > lastEpoch; c.rotate {
			next = kafka.ProducerID{ID: c.pid.ID + 1}
		}
	}
	after := c.slow
	if after == 0 {
		after = time.Duration(1+m.rng.IntN(20)) * time.Millisecond
	}
	time.AfterFunc(after, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.markLocked()
		c.state = txnEnded
		if c.rotate {
			c.rotate, c.previous, c.pid = false, c.pid.ID, next
		}
	})
	return next
}

// markLocked writes the markers of the transaction that ends, by protocol 2 under the
// next epoch.
func (m *model) markLocked() {
	c := &m.coordinator
	for tp := range c.txn.parts {
		p := m.parts[tp]
		p.end++
		for m.fails() {
			p.end++ // a coordinator that moves writes its markers again
		}
		if p.open != nil && p.open.producer == c.pid.ID {
			p.open = nil
		}
		pr := p.producers[c.pid.ID]
		if pr == nil {
			pr = &modelProducer{epoch: c.pid.Epoch - 1}
			p.producers[c.pid.ID] = pr
		}
		if c.pid.Epoch > pr.epoch {
			pr.epoch, pr.last, pr.marked = c.pid.Epoch, nil, true
		}
	}
}

// abort is what happens to an open transaction that has timed out, or whose
// transactional id another owner takes: the epoch rises, by one or by two.
func (m *model) abort() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := &m.coordinator; c.state == txnOpen && c.pid.Epoch <= lastEpoch {
		c.pid.Epoch++
		m.finishLocked(false, c.level >= 2 && c.pid.Epoch <= lastEpoch && m.rng.IntN(2) == 0)
	}
}

// initProducer is InitProducerId, asked until it is answered.
func (m *model) initProducer() kafka.ProducerID {
	m.abort()
	for {
		m.mu.Lock()
		if c := &m.coordinator; c.state == txnNone || c.state == txnEnded {
			if c.pid.Epoch++; c.pid.Epoch > lastEpoch || c.pid.Epoch < 0 {
				c.pid = kafka.ProducerID{ID: c.pid.ID + 1}
			}
			c.state, c.second = txnNone, false
			pid := c.pid
			m.mu.Unlock()
			return pid
		}
		m.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

// transactional has the model know a producer, and returns its transactions by the
// protocol of a feature level.
func (m *model) transactional(pid kafka.ProducerID, level int16) modelTransactions {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.coordinator = modelCoordinator{pid: pid, level: level}
	return modelTransactions{m}
}

func (m *model) setLevel(level int16) { m.mu.Lock(); m.coordinator.level = level; m.mu.Unlock() }

// modelTransactions is a lane's transactional id at the model's coordinator.
type modelTransactions struct{ m *model }

func (t modelTransactions) Protocol() Protocol {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.m.coordinator.level >= 2 {
		return Protocol2
	}
	return Protocol1
}

func (t modelTransactions) Add(_ context.Context, pid kafka.ProducerID, tps []kafka.TopicPartition) error {
	for {
		t.m.mu.Lock()
		code, lost := kafka.CodeCoordinatorNotAvailable, false
		if !t.m.fails() {
			code, lost = t.m.coordinator.add(pid, tps...), t.m.fails()
		}
		t.m.mu.Unlock()
		switch {
		case code == kafka.CodeConcurrentTransactions:
			time.Sleep(3 * time.Millisecond)
		case lost:
			return errCut // added, but the answer is lost
		default:
			return code.Err()
		}
	}
}

func (t modelTransactions) Commit(_ context.Context, p Protocol, pid kafka.ProducerID) (kafka.ProducerID, error) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if t.m.fails() {
		return kafka.NoProducer, kafka.CodeNotCoordinator
	}
	next, code := t.m.endLocked(pid, true, p)
	if code == kafka.CodeNone && t.m.fails() {
		return kafka.NoProducer, errCut // ended, but the answer is lost
	}
	if code != kafka.CodeNone {
		next = kafka.NoProducer
	}
	return next, code.Err()
}
