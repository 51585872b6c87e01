package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
)

// forgotten is how many offsets behind the placement the target's retention has
// removed.
func forgotten(in plan.PlaceInput, p plan.Placement) int {
	return int(max(0, in.TargetLog.Start-p.Target))
}

// matchBehindForgotten serves targets whose retention has removed the first of
// what lies behind the position. What is left of ours is a run of the source's
// records, and at most one record an offset was removed before it: where exactly
// one place within that many records matches, it is the place. Where several do,
// because records repeat, or none is left to compare, nothing tells how many of
// the source's records were written, and an error says so.
func (s *scanner) matchBehindForgotten(ctx context.Context, in plan.PlaceInput, p plan.Placement, target written, out found) (found, error) {
	removed, n := forgotten(in, p), len(target.hashes)
	if in.Stored.Facts.Clean {
		if n > 0 {
			return out, fmt.Errorf("the position says that the last owner stopped in order, and %d records of its producer lie behind it", n)
		}
		out.foreign += removed // whoever wrote behind us, it was not us
		return out, nil
	}
	if p.Gap != nil && in.SourceLog.Start < in.SourceLog.End || p.Gap != nil && n > 0 {
		return out, fmt.Errorf("the target's retention has removed %d offsets behind the position, and the source's retention what was in them", removed)
	}
	source, offsets, err := s.readSource(ctx, in, p, removed+n)
	if err != nil {
		return out, err
	}
	if len(source) == 0 && n == 0 {
		return out, nil // nothing is left on either side, so nothing can be lost or doubled
	}
	if n == 0 {
		return out, fmt.Errorf("the target's retention has removed all of what was written behind the position, %d offsets: how many of the source's records that were cannot be told", removed)
	}
	var places []int
	for i := 0; i <= removed && i+n <= len(source); i++ {
		if slices.Equal(source[i:i+n], target.hashes) {
			places = append(places, i)
		}
	}
	if len(places) != 1 {
		return out, fmt.Errorf("the target's retention has removed the first %d offsets behind the position, and the %d records left match %d places in %s", removed, n, len(places), in.Source)
	}
	at := places[0]
	out.next = mirror.UpstreamOffset(offsets[at+n-1] + 1)
	for i := range n {
		out.pairs = append(out.pairs, pair{mirror.UpstreamOffset(offsets[at+i]), mirror.DownstreamOffset(target.offsets[i])})
	}
	return out, nil
}

// scanTries is how often a scan begins again because retention was quicker.
const scanTries = 5

// scanFrom scans, and again from the log's new start where the target's
// retention removed what was being read.
func (k *Keeper) scanFrom(ctx context.Context, sc *scanner, s *placed, writers map[int64]bool, to limit) (found, error) {
	for try := 1; ; try++ {
		f, err := sc.scan(ctx, s.in, s.p, writers, to)
		if kafka.CodeOf(err) != kafka.CodeOffsetOutOfRange || try == scanTries {
			return f, err
		}
		start := k.target.ListOffsets(ctx, []kafka.TopicPartition{s.Target}, kafka.Earliest, kafka.ReadUncommitted)[s.Target]
		if start.Err != nil {
			return f, errors.Join(err, start.Err)
		}
		s.in.TargetLog.Start = mirror.DownstreamOffset(start.Offset)
	}
}
