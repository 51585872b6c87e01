package offsets

import (
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// origin is where a reader of the target at d goes on at the source: at the
// first copied record at or after d, or behind everything.
func (c copied) origin(d mirror.DownstreamOffset) (u mirror.UpstreamOffset, record bool) {
	for u, at := range c.at {
		if at >= d {
			return mirror.UpstreamOffset(u), at == d
		}
	}
	return mirror.UpstreamOffset(len(c.at)), false
}

func TestReverseIsExactForEverythingCopied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, runs := drawCopied(t)
		m := &RunMap{}
		for _, r := range runs {
			if _, err := m.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		position := mirror.UpstreamOffset(len(c.at))
		for d := range c.end + 1 {
			got := m.Reverse(d, c.end, position)
			want, record := c.origin(d)
			switch {
			case got.Quality == Unknown:
				if len(m.runs) > 0 && d >= m.runs[0].Down {
					t.Fatalf("target offset %d: unknown behind the first run", d)
				}
			case record && (got.Quality != Exact || got.Offset != want):
				t.Fatalf("target offset %d is the copy of source offset %d, the map says %v", d, want, got)
			case got.Quality < Next || c.skips(want, got.Offset):
				t.Fatalf("target offset %d: a reader who goes on at %v instead of %d misses something", d, got, want)
			}
		}
		if ahead := m.Reverse(c.end+3, c.end, position); ahead.Quality != Before || ahead.Offset != position {
			t.Fatalf("a reader ahead of the copy: %v, want before %d", ahead, position)
		}
	})
}

// skips reports whether a copied record lies at the source in [from, to).
func (c copied) skips(from, to mirror.UpstreamOffset) bool {
	for u := from; u < to; u++ {
		if c.at[u] >= 0 {
			return true
		}
	}
	return false
}

// There and back again is the same record.
func TestReverseUndoesTranslate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, runs := drawCopied(t)
		m := &RunMap{}
		for _, r := range runs {
			if _, err := m.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		position := mirror.UpstreamOffset(len(c.at))
		for u, at := range c.at {
			if at < 0 {
				continue
			}
			there := m.Translate(mirror.UpstreamOffset(u), position, c.end)
			back := m.Reverse(there.Offset, c.end, position)
			if back.Quality != Exact || back.Offset != mirror.UpstreamOffset(u) {
				t.Fatalf("source offset %d became %v and came back as %v", u, there, back)
			}
		}
	})
}

// By offset syncs a reader goes back further than needed, never less.
func TestSyncStoreReverseIsNeverAhead(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "orders"}
	rapid.Check(t, func(t *rapid.T) {
		c, runs := drawCopied(t)
		s := NewSyncStore(false)
		pacer := NewSyncPacer(rapid.Int64Range(0, 4).Draw(t, "offset.lag.max"))
		for _, r := range runs {
			pacer.AdvanceRun(r.Up, r.Down, r.Count, func(_ SyncReason, u mirror.UpstreamOffset, d mirror.DownstreamOffset) {
				s.Apply(mirror.OffsetSync{TopicPartition: tp, Upstream: u, Downstream: d})
			})
		}
		if got := s.Reverse(tp, 0); got.Known() {
			t.Fatalf("answered before the syncs were read: %v", got)
		}
		s.ReadToEnd()
		for d := range c.end + 1 {
			got := s.Reverse(tp, d)
			want, record := c.origin(d)
			switch {
			case got.Known() && c.skips(want, got.Offset):
				t.Fatalf("target offset %d: %v is ahead of %d", d, got, want)
			case got.Quality == Exact && (!record || got.Offset != want):
				t.Fatalf("target offset %d: %v, want %d", d, got, want)
			}
		}
	})
}
