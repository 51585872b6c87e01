package syncer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// committer takes group commits, or refuses them.
type committer struct {
	offsets map[kafka.TopicPartition]int64
	commits int
	err     error
}

func (c *committer) CommitGroupOffsets(_ context.Context, _ string, offsets []kafka.GroupOffset) (map[kafka.TopicPartition]error, error) {
	c.commits++
	out := map[kafka.TopicPartition]error{}
	for _, o := range offsets {
		out[o.TopicPartition] = c.err
		if c.err == nil {
			c.offsets[o.TopicPartition] = o.Offset
		}
	}
	return out, nil
}

func TestProgressIsCommittedWhereItMoved(t *testing.T) {
	source := &committer{offsets: map[kafka.TopicPartition]int64{}}
	places := map[kafka.TopicPartition]mirror.UpstreamOffset{}
	var logged bytes.Buffer
	p := NewProgress(source, mirror.FlowID{Source: "A", Target: "B"}, "g", func() map[kafka.TopicPartition]mirror.UpstreamOffset { return places },
		slog.New(slog.NewTextHandler(&logged, nil)))
	now := time.Unix(1_700_000_000, 0)
	round := func(later time.Duration) {
		t.Helper()
		now = now.Add(later)
		if err := p.RunOnce(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	a, b := kafka.TopicPartition{Topic: "t"}, kafka.TopicPartition{Topic: "t", Partition: 1}
	places[a], places[b] = 5, 7
	round(0)
	if source.offsets[a] != 5 || source.offsets[b] != 7 {
		t.Errorf("committed %v", source.offsets)
	}
	round(5 * time.Second)
	if source.commits != 1 {
		t.Errorf("%d commits, nothing moved", source.commits)
	}
	round(2 * time.Hour)
	if source.commits != 2 {
		t.Errorf("%d commits: what stands still is committed again before it expires", source.commits)
	}

	source.err = &kafka.Error{Op: "commit", Class: kafka.ClassOperator, Err: kafka.CodeGroupAuthorizationFailed}
	places[a] = 6
	for range 5 {
		round(time.Second)
	}
	if source.commits != 3 || !strings.Contains(p.Denied(), "GROUP_AUTHORIZATION_FAILED") {
		t.Errorf("%d commits after a refusal, denied %q", source.commits, p.Denied())
	}
	round(time.Hour)
	if n := strings.Count(logged.String(), "progress is not committed"); n != 1 {
		t.Errorf("said %d times: %s", n, logged.String())
	}
	source.err = nil
	round(time.Hour)
	if source.offsets[a] != 6 || p.Denied() != "" {
		t.Errorf("allowed again: %v, denied %q", source.offsets, p.Denied())
	}
}
