package coord

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/recordbatch"
)

// scanner finds how much of a source partition already lies in the target,
// behind a known place.
type scanner struct {
	source, target Cluster
	iso            kafka.Isolation // of the source
	compacted      bool            // the source may lack records that were copied
	seed           maphash.Seed
	// clocks are the ways to look at times while looking for MirrorMaker's place:
	// as part of a record where the target keeps them, and then without.
	clocks []bool
	times  bool
}

// found is a scan's result.
type found struct {
	next    mirror.UpstreamOffset   // first source offset that is not on the target
	write   mirror.DownstreamOffset // end of the target's log, behind the marker
	ours    int                     // records of ours behind the position
	pairs   []pair                  // where they lie on both sides
	foreign int                     // records of other writers behind the position
	gone    int                     // records of ours that the source's retention has removed since
}

// pair is a record's place on both sides.
type pair struct {
	up   mirror.UpstreamOffset
	down mirror.DownstreamOffset
}

// written are the records that a scan found on the target, as hashes and offsets.
type written struct {
	hashes  []uint64
	offsets []int64
}

// limit says where the reading of the target ends: at our marker, or, where
// there is none, at an offset.
type limit struct {
	marker kafka.ProducerID // zero ID and epoch -1: none
	end    int64
}

func (l limit) hasMarker() bool { return l.marker.Epoch >= 0 }

// scan reads the target from the placement on, keeps the records that the
// flow's producers wrote, and walks the source over as many records, comparing
// each. writers are the producer ids that count as ours; nil counts all.
func (s *scanner) scan(ctx context.Context, in plan.PlaceInput, p plan.Placement, writers map[int64]bool, to limit) (found, error) {
	from := p
	if p.Anchored {
		from.Target = max(p.Target, in.TargetLog.Start)
	}
	target, out, err := s.readTarget(ctx, in.Target, from, writers, to)
	if err != nil {
		return found{}, err
	}
	out.next = p.Source
	if p.Anchored && forgotten(in, p) > 0 {
		return s.matchBehindForgotten(ctx, in, p, target, out)
	}
	if len(target.hashes) == 0 {
		return out, nil
	}
	switch {
	case !p.Anchored:
		return s.matchSuffix(ctx, in, p, target, out)
	case p.Gap != nil && !s.compacted:
		return s.matchBehindGap(ctx, in, p, target, out)
	}
	return s.matchPrefix(ctx, in, p, target, out)
}

// markerPatience is how long a scan waits at the end of a log for the fence's
// marker. A partition that has no leader when the transaction ends may never
// get one, although the coordinator calls the transaction complete.
const markerPatience = 30 * time.Second

var errNoMarker = errors.New("the fence's marker is not in the log")

