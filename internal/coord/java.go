package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
)

// Java MirrorMaker's positions do not tell where the target stood, and after a
// kill they are up to a minute old. What was copied behind them is found here:
// an offset sync says which record lies where, and from there on both logs must
// go on in step.

// anchorsTried bounds how many offset syncs of a partition are tried, the newest first.
const anchorsTried = 3

// stillPatience is how long a transaction that MirrorMaker left open may take to
// end. Its coordinator aborts it after a minute by default.
const (
	stillPatience = 5 * time.Minute
	stillPause    = 500 * time.Millisecond
)

// findBehindJava finds how far a partition was copied whose position is Java
// MirrorMaker's, or is missing. What it cannot tell from an offset sync it tells
// from the end of the target's log.
func (s *scanner) findBehindJava(ctx context.Context, p placed, syncs []mirror.OffsetSync, end int64) (found, error) {
	to := limit{marker: kafka.NoProducer, end: end}
	for _, sync := range syncs[:min(anchorsTried, len(syncs))] {
		for _, times := range s.clocks {
			s.times = times
			f, err := s.matchFrom(ctx, p.in, sync, to)
			if err == nil {
				return f, nil
			}
			if !errors.Is(err, errNoAnchor) {
				return f, err
			}
		}
	}
	if p.in.Stored == nil && p.in.Synced {
		return found{}, errors.New("no position is stored, and no offset sync of MirrorMaker's has its record on both sides; set heliograph.missing.position to one of scan, end, start")
	}
	s.times = false
	return s.scan(ctx, p.in, p.p, nil, to)
}

// errNoAnchor says that an offset sync does not tell the place: one of its
// records is gone, or the logs do not go on in step behind it.
var errNoAnchor = errors.New("the offset sync does not tell the place")

// matchFrom walks both logs from the records of an offset sync on.
func (s *scanner) matchFrom(ctx context.Context, in plan.PlaceInput, sync mirror.OffsetSync, to limit) (found, error) {
	if sync.Upstream < in.SourceLog.Start || sync.Upstream >= in.SourceLog.End ||
		sync.Downstream < in.TargetLog.Start || int64(sync.Downstream) >= to.end {
		return found{}, errNoAnchor
	}
	p := plan.Placement{Source: sync.Upstream, Target: sync.Downstream, Anchored: true}
	target, out, err := s.readTarget(ctx, in.Target, p, nil, to)
	if err != nil {
		return out, err
	}
	source, offsets, err := s.readSource(ctx, in, p, len(target.hashes))
	if err != nil {
		return out, err
	}
	if len(source) == 0 || len(target.hashes) == 0 || offsets[0] != int64(sync.Upstream) || target.offsets[0] != int64(sync.Downstream) || source[0] != target.hashes[0] {
		return out, errNoAnchor
	}
	inStep := 0
	for inStep < len(source) && inStep < len(target.hashes) && source[inStep] == target.hashes[inStep] {
		inStep++
	}
	if inStep == len(target.hashes) {
		out.ours = inStep
		out.overlap(inStep, offsets, target)
		return out, nil
	}
	return s.matchSet(source, offsets, target, out)
}

// matchSet serves targets that hold records twice, because MirrorMaker died and
// began again at an old position, or records of others. Every source record that
// was copied lies there somewhere; the first that does not is the place.
func (s *scanner) matchSet(source []uint64, offsets []int64, target written, out found) (found, error) {
	if repeats(source) {
		return out, errNoAnchor
	}
	last := make(map[uint64]int, len(target.hashes)) // where a record lies, the last time
	for i, h := range target.hashes {
		last[h] = i
	}
	n := 0
	for n < len(source) {
		if _, ok := last[source[n]]; !ok {
			break
		}
		n++
	}
	for _, h := range source[n:] {
		if _, ok := last[h]; ok {
			return out, errNoAnchor // a record is missing between two that are there
		}
	}
	out.ours, out.foreign = n, 0
	out.next = mirror.UpstreamOffset(offsets[n-1] + 1)
	at := -1
	for i := range n {
		if where := last[source[i]]; where > at { // a map rises; what lies out of order is left out of it
			at = where
			out.pairs = append(out.pairs, pair{mirror.UpstreamOffset(offsets[i]), mirror.DownstreamOffset(target.offsets[where])})
		}
	}
	return out, nil
}

// still waits until no transaction that was open when it was called is open any
// more on a target partition: until then what it wrote may count or not. It
// returns the end of the log.
func (k *Keeper) still(ctx context.Context, tp kafka.TopicPartition) (int64, error) {
	tps := []kafka.TopicPartition{tp}
	said := false
	for began := time.Now(); ; {
		end := k.target.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadUncommitted)[tp]
		stable := k.target.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadCommitted)[tp]
		switch err := cmp.Or(end.Err, stable.Err); {
		case err != nil && !kafka.Heals(err):
			return 0, fmt.Errorf("end of the copy: %w", err)
		case err == nil && stable.Offset >= end.Offset:
			return end.Offset, nil
		case err == nil && time.Since(began) > stillPatience:
			return 0, fmt.Errorf("a transaction is open in %s from offset %d on and does not end: find it with kafka-transactions.sh find-hanging, and abort it", tp, stable.Offset)
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case err == nil && !said:
			said = true
			k.log.Info("waiting for the end of a transaction that MirrorMaker left open", "topic", tp.Topic, "partition", tp.Partition)
		}
		pause(ctx, stillPause)
	}
}

// silenceJava raises the epoch of every transactional id that MirrorMaker's tasks
// have used and none of our lanes uses, once in a process's life: what they left
// open is aborted, and a task that wakes up late is fenced. Ids of lanes are
// taken by their owners.
func (k *Keeper) silenceJava(ctx context.Context) {
	k.silenced.Do(func() {
		if !k.opts.ExactlyOnce {
			return
		}
		for n := range k.opts.JavaTasks {
			if n < k.opts.Lanes && len(k.wanted(n)) > 0 {
				continue
			}
			id := fmt.Sprintf("%s-%s-%d", k.opts.GroupID, mirror.SourceConnector, n)
			if err := k.retry(ctx, func() error { _, err := k.target.InitProducerID(ctx, id, time.Minute); return err }); err != nil && ctx.Err() == nil {
				k.log.Warn("a task of MirrorMaker was not fenced", "id", id, "err", err)
			}
		}
	})
}

// syncsAge is how long one reading of the offset syncs serves the partitions
// that are taken over together.
const syncsAge = time.Minute

// syncsOf are the offset syncs of a partition, the newest first.
func (k *Keeper) syncsOf(ctx context.Context, tp kafka.TopicPartition) []mirror.OffsetSync {
	if k.opts.Syncs == nil {
		return nil
	}
	k.anchors.Lock()
	defer k.anchors.Unlock()
	if k.anchors.of == nil || time.Since(k.anchors.at) > syncsAge {
		of, err := k.opts.Syncs(ctx)
		if err != nil {
			k.log.Warn("the offset syncs were not read: MirrorMaker's places are found by the end of the copies alone", "err", err)
			return nil
		}
		k.anchors.of, k.anchors.at = of, time.Now()
	}
	return k.anchors.of(tp)
}
