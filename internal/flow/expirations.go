package flow

import (
	"context"
	"strconv"
	"time"

	"heliograph/internal/coord"
	"heliograph/internal/kafka"
)

// expirationsEvery is how often the target's expirations are asked for: they may
// be changed while brokers run.
const expirationsEvery = 10 * time.Minute

const (
	producerExpiration    = "producer.id.expiration.ms"      // from 3.4 on
	transactionExpiration = "transactional.id.expiration.ms" // before, that of producers too
)

// addExpirations keeps both planes in step with how long the target remembers
// producers and transactional ids. Where it does not tell, Kafka's defaults hold.
func (f *Flow) addExpirations(p *parts) {
	p.loops = append(p.loops, f.loop("expirations", expirationsEvery, func(ctx context.Context, _ time.Time) error {
		found, err := f.target.BrokerConfigs(ctx, producerExpiration, transactionExpiration)
		if err != nil {
			f.deps.Log.Debug("how long the target remembers producers is not known, its defaults are assumed", "err", err)
			return nil
		}
		transactions, known := shortest(found[transactionExpiration])
		if known {
			p.keeper.NoteExpiration(transactions)
		}
		if producers, ok := shortest(found[producerExpiration]); ok {
			p.task.NoteExpiration(producers)
		} else if known {
			p.task.NoteExpiration(transactions)
		}
		return nil
	}))
}

// levelEvery is how often an exactly-once flow asks for the target's feature level.
// A change of it is followed by the next transaction. Until it is noticed the
// protocol of before goes on, which brokers of Kafka 4 serve between levels 1 and 2.
// On level 0 they cannot write protocol 2 down, and block the transactional id until
// their coordinator moves (TestTransactionsOfProtocol2): this should be noticed soon.
const levelEvery = 5 * time.Second

// addTransactionVersion keeps the protocol of an exactly-once flow's transactions in
// step with the target's feature level, which may be raised and lowered.
func (f *Flow) addTransactionVersion(p *parts, now kafka.Features) {
	level := now.TransactionVersion
	p.keeper.NoteTransactionVersion(level)
	if !f.spec.Data.ExactlyOnce {
		return
	}
	f.deps.Log.Info("transactions follow the target's feature level", "level", level, "protocol", int(coord.ProtocolOf(level)))
	p.loops = append(p.loops, f.loop("transaction version", levelEvery, func(ctx context.Context, _ time.Time) error {
		features, err := f.target.Features(ctx)
		if err != nil {
			f.deps.Log.Debug("the target's feature level is not known, it is taken to be as before", "err", err)
			return nil
		}
		if features.TransactionVersion != level {
			level = features.TransactionVersion
			f.deps.Log.Info("the target's feature level of transactions has changed", "level", level, "protocol", int(coord.ProtocolOf(level)))
			p.keeper.NoteTransactionVersion(level)
		}
		return nil
	}))
}

// shortest is the shortest of several times in milliseconds.
func shortest(values []string) (least time.Duration, ok bool) {
	for _, v := range values {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n <= 0 {
			continue
		}
		if d := time.Duration(min(n, int64(time.Duration(1<<63-1)/time.Millisecond))) * time.Millisecond; !ok || d < least {
			least, ok = d, true
		}
	}
	return least, ok
}
