package verify

import (
	"context"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

// lastValues compares the last value of each key of two logs, in passes.
func (t *task) lastValues(ctx context.Context, b bounds) error {
	t.run.compacted.Lock()
	defer t.run.compacted.Unlock()
	out := t.out
	out.Method = LastValues
	lost := unheld{source: t.pair.Deletes && b.sourceStart > 0, target: t.pair.Deletes && b.targetStart > 0}
	var tally Tally
	for todo := []share{{}}; len(todo) > 0; {
		l := newLatest(todo[0], maxKeys)
		if err := t.pass(ctx, &b, l); err != nil {
			return err
		}
		todo = append(l.rest, todo[1:]...)
		l.tally(&tally, lost)
		out.Passes++
	}
	out.take(&tally)
	out.Target.To = b.targetEnd
	out.Verdict = Equal
	if tally.Different() {
		out.Verdict = Different
		t.explainKeys(ctx, b, &tally)
	}
	return nil
}

// explainKeys says where the flow has not copied what is missing yet.
func (t *task) explainKeys(ctx context.Context, b bounds, tally *Tally) {
	next, known := t.run.position(ctx, t.source.tp)
	if !known || next >= b.sourceEnd {
		return
	}
	t.out.Reason = fmt.Sprintf("the flow is not there yet: it stands at source offset %d of %d", next, b.sourceEnd)
	behind := tally.total() == int64(len(tally.Listed))
	for i := range tally.Listed {
		behind = behind && tally.Listed[i].SourceOffset >= next
	}
	if behind {
		t.out.Verdict = Unknown
	}
}

// pass reads both logs for the keys of one share. While they disagree, it looks
// what the target gets and what the source has got behind its fixed end.
func (t *task) pass(ctx context.Context, b *bounds, l *latest) error {
	if err := t.put(ctx, t.source, b.sourceStart, b.sourceEnd, l); err != nil {
		return err
	}
	if err := t.put(ctx, t.target, b.targetStart, b.targetEnd, l); err != nil {
		return err
	}
	for began := time.Now(); ; {
		if l.settled() {
			return nil
		}
		now, err := t.source.end(ctx)
		if err != nil {
			return err
		}
		err = t.source.read(ctx, b.sourceEnd, now, func(batch *recordbatch.Batch) error {
			return t.source.records(batch, b.sourceEnd, now, l.putLater)
		})
		if err != nil {
			return err
		}
		if l.settled() || time.Since(began) > keysWithin {
			return nil
		}
		grown, err := t.awaitTarget(ctx, b.targetEnd)
		if err != nil || grown <= b.targetEnd {
			return err
		}
		if err := t.put(ctx, t.target, b.targetEnd, grown, l); err != nil {
			return err
		}
		b.targetEnd = grown
	}
}

// keysWithin bounds how long a target that goes on growing is followed while keys
// differ. Keys that differ then do so for longer than a copy is under way.
const keysWithin = 5 * time.Minute

func (t *task) put(ctx context.Context, s *side, from, to int64, l *latest) error {
	return s.read(ctx, from, to, func(b *recordbatch.Batch) error {
		stamped := s.target && b.LogAppendTime()
		return s.records(b, from, to, func(r *kafka.Record) { l.put(r, s.target, stamped) })
	})
}
