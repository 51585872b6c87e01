package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

// DefaultTopic is where instances keep what they were told.
const DefaultTopic = "mm2-heliograph-store.internal"

// Kafka is what a [Topic] needs of its cluster.
type Kafka interface {
	Topics(ctx context.Context) ([]kafka.TopicDetail, error)
	TopicConfigs(ctx context.Context, names ...string) (map[string]kafka.TopicConfigs, error)
	CreateTopics(ctx context.Context, topics []kafka.NewTopic, validateOnly bool) map[string]error
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
	ReadRecords(ctx context.Context, tp kafka.TopicPartition, from, to int64, iso kafka.Isolation, fn func(kafka.Record) error) error
	Transact(ctx context.Context, txnID string, tp kafka.TopicPartition, records func(ctx context.Context) ([]kafka.Record, error)) error
	Close()
}

const (
	lookEvery   = time.Second      // for commits of other instances
	openWithin  = 30 * time.Second // the first reading
	writeWithin = 30 * time.Second
	readWithin  = 5 * time.Second // beyond it what is known has to do
	markerPause = 5 * time.Millisecond
	fencedPause = 200 * time.Millisecond // at most, after another instance was faster

	writeAttempts = 4 // of a transaction that is surely not there, on the base that it was made on
)

// headKey is the key of the record that every commit writes beside its own: which revision it
// makes, and which commit it was.
const headKey = "head"

// valueKey is in front of the store's own keys.
const valueKey = "value/"

// head is that record.
type head struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Revision int64  `json:"revision"`
	Commit   string `json:"commit"`
}

// Topic is a store in a compacted topic with one partition, for any number of instances.
//
// A commit takes over a transactional id that all instances share, reads to the end, compares the
// revision, and writes in one transaction. Taking over fences whoever is in between, so that two
// commits on one base cannot both succeed: the transaction is the compare-and-swap.
type Topic struct {
	kafka Kafka
	tp    kafka.TopicPartition
	log   *slog.Logger

	changed chan struct{}
	stop    context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	state  State
	commit string // of the last commit read
	next   int64  // the offset to go on reading at
	told   int64  // the revision that the owner knows
}

// OpenTopic reads a topic, which it makes if need be, and follows it. The client is the store's
// from then on.
func OpenTopic(ctx context.Context, k Kafka, topic string, replicationFactor int16, log *slog.Logger) (*Topic, error) {
	t := &Topic{
		kafka: k, tp: kafka.TopicPartition{Topic: topic}, log: log, changed: make(chan struct{}, 1), done: make(chan struct{}),
		state: State{Values: map[string][]byte{}},
	}
	bound, cancel := context.WithTimeoutCause(ctx, openWithin, fmt.Errorf("no answer within %s", openWithin))
	defer cancel()
	err := t.prepare(bound, replicationFactor)
	if err == nil {
		err = t.catchUp(bound)
	}
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("store topic %s: %w", topic, err)
	}
	t.told = t.state.Revision
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	go t.follow(life)
	return t, nil
}

// prepare makes the topic, or refuses one that would forget.
func (t *Topic) prepare(ctx context.Context, factor int16) error {
	topics, err := t.kafka.Topics(ctx)
	if err != nil {
		return err
	}
	for _, have := range topics {
		if have.Name != t.tp.Topic {
			continue
		}
		if len(have.Partitions) != 1 {
			return fmt.Errorf("it has %d partitions, and a store has one: commits have one order", len(have.Partitions))
		}
		configs, err := t.kafka.TopicConfigs(ctx, t.tp.Topic)
		if err != nil {
			return err
		}
		for _, e := range configs[t.tp.Topic].Entries {
			if e.Name == "cleanup.policy" && strings.TrimSpace(e.Value) != "compact" {
				return fmt.Errorf("its cleanup.policy is %s, which would forget; set it to compact", e.Value)
			}
		}
		return nil
	}
	if factor == 0 {
		factor = -1
	}
	err = t.kafka.CreateTopics(ctx, []kafka.NewTopic{{
		Name: t.tp.Topic, Partitions: 1, ReplicationFactor: factor,
		Configs: map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
	}}, false)[t.tp.Topic]
	if code, ok := errors.AsType[kafka.Code](err); ok && code == kafka.CodeTopicAlreadyExists {
		return nil // another instance was faster
	}
	return err
}

