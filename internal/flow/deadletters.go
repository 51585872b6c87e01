package flow

import (
	"context"
	"fmt"
	"log/slog"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/syncer"
)

// letterBytes is how large a dead letter may be in a topic made by us, less what
// its batch needs: what is too large for a copy is to fit here.
const letterBytes = 32 << 20

// deadLetters keeps poison in the dead-letter topic. A letter may be there twice,
// after a crash before the ledger had its entry: its headers tell which record it is.
type deadLetters struct {
	topic  string
	target side
	topics *syncer.InternalTopics
	log    *slog.Logger
	made   bool // guarded by the ledger
}

func newDeadLetters(spec Spec, target side, budget *syncer.Budget, log *slog.Logger) *deadLetters {
	d := &deadLetters{topic: spec.Losses.DeadLetters, target: target, log: log}
	d.topics = syncer.NewInternalTopics(spec.ID.Target, target, []syncer.InternalTopic{{
		Name: d.topic, Partitions: 1, ReplicationFactor: spec.Positions.ReplicationFactor, FactorKey: "offset.storage.replication.factor",
		Configs: map[string]string{
			"cleanup.policy": "delete",
			// Records whose time the copy refuses must be taken, and be kept from now on.
			"message.timestamp.type": "LogAppendTime",
			"retention.ms":           "2592000000", // 30 days; the ledger's entry stays
			"max.message.bytes":      fmt.Sprint(letterBytes + 1<<20),
		},
	}}, budget, log)
	return d
}

// write makes a letter durable. What the topic finds too large is cut until it
// fits, and says so.
func (d *deadLetters) write(ctx context.Context, e losses.Entry, l losses.Letter) error {
	if !d.made {
		if err := d.topics.RunOnce(ctx, e.At); err != nil {
			return fmt.Errorf("dead-letter topic: %w", err)
		}
		d.made = true
	}
	tp := kafka.TopicPartition{Topic: d.topic}
	for {
		err := d.target.WriteLarge(ctx, tp, l.Encode(e))
		switch {
		case err == nil:
			return nil
		case tooLarge(err) && l.Shorten():
			d.log.Warn("a dead letter does not fit into its topic and is cut", "topic", d.topic, "from_topic", e.Source.Topic,
				"partition", e.Source.Partition, "offset", int64(l.Offset), "bytes", len(l.Record.Value))
		default:
			d.made = false // somebody may have deleted it
			return fmt.Errorf("dead-letter topic: %w", err)
		}
	}
}

func tooLarge(err error) bool {
	code := kafka.CodeOf(err)
	return code == kafka.CodeMessageTooLarge || code == kafka.CodeRecordListTooLarge
}
