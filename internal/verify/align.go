package verify

import (
	"context"
	"fmt"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// maxTries bounds the starts that are tried where records repeat so much that
// the first ones lie at several places.
const maxTries = 4

// A start is a pair of places that hold the same record, and from where on both
// logs are compared.
type start struct {
	source, target int64
	how            string
	// Records of either side before the start that the other side should have.
	missing, extra int
	// partial says that what lies before could not be compared.
	partial bool
}

// bounds are where both logs of a partition begin, and end for this comparison.
type bounds struct {
	sourceStart, sourceEnd int64
	targetStart, targetEnd int64
}

// An aligner proposes starts, the likeliest first.
type aligner struct {
	source, target *side
	bounds         bounds
	// anchor is the partition's oldest offset sync that both logs still hold.
	anchor *mirror.OffsetSync
	// latest says that the flow begins topics at their end, so that a whole target
	// need not have the source's first records.
	latest bool

	// telling says that the first records of both logs tell the place: none of them
	// repeats, and all have times.
	telling bool

	searches []search // that have not been exhausted
	proposed map[[2]int64]bool
}

// A search looks for the head of one log in the other one.
type search struct {
	headOf, in *side
	head       []Item
	from, to   int64 // of the other one, still to be searched
	before     int   // haystack records before from
}

func newAligner(source, target *side, b bounds) *aligner {
	return &aligner{source: source, target: target, bounds: b, proposed: map[[2]int64]bool{}}
}

// whole is the start of two logs that both still have their first record ever.
func (a *aligner) whole() bool {
	return a.bounds.sourceStart == 0 && a.bounds.targetStart == 0 && !a.latest
}

// heads reads the first records of both logs. Either may have none.
func (a *aligner) heads(ctx context.Context) (source, target []Item, err error) {
	const most = needleLength * needleCount
	b := a.bounds
	if source, err = head(ctx, a.source, b.sourceStart, b.sourceEnd, most); err != nil {
		return nil, nil, err
	}
	target, err = head(ctx, a.target, b.targetStart, b.targetEnd, most)
	a.telling = tells(source) && tells(target)
	a.searches = []search{
		{headOf: a.target, in: a.source, head: target, from: b.sourceStart, to: b.sourceEnd},
		{headOf: a.source, in: a.target, head: source, from: b.targetStart, to: b.targetEnd},
	}
	return source, target, err
}

// tells reports that no record of a head could be taken for another one.
func tells(head []Item) bool {
	seen := make(map[Digest]bool, len(head))
	for i := range head {
		it := &head[i]
		if seen[it.Digest] || it.Stamped || it.Time == kafka.TimestampNone {
			return false
		}
		seen[it.Digest] = true
	}
	return len(head) >= needleLength
}

// next proposes the next start; ok is false when there is none left.
func (a *aligner) next(ctx context.Context) (st start, ok bool, err error) {
	if len(a.proposed) == 0 && a.anchor != nil {
		if st, ok, err = a.shifted(ctx); ok || err != nil {
			return st, ok, err
		}
	}
	for len(a.searches) > 0 {
		s := &a.searches[0]
		h, found, err := s.next(ctx)
		if err != nil {
			return start{}, false, err
		}
		if !found {
			a.searches = a.searches[1:]
			continue
		}
		st := a.startOf(s, h)
		if a.propose(st) {
			return st, true, nil
		}
	}
	return start{}, false, nil
}

// propose reports whether the start is a new one.
func (a *aligner) propose(st start) bool {
	at := [2]int64{st.source, st.target}
	if a.proposed[at] {
		return false
	}
	a.proposed[at] = true
	return true
}

// startOf is the start that a hit means.
func (a *aligner) startOf(s *search, h hit) start {
	if s.in == a.source {
		st := start{source: h.haystack, target: h.needles, how: "the target's first records were found at the source"}
		if a.bounds.targetStart == 0 && !a.latest {
			st.missing = h.skipped // the target never had them
		}
		if a.bounds.sourceStart == 0 {
			st.extra = h.lacking
		}
		return st
	}
	st := start{source: h.needles, target: h.haystack, how: "the source's first records were found on the target"}
	if a.bounds.sourceStart == 0 {
		st.extra = h.skipped
	}
	if a.bounds.targetStart == 0 && !a.latest {
		st.missing = h.lacking
	}
	return st
}

// next searches on for the head.
func (s *search) next(ctx context.Context) (hit, bool, error) {
	if len(s.head) == 0 || s.from >= s.to {
		return hit{}, false, nil
	}
	l := newLeg(ctx, s.in, s.from, s.to)
	defer l.close()
	f := newFinder(s.head)
	for {
		block, err := l.next(ctx)
		if err != nil || block == nil {
			s.from = s.to
			return hit{}, false, err
		}
		for i := range block {
			h, ok := f.push(block[i])
			if !ok {
				continue
			}
			if s.before > 0 && h.lacking > 0 {
				continue // the log does not begin here, only this search does
			}
			h.skipped += s.before
			// The next search begins one record behind the place of this hit.
			s.before, s.from = h.skipped+1, h.haystack+1
			return h, true, nil
		}
	}
}

// shifted guesses the start from the anchor: without transactions, compaction and
// other writers, offsets of both sides differ by the same number everywhere. The
// guess counts only if the records say the same.
func (a *aligner) shifted(ctx context.Context) (start, bool, error) {
	b := a.bounds
	shift := int64(a.anchor.Upstream) - int64(a.anchor.Downstream)
	st := start{source: b.targetStart + shift, target: b.targetStart, how: "by an offset sync, and the records there agree"}
	if st.source < b.sourceStart {
		st.source, st.target = b.sourceStart, b.sourceStart-shift
	}
	ok, err := a.agree(ctx, st)
	if !ok || err != nil {
		return start{}, false, err
	}
	if b.targetStart == 0 && st.source > b.sourceStart && !a.latest || b.sourceStart == 0 && st.target > b.targetStart {
		return start{}, false, nil // records are missing or extra before: the search counts them
	}
	return st, a.propose(st), nil
}

// agree reports that both logs hold the same records at a start.
func (a *aligner) agree(ctx context.Context, st start) (bool, error) {
	if st.source >= a.bounds.sourceEnd || st.target >= a.bounds.targetEnd {
		return false, nil
	}
	x, err := head(ctx, a.source, st.source, a.bounds.sourceEnd, needleLength)
	if err != nil {
		return false, err
	}
	y, err := head(ctx, a.target, st.target, a.bounds.targetEnd, needleLength)
	if err != nil {
		return false, err
	}
	n := min(len(x), len(y))
	return n > 0 && x[0].Offset == st.source && y[0].Offset == st.target && equalRun(x, y, n) == n, nil
}

// anchored is the last resort: the anchor itself. What lies before stays open.
func (a *aligner) anchored(ctx context.Context) (start, bool, error) {
	if a.anchor == nil {
		return start{}, false, nil
	}
	st := start{
		source: int64(a.anchor.Upstream), target: int64(a.anchor.Downstream), partial: true,
		how: fmt.Sprintf("by the offset sync %d -> %d alone", a.anchor.Upstream, a.anchor.Downstream),
	}
	ok, err := a.agree(ctx, st)
	return st, ok, err
}