// catchUp reads what was committed since.
func (t *Topic) catchUp(ctx context.Context) error {
	for {
		at := t.kafka.ListOffsets(ctx, []kafka.TopicPartition{t.tp}, kafka.Latest, kafka.ReadCommitted)[t.tp]
		if at.Err == nil {
			return t.readTo(ctx, at.Offset)
		}
		if !kafka.Heals(at.Err) || ctx.Err() != nil {
			return at.Err
		}
		select { // a topic that has just been made has no leader yet
		case <-ctx.Done():
			return at.Err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (t *Topic) readTo(ctx context.Context, end int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end <= t.next {
		return nil
	}
	next := State{Revision: t.state.Revision, Values: maps.Clone(t.state.Values)}
	commit := t.commit
	err := t.kafka.ReadRecords(ctx, t.tp, t.next, end, kafka.ReadCommitted, func(r kafka.Record) error {
		name, ours := strings.CutPrefix(string(r.Key), valueKey)
		switch {
		case string(r.Key) == headKey:
			var h head
			if err := json.Unmarshal(r.Value, &h); err != nil || h.Format != formatName {
				return errors.New("it is no store of heliograph")
			}
			if h.Version != formatVersion {
				return fmt.Errorf("it has version %d, and this release reads version %d; run the release that wrote it", h.Version, formatVersion)
			}
			next.Revision, commit = h.Revision, h.Commit
		case !ours:
			return fmt.Errorf("it holds a record with the key %q, which no store writes", r.Key)
		case r.Value == nil:
			delete(next.Values, name)
		default:
			next.Values[name] = bytes.Clone(r.Value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.state, t.commit, t.next = next, commit, end
	return nil
}

// follow reads what other instances commit, until the store is closed.
func (t *Topic) follow(ctx context.Context) {
	defer close(t.done)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		bound, cancel := context.WithTimeout(ctx, openWithin)
		err := t.catchUp(bound)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failing {
			failing = err != nil
			if failing {
				t.log.Warn("the store cannot be read, what is known stays", "topic", t.tp.Topic, "err", err)
			} else {
				t.log.Info("the store can be read again", "topic", t.tp.Topic)
			}
		}
		t.mu.Lock()
		news := t.state.Revision > t.told
		t.mu.Unlock()
		if news {
			select {
			case t.changed <- struct{}{}:
			default:
			}
		}
	}
}

// Read returns everything as of the last commit, or as of the last that is known here where the
// cluster does not tell.
func (t *Topic) Read(ctx context.Context) (State, error) {
	bound, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	if err := t.catchUp(bound); err != nil {
		t.log.Warn("the store cannot be read, what is known stays", "topic", t.tp.Topic, "err", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = t.state.Revision
	return t.state, nil
}

// Commit writes a transaction.
func (t *Topic) Commit(ctx context.Context, base int64, records []Record) error {
	ctx, cancel := context.WithTimeoutCause(ctx, writeWithin, fmt.Errorf("no answer within %s", writeWithin))
	defer cancel()
	h := head{Format: formatName, Version: formatVersion, Revision: base + 1, Commit: rand.Text()}
	if err := t.write(ctx, base, h, records); err != nil {
		return err
	}
	if err := t.seen(ctx, h.Revision); err != nil {
		return fmt.Errorf("store topic %s: written, and not read again: %w", t.tp.Topic, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = h.Revision // what came behind it in the meantime is news
	return nil
}

// write brings a transaction about, or finds out that it is not there and why.
func (t *Topic) write(ctx context.Context, base int64, h head, records []Record) error {
	for attempt := 1; ; attempt++ {
		err := t.transact(ctx, base, h, records)
		switch {
		case err == nil, errors.Is(err, ErrStale):
			return err
		case kafka.ClassOf(err) == kafka.ClassFence:
			// Another instance took the id over, and is writing now.
			pause(ctx)
			if again := t.catchUp(ctx); again != nil {
				return again
			}
			return ErrStale
		}
		// The answer was lost, or it is one of those that a coordinator gives where two take an id
		// over in the same moment: not all are fences by name (UNKNOWN_SERVER_ERROR is one).
		written, stale, settled := t.settle(ctx, base, h)
		switch {
		case written:
			return nil
		case stale:
			return ErrStale
		case !settled || attempt == writeAttempts:
			return fmt.Errorf("store topic %s: %w", t.tp.Topic, err)
		}
		pause(ctx)
	}
}

// pause keeps two instances from keeping step.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(mathrand.N(fencedPause)): //nolint:gosec // see above
	}
}

// seen reads until a revision that was committed is there. A broker answers the end of a
// transaction before its marker is in the log, and until then readers do not see it: what is read
// in between is older than what the owner knows, and must not reach it.
func (t *Topic) seen(ctx context.Context, revision int64) error {
	for {
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		t.mu.Lock()
		there := t.state.Revision >= revision
		t.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(markerPause):
		}
	}
}

func (t *Topic) transact(ctx context.Context, base int64, h head, records []Record) error {
	return t.kafka.Transact(ctx, t.tp.Topic, t.tp, func(ctx context.Context) ([]kafka.Record, error) {
		if err := t.catchUp(ctx); err != nil {
			return nil, err
		}
		t.mu.Lock()
		revision := t.state.Revision
		t.mu.Unlock()
		if revision != base {
			return nil, ErrStale
		}
		value, err := json.Marshal(h)
		if err != nil {
			return nil, err
		}
		out := []kafka.Record{{Key: []byte(headKey), Value: value}}
		for _, r := range records {
			out = append(out, kafka.Record{Key: []byte(valueKey + r.Key), Value: r.Value})
		}
		return out, nil
	})
}

// settle finds out whether a commit was made whose answer was lost, or another in its place: taking
// the id over ends what is open, and what was committed can be read then.
func (t *Topic) settle(ctx context.Context, base int64, h head) (written, stale, settled bool) {
	err := t.kafka.Transact(ctx, t.tp.Topic, t.tp, func(ctx context.Context) ([]kafka.Record, error) {
		return nil, t.catchUp(ctx)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		return false, false, false
	}
	return t.commit == h.Commit, t.state.Revision != base && t.commit != h.Commit, true
}

// Changed delivers a word after commits of other instances.
func (t *Topic) Changed() <-chan struct{} { return t.changed }

// Close ends the following and the client.
func (t *Topic) Close() error {
	t.stop()
	<-t.done
	t.kafka.Close()
	return nil
}
