package verify

import (
	"context"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
)

const (
	// growPoll is how often the target's end is asked for while it is waited for.
	growPoll = 250 * time.Millisecond
	// maxRestarts bounds how often a partition is begun anew because retention took
	// records away while they were read.
	maxRestarts = 2
)

// task compares one partition.
type task struct {
	run            *run
	pair           *Pair
	source, target *side
	out            *Partition
}

// do fills in the result. Errors are results too: they make it unknown.
func (t *task) do(ctx context.Context) {
	var err error
	for range maxRestarts + 1 {
		*t.out = Partition{Topic: t.pair.Source, Copy: t.pair.Target, Partition: t.source.tp.Partition, Verdict: Unknown, Method: Sequence, Listed: []Difference{}}
		err = t.compare(ctx)
		if kafka.CodeOf(err) != kafka.CodeOffsetOutOfRange {
			break
		}
	}
	entries := t.run.ledger[t.source.tp]
	for i := range entries {
		t.out.Ledger = append(t.out.Ledger, entries[i].String())
	}
	if err == nil {
		name(t.out.Listed, entries)
		err = lookUp(ctx, t.source, t.target, t.out.Listed, t.run.opts.ShowRecords)
		if err != nil {
			t.out.Reason = join(t.out.Reason, "the differing records could not be read again: "+err.Error())
		}
		return
	}
	t.out.Verdict, t.out.Reason = Unknown, err.Error()
}

// name says of each difference what the ledger says of it.
func name(list []Difference, entries []losses.Entry) {
	for i := range list {
		d := &list[i]
		for j := range entries {
			if e := &entries[j]; names(e, d) {
				d.Known = fmt.Sprintf("%s at %s: %s", e.Kind, e.At.UTC().Format(time.RFC3339), e.Reason)
				break
			}
		}
	}
}

