package verify

import (
	"context"
	"sync"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

// blocksAhead is how many batches' items a leg keeps ready.
const blocksAhead = 4

// A leg reads a stretch of one log in a goroutine of its own, which close ends
// and waits for: while one side's records are compared the next are on their way.
type leg struct {
	blocks chan []Item
	cancel context.CancelFunc
	wg     sync.WaitGroup
	err    error // set before blocks is closed
}

func newLeg(ctx context.Context, s *side, from, to int64) *leg {
	ctx, cancel := context.WithCancel(ctx)
	l := &leg{blocks: make(chan []Item, blocksAhead), cancel: cancel}
	l.wg.Go(func() {
		defer close(l.blocks)
		var h hasher
		l.err = s.read(ctx, from, to, func(b *recordbatch.Batch) error {
			stamped := s.target && b.LogAppendTime()
			block := make([]Item, 0, b.Count)
			err := s.records(b, from, to, func(r *kafka.Record) {
				block = append(block, Item{Digest: h.record(r), Time: r.Timestamp, Offset: r.Offset, Producer: b.ProducerID, Stamped: stamped})
			})
			if err != nil || len(block) == 0 {
				return err
			}
			select {
			case l.blocks <- block:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	return l
}

// next is the next block, nil at the end.
func (l *leg) next(ctx context.Context) ([]Item, error) {
	select {
	case block, ok := <-l.blocks:
		if !ok {
			return nil, l.err
		}
		return block, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *leg) close() {
	l.cancel()
	l.wg.Wait()
}

// head reads the first records of a stretch, at most so many.
func head(ctx context.Context, s *side, from, to int64, most int) ([]Item, error) {
	l := newLeg(ctx, s, from, to)
	defer l.close()
	var items []Item
	for len(items) < most {
		block, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		if block == nil {
			break
		}
		items = append(items, block...)
	}
	return items[:min(most, len(items))], nil
}

// A stream is a feed of one log that may be read on behind its end.
type stream struct {
	side *side
	leg  *leg
	to   int64
	// grown waits for the log to end elsewhere than at the given offset, and
	// returns that end; or the same one, if it is not worth waiting longer.
	grown func(ctx context.Context, end int64) (int64, error)
}

func newStream(ctx context.Context, s *side, from, to int64, grown func(context.Context, int64) (int64, error)) *stream {
	return &stream{side: s, leg: newLeg(ctx, s, from, to), to: to, grown: grown}
}

func (s *stream) next(ctx context.Context) ([]Item, error) { return s.leg.next(ctx) }

func (s *stream) more(ctx context.Context) (bool, error) {
	end, err := s.grown(ctx, s.to)
	if err != nil || end <= s.to {
		return false, err
	}
	s.leg.close()
	s.leg = newLeg(ctx, s.side, s.to, end)
	s.to = end
	return true, nil
}

func (s *stream) close() { s.leg.close() }
