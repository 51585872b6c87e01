package flow

import (
	"context"
	"strconv"
	"time"
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
