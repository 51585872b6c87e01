package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
)

// together is how many partitions are compared at once.
const together = 4

// A Pair is a topic and its copy.
type Pair struct {
	Source, Target string
	// Partitions and TargetPartitions are their counts; the latter is zero where
	// the copy does not exist.
	Partitions, TargetPartitions int32
	// Compacted says that either side compacts, Deletes that either also deletes.
	Compacted, Deletes bool
}

// Absent reports whether the copy lacks a partition.
func (p *Pair) Absent(partition int32) bool { return partition >= p.TargetPartitions }

// Surplus reports whether only the copy has a partition.
func (p *Pair) Surplus(partition int32) bool { return partition >= p.Partitions }

// numbers is how many partitions there are to look at.
func (p *Pair) numbers() int32 { return max(p.Partitions, p.TargetPartitions) }

// Options say what is compared and how.
type Options struct {
	Flow  mirror.FlowID
	Pairs []Pair
	// Isolation is what the flow reads of the source. Of the target only committed
	// records count.
	Isolation kafka.Isolation
	// StartAtLatest says that the flow begins topics at their end.
	StartAtLatest bool
	// Wait is how long the target may get nothing before what it lacks counts as
	// missing; zero does not wait.
	Wait time.Duration
	// BytesPerSecond holds all reading down; zero does not.
	BytesPerSecond int64
	// ShowRecords puts the contents of differing records into the report.
	ShowRecords bool
	// SyncsTopic holds the flow's offset syncs, on the source if SyncsOnSource; ""
	// where there are none.
	SyncsTopic    string
	SyncsOnSource bool
	// Positions tells up to which source offset the flow has copied each partition.
	Positions func(context.Context) (map[kafka.TopicPartition]int64, error)
	// Losses is the loss ledger.
	Losses func(context.Context) ([]losses.Entry, error)
	// Begin is told what is going to be read, before it is.
	Begin func(Estimate)
	// Watch is told how far it is, often; calls do not overlap.
	Watch func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Estimate   Estimate
	Bytes      int64  // read on both sides
	Partitions int    // that are done
	Different  int    // among them
	Waiting    string // what is waited for; empty while reading
	Since      time.Time
}

// run is one flow's verification under way.
type run struct {
	opts           Options
	source, target Cluster
	pace           *pace
	ends           map[kafka.TopicPartition]int64 // of the source, fixed at the start
	anchors        map[kafka.TopicPartition]mirror.OffsetSync
	ledger         map[kafka.TopicPartition][]losses.Entry
	compacted      sync.Mutex // one table of keys at a time

	mu struct {
		sync.Mutex
		progress  Progress
		idle      time.Time // since when no target was seen to grow; zero after one was
		positions map[kafka.TopicPartition]int64
		asked     bool
	}
}

// Run compares and reports. Its error says why nothing could be compared at all;
// what goes wrong with a partition is in the report.
func Run(ctx context.Context, source, target Cluster, o Options) (*Report, error) {
	r := &run{opts: o, source: source, target: target, pace: newPace(o.BytesPerSecond)}
	began := time.Now()
	report := &Report{
		Flow: o.Flow.String(), Verdict: Equal, Mode: mode(o.Wait), Fields: comparedFields,
		Isolation: isolation(o.Isolation), Partitions: []Partition{},
	}
	if err := r.prepare(ctx, report); err != nil {
		return nil, err
	}
	if o.Begin != nil {
		o.Begin(report.Estimate)
	}
	r.mu.progress = Progress{Estimate: report.Estimate, Since: began}
	r.compareAll(ctx, report)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i := range report.Partitions {
		report.Verdict = Worse(report.Verdict, report.Partitions[i].Verdict)
	}
	report.BytesRead = r.mu.progress.Bytes
	report.Seconds = time.Since(began).Seconds()
	return report, nil
}

func mode(wait time.Duration) string {
	if wait == 0 {
		return "at rest"
	}
	return "live"
}

func isolation(i kafka.Isolation) string {
	if i == kafka.ReadCommitted {
		return "read_committed"
	}
	return "read_uncommitted"
}

// prepare learns the leaders, fixes the source's ends and adds up what there is to read.
func (r *run) prepare(ctx context.Context, report *Report) error {
	l := r.list()
	if err := refresh(ctx, r.source, l.topics); err != nil {
		return err
	}
	if err := refresh(ctx, r.target, l.copied); err != nil {
		return err
	}
	ends := r.source.ListOffsets(ctx, l.sources, kafka.Latest, r.opts.Isolation)
	starts := r.source.ListOffsets(ctx, l.sources, kafka.Earliest, r.opts.Isolation)
	copyStarts := r.target.ListOffsets(ctx, l.copies, kafka.Earliest, kafka.ReadCommitted)
	copyEnds := r.target.ListOffsets(ctx, l.copies, kafka.Latest, kafka.ReadCommitted)
	r.ends = map[kafka.TopicPartition]int64{}
	logs := map[kafka.TopicPartition]bounds{}
	for _, tp := range l.sources {
		if ends[tp].Err != nil {
			continue
		}
		r.ends[tp] = ends[tp].Offset
		on := l.copyOf[tp]
		if starts[tp].Err == nil && copyStarts[on].Err == nil && copyEnds[on].Err == nil {
			logs[tp] = bounds{starts[tp].Offset, ends[tp].Offset, copyStarts[on].Offset, copyEnds[on].Offset}
		}
	}
	e := Estimate{Topics: len(r.opts.Pairs), Partitions: l.partitions}
	e.add(l.sources, starts, ends, r.source.PartitionSizes(ctx, l.topics...))
	e.add(l.copies, copyStarts, copyEnds, r.target.PartitionSizes(ctx, l.copied...))
	report.Estimate = e
	r.readAnchors(ctx, report, logs)
	r.readLedger(ctx, report)
	return nil
}

