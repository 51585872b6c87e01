package flow

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/syncer"
)

// ledger writes losses to the target's ledger topic, and poison to the
// dead-letter topic. Either is made with the first of them.
type ledger struct {
	target  side
	topics  *syncer.InternalTopics
	letters *deadLetters
	log     *slog.Logger

	mu struct {
		sync.Mutex
		made    bool
		written map[string]time.Time // by what happened where: repeats of a restart are not new losses
		entries int64
		records int64
	}
}

func newLedger(spec Spec, target side, budget *syncer.Budget, log *slog.Logger) *ledger {
	l := &ledger{target: target, letters: newDeadLetters(spec, target, budget, log), log: log}
	l.topics = syncer.NewInternalTopics(spec.ID.Target, target, []syncer.InternalTopic{{
		Name: mirror.LossesTopic, Partitions: 1, ReplicationFactor: spec.Positions.ReplicationFactor,
		FactorKey: "offset.storage.replication.factor", Strict: true,
	}}, budget, log)
	l.mu.written = map[string]time.Time{}
	return l
}

// Write makes the letter durable, if there is one, and then the entry. The same
// loss of the same partition, met again by a lane that was taken over anew, is
// written once.
func (l *ledger) Write(ctx context.Context, e losses.Entry, letter *losses.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := fmt.Sprint(e.Source, e.Kind, e.From, e.To, e.Action, e.Reason)
	if _, ok := l.mu.written[same]; ok {
		return nil
	}
	if letter != nil {
		if err := l.letters.write(ctx, e, *letter); err != nil {
			return err
		}
	}
	if !l.mu.made {
		if err := l.topics.RunOnce(ctx, e.At); err != nil {
			return fmt.Errorf("loss ledger: %w", err)
		}
		l.mu.made = true
	}
	if _, err := l.target.WriteRecords(ctx, kafka.TopicPartition{Topic: mirror.LossesTopic}, []kafka.Record{e.Record()}); err != nil {
		l.mu.made = false // somebody may have deleted it
		return fmt.Errorf("loss ledger: %w", err)
	}
	l.mu.written[same] = e.At
	l.mu.entries++
	if e.Action != losses.Parked {
		l.mu.records += e.Records
	}
	l.log.Error("loss", "topic", e.Source.Topic, "partition", e.Source.Partition, "from", int64(e.From), "to", int64(e.To),
		"records", e.Records, "kind", string(e.Kind), "action", string(e.Action), "reason", e.Reason)
	return nil
}

// counts are the entries written since the start and the records they name as
// given up.
func (l *ledger) counts() (entries, records int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.entries, l.mu.records
}
