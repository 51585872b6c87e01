package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
)

// instance opens the store as one more process would.
func instance(t *testing.T, c *kfake.Cluster) *Topic {
	t.Helper()
	client, err := cluster.Open(cluster.Options{Alias: "S", BootstrapServers: c.ListenAddrs(), ClientID: "store", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenTopic(t.Context(), client, DefaultTopic, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func fake(t *testing.T, o ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestInstancesShareATopic(t *testing.T) {
	c := fake(t)
	a, b := instance(t, c), instance(t, c)
	if err := a.Commit(t.Context(), 0, []Record{{"x", []byte("1")}, {"y", []byte("2")}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.Changed():
	case <-time.After(30 * time.Second):
		t.Fatal("the other instance was not told")
	}
	if got := text(t, b); got != "1: x=1 y=2" {
		t.Errorf("the other instance has %s", got)
	}
	if err := b.Commit(t.Context(), 1, record("x", "")); err != nil {
		t.Fatal(err)
	}
	if err := a.Commit(t.Context(), 1, record("y", "3")); !errors.Is(err, ErrStale) {
		t.Errorf("on an old base: %v", err)
	}
	if got := text(t, a); got != "2: y=2" {
		t.Errorf("after the refusal it knows %s", got)
	}
	if got := text(t, instance(t, c)); got != "2: y=2" {
		t.Errorf("a later instance has %s", got)
	}
}

func TestOfManyCommitsOnOneBaseOneSucceeds(t *testing.T) {
	c := fake(t)
	const writers, each = 3, 4
	var wg sync.WaitGroup
	for i := range writers {
		s := instance(t, c)
		wg.Go(func() {
			for n := range each {
				key := fmt.Sprintf("%d-%d", i, n)
				for {
					st, err := s.Read(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					err = s.Commit(t.Context(), st.Revision, record(key, "1"))
					if err == nil {
						break
					}
					if !errors.Is(err, ErrStale) {
						t.Errorf("%s: %v", key, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	st, err := instance(t, c).Read(t.Context())
	if err != nil || len(st.Values) != writers*each || st.Revision != writers*each {
		t.Errorf("revision %d, %d values, %v; want %d of each", st.Revision, len(st.Values), err, writers*each)
	}
}

func TestALostAnswerIsNoLostCommit(t *testing.T) {
	c := fake(t)
	s := instance(t, c)
	lost := &lossy{Kafka: s.kafka}
	s.kafka = lost
	lost.after = true // it was written, and the answer is lost
	if err := s.Commit(t.Context(), 0, record("a", "1")); err != nil {
		t.Errorf("written, and said to be not: %v", err)
	}
	lost.before = 1 // it was not written: the same again works
	if err := s.Commit(t.Context(), 1, record("a", "2")); err != nil {
		t.Errorf("a trouble that passes: %v", err)
	}
	lost.before = writeAttempts
	if err := s.Commit(t.Context(), 2, record("a", "3")); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("not written, and said to be: %v", err)
	}
	if got := text(t, s); got != "2: a=2" {
		t.Error(got)
	}
	if err := s.Commit(t.Context(), 2, record("a", "4")); err != nil {
		t.Error(err)
	}
}

// TestACommitIsSeenBeforeItIsAnswered: a broker ends a transaction before its marker is written,
// and the store must not fall back behind what it has said.
func TestACommitIsSeenBeforeItIsAnswered(t *testing.T) {
	s := instance(t, fake(t))
	s.kafka = &late{Kafka: s.kafka}
	for revision := range int64(3) {
		if err := s.Commit(t.Context(), revision, record("a", fmt.Sprint(revision))); err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, s), fmt.Sprintf("%d: a=%d", revision+1, revision); got != want {
			t.Errorf("after its commit the store has %s, want %s", got, want)
		}
	}
}

// late tells the end of a transaction from its third question on only.
type late struct {
	Kafka
	mu     sync.Mutex
	before kafka.PartitionOffset
	hidden int
}

func (l *late) Transact(ctx context.Context, id string, tp kafka.TopicPartition, records func(context.Context) ([]kafka.Record, error)) error {
	before := l.ListOffsets(ctx, []kafka.TopicPartition{tp}, kafka.Latest, kafka.ReadCommitted)[tp]
	err := l.Kafka.Transact(ctx, id, tp, records)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.hidden = before, 3
	return err
}

func (l *late) ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hidden > 0 {
		l.hidden--
		return map[kafka.TopicPartition]kafka.PartitionOffset{tps[0]: l.before}
	}
	return l.Kafka.ListOffsets(ctx, tps, at, iso)
}

// lossy loses answers of transactions that write.
type lossy struct {
	Kafka
	before int // refused so many times before it is written
	after  bool
}

func (l *lossy) Transact(ctx context.Context, id string, tp kafka.TopicPartition, records func(context.Context) ([]kafka.Record, error)) error {
	wrote := false
	err := l.Kafka.Transact(ctx, id, tp, func(ctx context.Context) ([]kafka.Record, error) {
		list, err := records(ctx)
		wrote = len(list) > 0
		if wrote && l.before > 0 {
			l.before--
			return nil, errors.New("the connection broke")
		}
		return list, err
	})
	if err == nil && wrote && l.after {
		l.after = false
		return errors.New("the connection broke")
	}
	return err
}

func TestTopicsThatWouldForgetAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		partitions int32
		want       string
	}{"too many partitions": {3, "3 partitions"}, "deleted by age": {1, "cleanup.policy"}} {
		t.Run(name, func(t *testing.T) {
			c := fake(t, kfake.SeedTopics(tt.partitions, DefaultTopic))
			client, err := cluster.Open(cluster.Options{Alias: "S", BootstrapServers: c.ListenAddrs(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			s, err := OpenTopic(t.Context(), client, DefaultTopic, 1, slog.New(slog.DiscardHandler))
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestACommitWithoutAnAnswerInTimeFails(t *testing.T) {
	c := fake(t)
	s := instance(t, c)
	c.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, true // no answer
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Commit(ctx, 0, record("a", "1")); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("got %v", err)
	}
	if got := text(t, s); got != "0: " {
		t.Error(got)
	}
}
