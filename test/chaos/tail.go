package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// tail reads the target while the run lasts, as a read_committed consumer, and
// counts. Counting and order are all it knows: it never looks at offsets.
type tail struct {
	remote map[string]topicSpec // by the copy's name
	stop   func()

	mu      sync.Mutex
	during  Kind // the fault that is on, or was last
	parts   map[kafka.TopicPartition]*counted
	doubled map[Kind]int64
	gaps    map[Kind]int64
	notes   []string
}

// counted is what was seen of one partition.
type counted struct {
	records int64
	most    int64 // the highest number
}

// maxNotes bounds how many oddities are spelled out.
const maxNotes = 20

func startTail(ctx context.Context, target *kafkatest.Cluster, remote map[string]topicSpec) (*tail, error) {
	var names []string
	for name := range remote {
		names = append(names, name)
	}
	client, err := target.Open(
		kgo.ConsumeTopics(names...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.RequestTimeoutOverhead(2*time.Second), kgo.MetadataMaxAge(2*time.Second),
	)
	if err != nil {
		return nil, err
	}
	t := &tail{
		remote: remote, during: "the start", parts: map[kafka.TopicPartition]*counted{},
		doubled: map[Kind]int64{}, gaps: map[Kind]int64{},
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			// Errors are brokers that are down on purpose; the client asks again.
			client.PollFetches(ctx).EachRecord(t.see)
		}
	})
	t.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		client.Close()
	})
	return t, nil
}

func (t *tail) see(r *kgo.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	spec := t.remote[r.Topic]
	tp := kafka.TopicPartition{Topic: spec.name, Partition: r.Partition}
	c := t.parts[tp]
	if c == nil {
		c = &counted{most: -1}
		t.parts[tp] = c
	}
	c.records++
	n := number(r.Value)
	switch {
	case n <= c.most:
		t.doubled[t.during]++
		t.note("%s %s holds number %d at offset %d after %d", time.Now().UTC().Format(clock), tp, n, r.Offset, c.most)
	case n > c.most+1 && !spec.inTxn: // aborted numbers are left out rightly
		t.gaps[t.during] += n - c.most - 1
		t.note("%s %s holds number %d at offset %d after %d", time.Now().UTC().Format(clock), tp, n, r.Offset, c.most)
	}
	c.most = max(c.most, n)
}

const clock = "15:04:05.000"

func (t *tail) note(format string, args ...any) {
	if len(t.notes) < maxNotes {
		t.notes = append(t.notes, fmt.Sprintf("during %s: ", t.during)+fmt.Sprintf(format, args...))
	}
}

// faulty says which fault is on from now on.
func (t *tail) faulty(k Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.during = k
}

// total is how many records have arrived.
func (t *tail) total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var n int64
	for _, c := range t.parts {
		n += c.records
	}
	return n
}

// behind tells one partition that has not as many records as wanted, or is empty.
func (t *tail) behind(want map[kafka.TopicPartition]int64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for tp, n := range want {
		var have int64
		if c := t.parts[tp]; c != nil {
			have = c.records
		}
		if have < n {
			return fmt.Sprintf("%s has %d of %d records", tp, have, n)
		}
	}
	return ""
}

// await returns once the target has at least so many records of each partition.
func (t *tail) await(ctx context.Context, want map[kafka.TopicPartition]int64) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := t.behind(want)
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// oddities is how many records were doubled, or left out, under a kind of fault so far.
func (t *tail) oddities(k Kind, doubled bool) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if doubled {
		return t.doubled[k]
	}
	return t.gaps[k]
}