// readTarget hashes the records behind the placement.
func (s *scanner) readTarget(ctx context.Context, tp kafka.TopicPartition, p plan.Placement, writers map[int64]bool, to limit) (written, found, error) {
	out := found{write: p.Target}
	got := gathered{open: map[int64]*openTransaction{}, aborted: map[int]bool{}}
	seen := !to.hasMarker()
	end := to.end
	if to.hasMarker() {
		end = math.MaxInt64
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	patience := time.AfterFunc(markerPatience, func() {
		if to.hasMarker() {
			stop()
		}
	})
	defer patience.Stop()
	err := readLog(reading, s.target, span{tp, int64(p.Target), end, kafka.ReadUncommitted}, func(b *recordbatch.Batch, _ bool) (bool, error) {
		patience.Reset(markerPatience)
		out.write = mirror.DownstreamOffset(b.NextOffset())
		if b.Control() {
			got.end(b)
			if to.hasMarker() && b.ProducerID == to.marker.ID && b.ProducerEpoch == to.marker.Epoch {
				seen = true
				return false, nil
			}
			return true, nil
		}
		if writers != nil && !writers[b.ProducerID] {
			got.addForeign(b)
			return true, nil
		}
		var offsets []int64
		hashes, err := s.hashes(b, int64(p.Target), &offsets)
		got.add(b, written{hashes, offsets})
		return true, err
	})
	if !seen && ctx.Err() == nil && (err == nil || reading.Err() != nil) {
		err = fmt.Errorf("scan %s: %w", tp, errNoMarker)
	}
	target := got.committed()
	out.ours, out.foreign = len(target.hashes), got.foreign
	return target, out, err
}

// gathered are the records of a log that is read to its very end, also past
// open transactions of others. What a transaction wrote is taken back when its
// abort marker comes: no reader sees it, so it was not delivered.
type gathered struct {
	written
	foreign int
	open    map[int64]*openTransaction // by producer id
	aborted map[int]bool               // places in written
}

// openTransaction is what a producer wrote since its last marker.
type openTransaction struct {
	ours    []int // places in written
	foreign int
}

func (g *gathered) transaction(b *recordbatch.Batch) *openTransaction {
	if !b.Transactional() {
		return &openTransaction{} // no marker decides on it
	}
	if g.open[b.ProducerID] == nil {
		g.open[b.ProducerID] = &openTransaction{}
	}
	return g.open[b.ProducerID]
}

func (g *gathered) add(b *recordbatch.Batch, w written) {
	txn := g.transaction(b)
	for i := range w.hashes {
		txn.ours = append(txn.ours, len(g.hashes)+i)
	}
	g.hashes = append(g.hashes, w.hashes...)
	g.offsets = append(g.offsets, w.offsets...)
}

func (g *gathered) addForeign(b *recordbatch.Batch) {
	g.transaction(b).foreign += int(b.Count)
	g.foreign += int(b.Count)
}

// end is told a marker.
func (g *gathered) end(b *recordbatch.Batch) {
	txn := g.open[b.ProducerID]
	delete(g.open, b.ProducerID)
	if kind, ok := recordbatch.Control(b); txn == nil || !ok || kind != recordbatch.ControlAbort {
		return
	}
	g.foreign -= txn.foreign
	for _, i := range txn.ours {
		g.aborted[i] = true
	}
}

// committed are the records that were not taken back.
func (g *gathered) committed() written {
	if len(g.aborted) == 0 {
		return g.written
	}
	var out written
	for i, h := range g.hashes {
		if !g.aborted[i] {
			out.hashes = append(out.hashes, h)
			out.offsets = append(out.offsets, g.offsets[i])
		}
	}
	return out
}

// matchPrefix walks the source from the position over the records that were
// written behind it. A source that was compacted since may lack some of them.
func (s *scanner) matchPrefix(ctx context.Context, in plan.PlaceInput, p plan.Placement, target written, out found) (found, error) {
	i := 0
	mismatch := int64(-1)
	err := readLog(ctx, s.source, span{in.Source, int64(p.Source), int64(in.SourceLog.End), s.iso}, func(b *recordbatch.Batch, aborted bool) (bool, error) {
		if b.Control() || aborted {
			return true, nil
		}
		offsets := []int64{}
		hashes, err := s.hashes(b, int64(p.Source), &offsets)
		if err != nil {
			return false, err
		}
		for j, h := range hashes {
			if i == len(target.hashes) {
				return false, nil
			}
			at := indexFrom(target.hashes, i, h)
			if at < 0 {
				mismatch = offsets[j]
				return false, nil
			}
			i = at + 1
			out.next = mirror.UpstreamOffset(offsets[j] + 1)
			out.pairs = append(out.pairs, pair{mirror.UpstreamOffset(offsets[j]), mirror.DownstreamOffset(target.offsets[at])})
		}
		return i < len(target.hashes), nil
	})
	if err != nil {
		return out, err
	}
	if mismatch >= 0 && i < len(target.hashes) && s.compacted {
		// What is left on the target was compacted away at the source. Records
		// from here on may be written again; the last value of a key stays right.
		out.next = mirror.UpstreamOffset(mismatch)
		return out, nil
	}
	if mismatch >= 0 && i < len(target.hashes) {
		return out, &mismatchError{tp: in.Source, offset: mismatch, matched: i, written: len(target.hashes)}
	}
	return out, nil
}

// indexFrom finds h in hashes at or after i; the records passed over are ones
// that the source has since compacted away.
func indexFrom(hashes []uint64, i int, h uint64) int {
	for ; i < len(hashes); i++ {
		if hashes[i] == h {
			return i
		}
	}
	return -1
}

// mismatchError says that what we wrote is not what the source holds.
type mismatchError struct {
	tp               kafka.TopicPartition
	offset           int64
	matched, written int
}

func (e *mismatchError) Error() string {
	return fmt.Sprintf("of %d records found behind the position on the target, %d match the source and the source record at offset %d of %s is not among the rest",
		e.written, e.matched, e.offset, e.tp)
}

// matchSuffix finds the longest run of source records from the position on that
// is the end of the target's log. It serves positions of Java MirrorMaker, where
// no offset sync tells more, and partitions whose position is missing. Records in
// front of a position are on the target for certain: a run that begins with some
// of them is no earlier one. Where a run could be mistaken all the same, because
// records repeat, it claims nothing. Behind Java that means to copy again, as Java
// would do; without a position it is an error, since all would be copied twice.
func (s *scanner) matchSuffix(ctx context.Context, in plan.PlaceInput, p plan.Placement, target written, out found) (found, error) {
	if in.Stored != nil && p.Gap == nil {
		if f, ok, err := s.matchWithContext(ctx, in, p, target, out); ok || err != nil {
			return f, err
		}
	}
	source, offsets, err := s.readSource(ctx, in, p, len(target.hashes))
	if err != nil {
		return out, err
	}
	k := longestOverlap(source, target.hashes)
	if k == 0 || repeats(source[:k]) {
		if in.Stored == nil {
			return out, fmt.Errorf("the end of %s cannot be told apart in %s: it is not there, or its records repeat", in.Target, in.Source)
		}
		out.ours = 0
		return out, nil
	}
	out.ours = k
	out.overlap(k, offsets, target)
	return out, nil
}

// contextOffsets is how far in front of a position its context begins.
const contextOffsets = 200

// matchWithContext finds the run that begins in front of the position. It
// reports false where there is no record in front, or where the copy does not
// hold them right there, as after a crash of MirrorMaker's that copied some twice.
func (s *scanner) matchWithContext(ctx context.Context, in plan.PlaceInput, p plan.Placement, target written, out found) (found, bool, error) {
	from := p
	from.Source = max(in.SourceLog.Start, p.Source-contextOffsets)
	source, offsets, err := s.readSource(ctx, in, from, len(target.hashes)+contextOffsets)
	if err != nil {
		return out, false, err
	}
	before := 0
	for before < len(offsets) && offsets[before] < int64(p.Source) {
		before++
	}
	if before > len(target.hashes) { // the copy's retention has taken more than the source's
		source, offsets, before = source[before-len(target.hashes):], offsets[before-len(target.hashes):], len(target.hashes)
	}
	if before == 0 {
		return out, false, nil
	}
	k := longestOverlap(source, target.hashes)
	if k < before {
		return out, false, nil
	}
	for borders := prefixes(source); borders[k-1] >= before; {
		k = borders[k-1] // a shorter one fits too: twice is better than never
	}
	out.ours = k - before
	out.overlap(out.ours, offsets[before:], target)
	return out, true, nil
}

// matchBehindGap serves sources whose retention has removed records behind the
// position. Of what was written at most one record an offset of the gap can be
// gone, so that the others must overlap with what the source still has; where
// the contents would allow a longer overlap, because records repeat, the place
// cannot be told.
func (s *scanner) matchBehindGap(ctx context.Context, in plan.PlaceInput, p plan.Placement, target written, out found) (found, error) {
	source, offsets, err := s.readSource(ctx, in, p, len(target.hashes))
	if err != nil {
		return out, err
	}
	n := len(target.hashes)
	least := max(0, n-int(p.Gap.To-p.Gap.From))
	k := longestOverlap(source, target.hashes)
	if k != least {
		return out, fmt.Errorf("the source's retention has removed the first of %d records found behind the position on the target, and whether %d or %d of them are still in %s cannot be told",
			n, least, k, in.Source)
	}
	out.gone = n - k
	out.overlap(k, offsets, target)
	return out, nil
}

// readSource hashes at least count records behind the placement, if there are as many.
func (s *scanner) readSource(ctx context.Context, in plan.PlaceInput, p plan.Placement, count int) (hashes []uint64, offsets []int64, err error) {
	err = readLog(ctx, s.source, span{in.Source, int64(p.Source), int64(in.SourceLog.End), s.iso}, func(b *recordbatch.Batch, aborted bool) (bool, error) {
		if b.Control() || aborted {
			return true, nil
		}
		more, err := s.hashes(b, int64(p.Source), &offsets)
		hashes = append(hashes, more...)
		return len(hashes) < count, err
	})
	return hashes, offsets, err
}

// overlap notes that the first k source records are the last k on the target.
func (f *found) overlap(k int, offsets []int64, target written) {
	if k == 0 {
		return
	}
	f.next = mirror.UpstreamOffset(offsets[k-1] + 1)
	tail := target.offsets[len(target.offsets)-k:]
	for i := range k {
		f.pairs = append(f.pairs, pair{mirror.UpstreamOffset(offsets[i]), mirror.DownstreamOffset(tail[i])})
	}
}

// longestOverlap is the length of the longest prefix of a that is a suffix of b.
func longestOverlap(a, b []uint64) int {
	if len(a) == 0 {
		return 0
	}
	fail := prefixes(a)
	k := 0
	for _, h := range b {
		for k > 0 && (k == len(a) || a[k] != h) {
			k = fail[k-1]
		}
		if a[k] == h {
			k++
		}
	}
	return k
}

// prefixes tells for each i the length of the longest proper prefix of a[:i+1]
// that is its suffix too (Knuth, Morris and Pratt).
func prefixes(a []uint64) []int {
	fail := make([]int, len(a))
	for i, k := 1, 0; i < len(a); i++ {
		for k > 0 && a[i] != a[k] {
			k = fail[k-1]
		}
		if a[i] == a[k] {
			k++
		}
		fail[i] = k
	}
	return fail
}

func repeats(hashes []uint64) bool {
	seen := make(map[uint64]struct{}, len(hashes))
	for _, h := range hashes {
		if _, ok := seen[h]; ok {
			return true
		}
		seen[h] = struct{}{}
	}
	return false
}

// hashes gives a hash of each record of a batch at or after from: key, value
// and headers. Timestamps are left out, because the target may set its own,
// unless they are asked for.
func (s *scanner) hashes(b *recordbatch.Batch, from int64, offsets *[]int64) ([]uint64, error) {
	records, err := recordbatch.Records(b)
	if err != nil {
		return nil, err
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	out := make([]uint64, 0, len(records))
	for i := range records {
		r := &records[i]
		if r.Offset < from {
			continue
		}
		h.Reset()
		if s.times {
			var at [8]byte
			binary.BigEndian.PutUint64(at[:], uint64(r.Timestamp))
			_, _ = h.Write(at[:])
		}
		hashBytes(&h, r.Key)
		hashBytes(&h, r.Value)
		for _, hd := range r.Headers {
			_, _ = h.WriteString(hd.Key)
			hashBytes(&h, hd.Value)
		}
		out = append(out, h.Sum64())
		if offsets != nil {
			*offsets = append(*offsets, r.Offset)
		}
	}
	return out, nil
}

// hashBytes keeps null and empty, and the border to the next field, apart.
func hashBytes(h *maphash.Hash, b []byte) {
	n := int64(len(b))
	if b == nil {
		n = -1
	}
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(n))
	_, _ = h.Write(size[:])
	_, _ = h.Write(b)
}

// CountRecords counts the records, not the markers, of a part of a log.
func CountRecords(ctx context.Context, c Cluster, tp kafka.TopicPartition, from, to mirror.DownstreamOffset) (int64, error) {
	var n int64
	err := readLog(ctx, c, span{tp, int64(from), int64(to), kafka.ReadUncommitted}, func(b *recordbatch.Batch, _ bool) (bool, error) {
		if !b.Control() && b.BaseOffset < int64(to) {
			n += min(int64(b.Count), int64(to)-b.BaseOffset)
		}
		return true, nil
	})
	return n, err
}
