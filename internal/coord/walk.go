package coord

import (
	"context"
	"errors"
	"hash/maphash"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/recordbatch"
)

// Logs are a partition and its copy, read side by side where the offset map does
// not tell which record became which.
type Logs struct {
	Source, Target     Cluster
	Partition, Copy    kafka.TopicPartition
	SourceEnd, CopyEnd int64 // read no further
	Isolation          kafka.Isolation
	// Times compares times too, which tells records apart that repeat: where the
	// target keeps those of the source.
	Times bool
}

const (
	// meetWithin is how far the logs may be apart before they are taken for
	// different: records of others, or ones that MirrorMaker copied twice.
	meetWithin = 200_000
	// meetBy is how many records must agree behind a gap.
	meetBy = 3
	// walkRecords bounds what is read to make one offset exact.
	walkRecords = 2_000_000
)

// errEnough ends a walk.
var errEnough = errors.New("enough")

// ErrDiffer says that a walk ended where the logs go on with different records.
var ErrDiffer = errors.New("the logs differ")

// Translate makes a translation exact that is known from a pair of records in
// front of it. It reports false where the logs do not tell: one of them has let
// the range go, or they differ.
func (l Logs) Translate(ctx context.Context, up mirror.UpstreamOffset, down mirror.DownstreamOffset, u mirror.UpstreamOffset) (offsets.Translation, bool, error) {
	var got offsets.Translation
	err := l.Walk(ctx, up, down, func(a mirror.UpstreamOffset, b mirror.DownstreamOffset) bool {
		if a >= u {
			got = offsets.Translation{Offset: b, Quality: offsets.Next}
			if a == u {
				got.Quality = offsets.Exact
			}
		}
		return a < u && int64(a-up) < walkRecords
	})
	if errors.Is(err, ErrDiffer) {
		err = nil
	}
	return got, got.Known(), err
}

// Reverse is the way back of Translate, for target offset d.
func (l Logs) Reverse(ctx context.Context, up mirror.UpstreamOffset, down mirror.DownstreamOffset, d mirror.DownstreamOffset) (offsets.Origin, bool, error) {
	var got offsets.Origin
	err := l.Walk(ctx, up, down, func(a mirror.UpstreamOffset, b mirror.DownstreamOffset) bool {
		if b >= d {
			got = offsets.Origin{Offset: a, Quality: offsets.Next}
			if b == d {
				got.Quality = offsets.Exact
			}
		}
		return b < d && int64(b-down) < walkRecords
	})
	if errors.Is(err, ErrDiffer) {
		err = nil
	}
	return got, got.Known(), err
}

// Rebuild finds the runs of everything in front of a map's oldest run, or, where
// the map is empty, of everything up to the ends of the logs. It begins at the
// first of the given places from which both logs go on in step up to there, and
// reports false where none does: with a hole in it a map would be wrong.
func (l Logs) Rebuild(ctx context.Context, from []Place, old *offsets.RunMap) (past []offsets.Run, ok bool, err error) {
	oldest, bounded := old.Oldest()
	for _, p := range from {
		past = past[:0]
		reached := false
		err := l.Walk(ctx, p.Up, p.Down, func(a mirror.UpstreamOffset, b mirror.DownstreamOffset) bool {
			if bounded && a >= oldest.Up {
				reached = a == oldest.Up && b == oldest.Down
				return false
			}
			if n := len(past) - 1; n >= 0 && past[n].End() == a && past[n].DownEnd() == b {
				past[n].Count++
			} else {
				past = append(past, offsets.Run{Up: a, Down: b, Count: 1})
			}
			return true
		})
		switch {
		case err != nil && !errors.Is(err, ErrDiffer):
			return nil, false, err
		case reached, err == nil && !bounded:
			return past, len(past) > 0, nil
		}
	}
	return nil, false, nil
}

// Place is a pair of offsets at which both logs can be read side by side.
type Place struct {
	Up   mirror.UpstreamOffset
	Down mirror.DownstreamOffset
}

