package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

const (
	// progressBatch is how many partitions go into one commit.
	progressBatch = 1000
	// progressAgain is when an offset that did not move is committed again, long
	// before a broker forgets it.
	progressAgain = time.Hour
	// deniedAgain is when a source that refused is asked again.
	deniedAgain = 10 * time.Minute
)

// GroupCommitter writes group offsets without being a member.
type GroupCommitter interface {
	CommitGroupOffsets(ctx context.Context, group string, offsets []kafka.GroupOffset) (map[kafka.TopicPartition]error, error)
}

// Progress commits how far the flow has copied as a consumer group on the source,
// where lag tools look. Each instance commits for the partitions it copies.
type Progress struct {
	source GroupCommitter
	flow   mirror.FlowID
	group  string
	places func() map[kafka.TopicPartition]mirror.UpstreamOffset
	log    *slog.Logger

	committed map[kafka.TopicPartition]progress // of the job's goroutine
	askAgain  time.Time
	mu        struct {
		sync.Mutex
		denied string
	}
}

type progress struct {
	at   mirror.UpstreamOffset
	when time.Time
}

// NewProgress makes the job. places tells the next source offset of each partition
// copied here.
func NewProgress(source GroupCommitter, flow mirror.FlowID, group string, places func() map[kafka.TopicPartition]mirror.UpstreamOffset, log *slog.Logger) *Progress {
	return &Progress{source: source, flow: flow, group: group, places: places, log: log, committed: map[kafka.TopicPartition]progress{}}
}

// Denied says why nothing is committed; empty while it is.
func (p *Progress) Denied() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.denied
}

// RunOnce commits what has moved. A source that denies it is no trouble of the
// flow: it is said once, shown by Denied, and tried again now and then.
func (p *Progress) RunOnce(ctx context.Context, now time.Time) error {
	if now.Before(p.askAgain) {
		return nil
	}
	var due []kafka.GroupOffset
	for tp, at := range p.places() {
		if last, ok := p.committed[tp]; ok && last.at == at && now.Sub(last.when) < progressAgain {
			continue
		}
		due = append(due, kafka.GroupOffset{TopicPartition: tp, Offset: int64(at), LeaderEpoch: kafka.NoLeaderEpoch, Metadata: mirror.ProgressMetadata})
	}
	slices.SortFunc(due, func(a, b kafka.GroupOffset) int { return a.Compare(b.TopicPartition) })
	err := everyBatch(due, progressBatch, func(batch []kafka.GroupOffset) error { return p.commit(ctx, now, batch) })
	if err != nil && kafka.ClassOf(err) == kafka.ClassOperator {
		p.deny(ctx, now, err)
		return nil
	}
	if err == nil && len(due) > 0 {
		p.allow(ctx)
	}
	return err
}

func (p *Progress) commit(ctx context.Context, now time.Time, batch []kafka.GroupOffset) error {
	outcome, err := p.source.CommitGroupOffsets(ctx, p.group, batch)
	if err != nil {
		return located("commit progress", p.flow.Source, err)
	}
	var failed []error
	for _, o := range batch {
		if err := outcome[o.TopicPartition]; err != nil {
			failed = append(failed, err)
			continue
		}
		p.committed[o.TopicPartition] = progress{mirror.UpstreamOffset(o.Offset), now}
	}
	if len(failed) > 0 {
		return fmt.Errorf("progress of %s not committed: %w", counted(len(failed), "partition"), located("commit progress", p.flow.Source, failed[0]))
	}
	return nil
}

func (p *Progress) deny(ctx context.Context, now time.Time, err error) {
	p.askAgain = now.Add(deniedAgain)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.denied == "" {
		p.log.LogAttrs(ctx, slog.LevelWarn, "progress is not committed on the source", slog.String(telemetry.KeyGroup, p.group), slog.Any(telemetry.KeyError, err),
			slog.String(telemetry.KeyHint, fmt.Sprintf("grant READ on group %s and on the copied topics of cluster %s, or set heliograph.progress.group = off", p.group, p.flow.Source)))
	}
	p.mu.denied = "denied: " + kafka.CauseOf(err)
}

func (p *Progress) allow(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.denied != "" {
		p.log.LogAttrs(ctx, slog.LevelInfo, "progress is committed on the source", slog.String(telemetry.KeyGroup, p.group))
	}
	p.mu.denied = ""
}