// listing is what the pairs come down to.
type listing struct {
	topics, copied  []string
	sources, copies []kafka.TopicPartition
	copyOf          map[kafka.TopicPartition]kafka.TopicPartition
	partitions      int
}

func (r *run) list() listing {
	l := listing{copyOf: map[kafka.TopicPartition]kafka.TopicPartition{}}
	for i := range r.opts.Pairs {
		p := &r.opts.Pairs[i]
		l.topics = append(l.topics, p.Source)
		if p.TargetPartitions > 0 {
			l.copied = append(l.copied, p.Target)
		}
		for n := range p.numbers() {
			l.partitions++
			source, target := kafka.TopicPartition{Topic: p.Source, Partition: n}, kafka.TopicPartition{Topic: p.Target, Partition: n}
			if !p.Surplus(n) {
				l.sources = append(l.sources, source)
			}
			if !p.Absent(n) {
				l.copies = append(l.copies, target)
				l.copyOf[source] = target
			}
		}
	}
	return l
}

func refresh(ctx context.Context, c Cluster, topics []string) error {
	if len(topics) == 0 {
		return nil
	}
	return c.RefreshMetadata(ctx, topics...)
}

// add counts logs into the estimate.
func (e *Estimate) add(tps []kafka.TopicPartition, starts, ends map[kafka.TopicPartition]kafka.PartitionOffset, sizes map[kafka.TopicPartition]int64) {
	for _, tp := range tps {
		if starts[tp].Err == nil && ends[tp].Err == nil {
			e.Offsets += ends[tp].Offset - starts[tp].Offset
		}
		if size, ok := sizes[tp]; ok {
			e.Bytes += size
		} else {
			e.Unsized++
		}
	}
}

// readAnchors reads the offset syncs. Without them only content aligns.
func (r *run) readAnchors(ctx context.Context, report *Report, logs map[kafka.TopicPartition]bounds) {
	if r.opts.SyncsTopic == "" {
		return
	}
	c := r.target
	if r.opts.SyncsOnSource {
		c = r.source
	}
	var err error
	if r.anchors, err = readAnchors(ctx, c, r.opts.SyncsTopic, logs); err != nil {
		report.Notes = append(report.Notes, fmt.Sprintf("the offset syncs in %s could not be read, so records alone align: %v", r.opts.SyncsTopic, err))
	}
}

// readLedger reads what the flow has noted as lost.
func (r *run) readLedger(ctx context.Context, report *Report) {
	if r.opts.Losses == nil {
		return
	}
	entries, err := r.opts.Losses(ctx)
	if err != nil {
		report.Notes = append(report.Notes, fmt.Sprintf("the loss ledger could not be read: %v", err))
	}
	r.ledger = map[kafka.TopicPartition][]losses.Entry{}
	for _, e := range entries {
		if e.Flow == r.opts.Flow {
			r.ledger[e.Source] = append(r.ledger[e.Source], e)
		}
	}
}

// compareAll compares every partition, several at once.
func (r *run) compareAll(ctx context.Context, report *Report) {
	var tasks []*task
	for i := range r.opts.Pairs {
		p := &r.opts.Pairs[i]
		for n := range p.numbers() {
			t := &task{run: r, pair: p, out: &Partition{}}
			t.source = &side{cluster: r.source, tp: kafka.TopicPartition{Topic: p.Source, Partition: n}, iso: r.opts.Isolation, pace: r.pace, spent: r.spent}
			t.target = &side{cluster: r.target, tp: kafka.TopicPartition{Topic: p.Target, Partition: n}, iso: kafka.ReadCommitted, target: true, pace: r.pace, spent: r.spent}
			tasks = append(tasks, t)
		}
	}
	var g errgroup.Group
	g.SetLimit(together)
	for _, t := range tasks {
		g.Go(func() error {
			if ctx.Err() == nil {
				t.do(ctx)
				r.done(t.out)
			}
			return nil
		})
	}
	_ = g.Wait() // every result is in its task
	for _, t := range tasks {
		report.Partitions = append(report.Partitions, *t.out)
	}
	slices.SortFunc(report.Partitions, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// spent, waiting and done keep the progress and tell it.
func (r *run) spent(bytes int) {
	r.tell(func(p *Progress) { p.Bytes += int64(bytes); p.Waiting = "" })
}

func (r *run) waiting(tp kafka.TopicPartition) {
	r.tell(func(p *Progress) { p.Waiting = "waiting for the target to have all of " + tp.String() })
}

// grew notes that something is still copying.
func (r *run) grew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.idle = time.Time{}
}

// idleFor is how long every target that was looked at has got nothing.
func (r *run) idleFor(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.idle.IsZero() {
		r.mu.idle = now
	}
	return now.Sub(r.mu.idle)
}

func (r *run) done(out *Partition) {
	r.tell(func(p *Progress) {
		p.Partitions++
		if out.Verdict == Different {
			p.Different++
		}
	})
}

func (r *run) tell(change func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.mu.progress)
	if r.opts.Watch != nil {
		r.opts.Watch(r.mu.progress)
	}
}

// position is the first source offset that the flow says it has not copied.
func (r *run) position(ctx context.Context, tp kafka.TopicPartition) (next int64, known bool) {
	if r.opts.Positions == nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.asked {
		r.mu.asked = true
		if positions, err := r.opts.Positions(ctx); err == nil {
			r.mu.positions = positions
		}
	}
	next, known = r.mu.positions[tp]
	return next, known
}
