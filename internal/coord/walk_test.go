package coord

import (
	"context"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/recordbatch"
)

// logs are the rig's partition and its copy.
func (r *rig) logs() Logs {
	return Logs{
		Source: r.source, Target: r.target, Partition: orders, Copy: copies,
		SourceEnd: r.source.logs[orders].end, CopyEnd: r.target.logs[copies].end,
	}
}

// Between a known pair and the offset asked for lie holes of the source, records of
// others, and records that were copied twice: the answer is the record itself.
func TestWalkingMakesEveryOffsetExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			kind string
			n    int
		}
		var steps []step
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			steps = append(steps, step{rapid.SampledFrom([]string{"records", "hole", "foreign", "again"}).Draw(rt, "kind"), rapid.IntRange(1, 6).Draw(rt, "n")})
		}
		synctest.Test(t, func(*testing.T) {
			r := newRig()
			first := map[int64]int64{} // of each source record, where it was copied first
			holds := map[int64]int64{} // of each target offset, which source record it holds
			next := int64(0)
			var last []kafka.Record
			write := func(pid kafka.ProducerID, recs []kafka.Record) int64 {
				at := r.target.logs[copies].end
				r.target.write(copies, pid, recs...)
				return at
			}
			copied := func(n int64) {
				last = numbered(next, n)
				r.source.lay(orders, last, 3, recordbatch.BuildOptions{})
				at := write(before, last)
				for i := range n {
					first[next+i], holds[at+i] = at+i, next+i
				}
				next += n
			}
			copied(3)
			for _, s := range steps {
				switch s.kind {
				case "records":
					copied(int64(s.n))
				case "hole":
					next += int64(s.n)
				case "foreign":
					write(foreign, records(0, "x", "y", "z")[:min(s.n, 3)])
				case "again":
					at := write(before, last)
					for i, r := range last {
						holds[at+int64(i)] = r.Offset
					}
				}
			}
			copied(4)
			l := r.logs()
			for u := range mirror.UpstreamOffset(next) {
				got, ok, err := l.Translate(context.Background(), 0, 0, u)
				want, quality := int64(-1), offsets.Exact
				for v := int64(u); want < 0; v++ {
					if _, is := first[v]; is {
						want = v
						if v != int64(u) {
							quality = offsets.Next
						}
					}
				}
				if at, is := holds[int64(got.Offset)]; err != nil || !ok || !is || at != want || got.Quality != quality {
					rt.Fatalf("source offset %d: %v (%v, %v), want %s record %d", u, got, ok, err, quality, want)
				}
			}
			for u, d := range first {
				if got, ok, err := l.Reverse(context.Background(), 0, 0, mirror.DownstreamOffset(d)); err != nil || !ok || int64(got.Offset) > u || got.Quality == offsets.Exact && int64(got.Offset) != u {
					rt.Fatalf("target offset %d: %v (%v, %v), want %d", d, got, ok, err, u)
				}
			}
		})
	})
}

// What one of the logs has let go, or never had, is not claimed.
func TestWalkingClaimsNothingBehindTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.fill(numbered(0, 9))
		r.target.write(copies, before, numbered(0, 4)...)
		if got, ok, err := r.logs().Translate(t.Context(), 0, 0, 6); ok || err != nil {
			t.Errorf("not copied yet: %v %v", got, err)
		}
	})
}