// names reports that an entry is about a difference.
func names(e *losses.Entry, d *Difference) bool {
	from, to := int64(e.From), int64(e.To)
	switch d.Kind {
	case Missing, Changed:
		return from < d.SourceOffset+d.SourceRecords && d.SourceOffset < to
	case Extra, Foreign, Duplicate:
		return e.Kind == losses.ForeignWriter
	case Reordered:
	}
	return false
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func (t *task) compare(ctx context.Context) error {
	if t.pair.Surplus(t.source.tp.Partition) {
		return t.surplus(ctx)
	}
	var b bounds
	var err error
	if b.sourceEnd, err = t.fixedEnd(ctx); err != nil {
		return err
	}
	if b.sourceStart, err = t.source.start(ctx); err != nil {
		return err
	}
	if t.pair.Absent(t.source.tp.Partition) {
		t.out.Source = Range{b.sourceStart, b.sourceEnd}
		return t.alone(ctx, t.source, t.out.Source, "the target has no such partition")
	}
	if b.targetStart, err = t.target.start(ctx); err != nil {
		return err
	}
	if b.targetEnd, err = t.target.end(ctx); err != nil {
		return err
	}
	t.out.Source, t.out.Target = Range{b.sourceStart, b.sourceEnd}, Range{b.targetStart, b.targetEnd}
	if t.pair.Compacted {
		return t.lastValues(ctx, b)
	}
	return t.sequences(ctx, b)
}

// fixedEnd is where the source ended when the run began.
func (t *task) fixedEnd(ctx context.Context) (int64, error) {
	if end, ok := t.run.ends[t.source.tp]; ok {
		return end, nil
	}
	return t.source.end(ctx)
}

// surplus is the result where the source has no such partition.
func (t *task) surplus(ctx context.Context) (err error) {
	if t.out.Target.From, err = t.target.start(ctx); err != nil {
		return err
	}
	if t.out.Target.To, err = t.target.end(ctx); err != nil {
		return err
	}
	return t.alone(ctx, t.target, t.out.Target, "the source has no such partition")
}

// alone is the result for a partition that only one side has: it matters only if
// it holds a record.
func (t *task) alone(ctx context.Context, s *side, offsets Range, reason string) error {
	items, err := head(ctx, s, offsets.From, offsets.To, 1)
	if err != nil {
		return err
	}
	t.out.Verdict, t.out.Reason = Different, reason
	if len(items) == 0 {
		t.out.Verdict, t.out.Reason = Equal, reason+", and it would be empty"
	}
	return nil
}

// sequences compares two logs record by record.
func (t *task) sequences(ctx context.Context, b bounds) error {
	a := newAligner(t.source, t.target, b)
	a.latest = t.run.opts.StartAtLatest
	if a.whole() {
		return t.conclude(ctx, b, start{how: "both logs still have their first record"})
	}
	source, target, err := a.heads(ctx)
	if err != nil {
		return err
	}
	if len(source) == 0 || len(target) == 0 {
		return t.oneEmpty(ctx, b, len(source), len(target))
	}
	if s, ok := t.run.anchors[t.source.tp]; ok && b.hold(s) {
		a.anchor = &s
	}
	return t.tryStarts(ctx, b, a)
}

// oneEmpty is the result where a log that has lost its first records, or its
// counterpart, holds none now.
func (t *task) oneEmpty(ctx context.Context, b bounds, source, target int) error {
	switch {
	case source == 0 && target == 0:
		t.out.Verdict, t.out.Reason = Equal, "neither side holds a record"
		return nil
	case target == 0 && b.targetStart == 0 && !t.run.opts.StartAtLatest, source == 0 && b.sourceStart == 0:
		return t.conclude(ctx, b, start{source: b.sourceStart, target: b.targetStart, how: "one log has been empty from the beginning"})
	}
	t.out.Reason = "no record is held by both sides"
	return nil
}

// tryStarts compares from one start after the other until the logs are equal. If
// they are under none of them, the one with the fewest differences is told.
func (t *task) tryStarts(ctx context.Context, b bounds, a *aligner) error {
	var best *Partition
	for tries := 0; ; tries++ {
		st, ok, err := a.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if tries == maxTries {
			best.Verdict = Unknown
			best.Reason = fmt.Sprintf("the first records repeat: %d places were tried, and from none of them on the logs are equal", maxTries)
			break
		}
		if err := t.conclude(ctx, b, st); err != nil || t.out.Verdict == Equal || a.telling && t.mostlyEqual() {
			return err
		}
		if best == nil || t.out.differences() < best.differences() {
			kept := *t.out
			best = &kept
		}
	}
	if best != nil {
		*t.out = *best
		return nil
	}
	return t.tryAnchor(ctx, b, a)
}

// mostlyEqual reports that the start must have been the right one, whatever
// differs: other starts need not be tried, each of which reads the logs again.
func (t *task) mostlyEqual() bool { return t.out.Equal >= 10*t.out.differences() }

// tryAnchor compares behind the anchor, which proves nothing of what lies before.
func (t *task) tryAnchor(ctx context.Context, b bounds, a *aligner) error {
	st, ok, err := a.anchored(ctx)
	if err != nil {
		return err
	}
	if !ok {
		t.out.Reason = "no place could be found that holds the same records on both sides"
		return nil
	}
	return t.conclude(ctx, b, st)
}

// conclude compares from a start to the end and draws the verdict.
func (t *task) conclude(ctx context.Context, b bounds, st start) error {
	source := newStream(ctx, t.source, st.source, b.sourceEnd, func(ctx context.Context, _ int64) (int64, error) { return t.source.end(ctx) })
	defer source.close()
	target := newStream(ctx, t.target, st.target, b.targetEnd, t.awaitTarget)
	defer target.close()
	c := newComparison(source, target, b.sourceEnd)
	c.skipped(st, b)
	if err := c.run(ctx); err != nil {
		return err
	}
	out := t.out
	out.Aligned, out.Digest = st.how, c.digest.String()
	out.Source, out.Target = Range{st.source, b.sourceEnd}, Range{st.target, target.to}
	out.take(&c.tally)
	out.Reason = ""
	switch {
	case c.tally.Different():
		out.Verdict = Different
		t.explain(ctx, c)
	case st.partial:
		out.Verdict = Unknown
		out.Reason = fmt.Sprintf("what lies before source offset %d and target offset %d could not be aligned; from there on all is equal", st.source, st.target)
	default:
		out.Verdict = Equal
	}
	return nil
}

// skipped notes the records before a start that the other side should have.
func (c *comparison) skipped(st start, b bounds) {
	if st.missing > 0 {
		c.note(Difference{Kind: Missing, SourceOffset: b.sourceStart, TargetOffset: st.target, SourceRecords: int64(st.missing), Producer: noOffset, Original: noOffset})
	}
	if st.extra > 0 {
		c.note(Difference{Kind: Extra, SourceOffset: st.source, TargetOffset: b.targetStart, TargetRecords: int64(st.extra), Producer: noOffset, Original: noOffset})
	}
}

// explain says what is behind the differences, where that can be learnt.
func (t *task) explain(ctx context.Context, c *comparison) {
	out := t.out
	if c.tally.Apart {
		out.Reason = fmt.Sprintf("the logs do not meet again within %d records behind the last difference; nothing behind it was compared", lookAhead)
	}
	last := &out.Listed[len(out.Listed)-1]
	if last.Kind != Missing || last.TargetOffset != noOffset {
		return
	}
	if open, err := t.openTransaction(ctx); err == nil && open {
		out.Reason = join(out.Reason, "a transaction is open on the target, and what lies behind its beginning cannot be read yet")
		if out.differences() == last.SourceRecords {
			out.Verdict = Unknown
		}
		return
	}
	next, known := t.run.position(ctx, t.source.tp)
	if !known || next > last.SourceOffset {
		return
	}
	// The flow itself says that it has not copied these.
	out.Reason = join(out.Reason, fmt.Sprintf("the flow is not there yet: it stands at source offset %d of %d", next, c.demanded))
	if out.differences() == last.SourceRecords {
		out.Verdict = Unknown
	}
}

// openTransaction reports that the target holds more than its readers may see.
func (t *task) openTransaction(ctx context.Context) (bool, error) {
	seen, err := t.target.end(ctx)
	if err != nil {
		return false, err
	}
	all := *t.target
	all.iso = kafka.ReadUncommitted
	end, err := all.end(ctx)
	return end > seen, err
}

// awaitTarget waits for the target to grow, as long as the mode allows. It gives
// up when this log has not grown for so long, or when no log has: then nothing
// copies any more, and it is not waited for once for each partition.
func (t *task) awaitTarget(ctx context.Context, end int64) (int64, error) {
	began := time.Now()
	for {
		now, err := t.target.end(ctx)
		if err != nil {
			return 0, err
		}
		if now > end {
			t.run.grew()
			return now, nil
		}
		at := time.Now()
		if wait := t.run.opts.Wait; at.Sub(began) >= wait || t.run.idleFor(at) >= wait {
			return now, nil
		}
		t.run.waiting(t.target.tp)
		if err := pause(ctx, growPoll); err != nil {
			return 0, err
		}
	}
}