// Walk reads both logs from a pair of places on and calls visit for each source
// record and its copy, in order, until visit has enough or a log ends. Records
// of others on the target, copies that lie there twice and source records that
// were not copied are passed over; of a record that was copied twice one copy is told.
func (l Logs) Walk(ctx context.Context, up mirror.UpstreamOffset, down mirror.DownstreamOffset, visit func(mirror.UpstreamOffset, mirror.DownstreamOffset) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errEnough)
	seed := maphash.MakeSeed()
	source := l.stream(ctx, l.Source, span{l.Partition, int64(up), l.SourceEnd, l.Isolation}, seed)
	target := l.stream(ctx, l.Target, span{l.Copy, int64(down), l.CopyEnd, kafka.ReadCommitted}, seed)
	for {
		a, okA := source.at(0)
		b, okB := target.at(0)
		switch {
		case !okA || !okB:
			return errors.Join(source.failed(), target.failed())
		case a.hash == b.hash:
			if !visit(mirror.UpstreamOffset(a.offset), mirror.DownstreamOffset(b.offset)) {
				return nil
			}
			source.drop(1)
			target.drop(1)
		default:
			skipA, skipB, ok := meet(source, target)
			if !ok {
				return errors.Join(ErrDiffer, source.failed(), target.failed())
			}
			source.drop(skipA)
			target.drop(skipB)
		}
	}
}

// meet finds how many records to pass over on each side so that both agree again.
// The source's records are on the target in their order, so that the next one is
// looked for there first; one that was not copied is passed over where several
// behind it agree.
func meet(a, b *stream) (skipA, skipB int, ok bool) {
	next, _ := a.at(0)
	for n := 1; n <= meetWithin; n++ {
		_, moreA := a.at(n)
		y, moreB := b.at(n)
		switch {
		case moreB && y.hash == next.hash:
			return 0, n, true
		case moreA && agree(a, n, b, 0):
			return n, 0, true
		case !moreA && !moreB:
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// agree reports whether a few records from i and j on are the same, as far as there are any.
func agree(a *stream, i int, b *stream, j int) bool {
	for n := range meetBy {
		x, okX := a.at(i + n)
		y, okY := b.at(j + n)
		if !okX || !okY {
			return n > 0
		}
		if x.hash != y.hash {
			return false
		}
	}
	return true
}

// stream is one log's records, read ahead as far as they are asked for.
type stream struct {
	batches chan []hashed
	ahead   []hashed
	ended   bool
	err     error // written before batches is closed
}

type hashed struct {
	hash   uint64
	offset int64
}

func (l Logs) stream(ctx context.Context, c Cluster, s span, seed maphash.Seed) *stream {
	out := &stream{batches: make(chan []hashed, 4)}
	sc := scanner{seed: seed, times: l.Times}
	go func() {
		defer close(out.batches)
		err := readLog(ctx, c, s, func(b *recordbatch.Batch, aborted bool) (bool, error) {
			if b.Control() || aborted {
				return true, nil
			}
			var at []int64
			hashes, err := sc.hashes(b, s.from, &at)
			records := make([]hashed, 0, len(hashes))
			for i, h := range hashes {
				if at[i] < s.end {
					records = append(records, hashed{h, at[i]})
				}
			}
			select {
			case out.batches <- records:
				return true, err
			case <-ctx.Done():
				return false, nil
			}
		})
		if ctx.Err() == nil {
			out.err = err
		}
	}()
	return out
}

// at is the i-th record ahead; false where the log ends before it.
func (s *stream) at(i int) (hashed, bool) {
	for len(s.ahead) <= i {
		more, ok := <-s.batches
		if !ok {
			s.ended = true
			return hashed{}, false
		}
		s.ahead = append(s.ahead, more...)
	}
	return s.ahead[i], true
}

// failed is why the log ended before its end; nil while it may go on.
func (s *stream) failed() error {
	if !s.ended {
		return nil
	}
	return s.err
}

func (s *stream) drop(n int) { s.ahead = s.ahead[min(n, len(s.ahead)):] }
