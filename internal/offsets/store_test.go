package offsets

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

var storeTP = kafka.TopicPartition{Topic: "topic1", Partition: 2}

// apply feeds pairs with the same numbers on both sides.
func apply(s *SyncStore, from, to, step int64) {
	for o := from; o <= to; o += step {
		s.Apply(mirror.OffsetSync{TopicPartition: storeTP, Upstream: mirror.UpstreamOffset(o), Downstream: mirror.DownstreamOffset(o)})
	}
}

func applyPair(s *SyncStore, up, down int64) {
	s.Apply(mirror.OffsetSync{TopicPartition: storeTP, Upstream: mirror.UpstreamOffset(up), Downstream: mirror.DownstreamOffset(down)})
}

func kept(s *SyncStore) []int64 {
	var out []int64
	for _, o := range s.Syncs(storeTP) {
		out = append(out, int64(o.Upstream))
	}
	return out
}

// The numbers come from the specification, where they were found by simulation.
func TestSyncStoreKeepsWhatMirrorMakerKeeps(t *testing.T) {
	wantKept := func(t *testing.T, s *SyncStore, want ...int64) {
		t.Helper()
		if diff := cmp.Diff(want, kept(s)); diff != "" {
			t.Errorf("kept syncs (-want +got):\n%s", diff)
		}
	}
	t.Run("only the last while loading", func(t *testing.T) {
		s := NewSyncStore(true)
		apply(s, 0, 1000, 10)
		s.ReadToEnd()
		wantKept(t, s, 1000)
		apply(s, 1010, 10000, 10)
		wantKept(t, s, 10000, 9990, 9970, 9940, 9880, 9640, 9160, 8680, 6760, 4840, 1000)
	})
	t.Run("all while loading", func(t *testing.T) {
		s := NewSyncStore(false)
		apply(s, 0, 1000, 10)
		s.ReadToEnd()
		wantKept(t, s, 1000, 990, 960, 900, 840, 720, 480, 0)
		apply(s, 1010, 10000, 10)
		wantKept(t, s, 10000, 9990, 9960, 9900, 9840, 9600, 9120, 8640, 7680, 3840, 0)
	})
	t.Run("live from the start", func(t *testing.T) {
		s := NewSyncStore(true)
		s.ReadToEnd()
		apply(s, 0, 1000, 100)
		wantKept(t, s, 1000, 900, 800, 400, 0)
	})
}

func TestSyncStoreTranslates(t *testing.T) {
	type step struct {
		up, down int64 // the sync applied before
		ask      int64
		want     Translation
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"one sync", []step{
			{100, 200, 0, Translation{0, TooOld}},
			{100, 200, 100, Translation{200, Exact}},
			{100, 200, 101, Translation{201, Next}},
			{100, 200, 150, Translation{201, Before}},
			{100, 200, math.MaxInt64, Translation{201, Before}},
			{100, 200, -1, Translation{0, TooOld}},
		}},
		{"a newer sync is better, older offsets stay too old", []step{
			{100, 200, 150, Translation{201, Before}},
			{150, 251, 150, Translation{251, Exact}},
			{150, 251, 5, Translation{0, TooOld}},
		}},
		{"the target was reset", []step{
			{150, 251, 150, Translation{251, Exact}},
			{200, 10, 200, Translation{10, Exact}},
			{20, 20, 20, Translation{20, Exact}},
			{20, 20, 200, Translation{21, Before}},
		}},
		{"the source was rewound", []step{
			{1000, 10000, 1000, Translation{10000, Exact}},
			{2000, 10500, 1500, Translation{10001, Before}},
			{1500, 11000, 1499, Translation{0, TooOld}},
			{1500, 11000, 1500, Translation{11000, Exact}},
			{1500, 11000, 2000, Translation{11001, Before}},
		}},
		{"groups beyond the last sync", []step{
			{3, 4, 10, Translation{5, Before}},
			{7, 8, 12, Translation{9, Before}},
			{7, 8, 7, Translation{8, Exact}},
		}},
		{"thinned history goes back, never ahead", []step{
			{11, 4, 13, Translation{5, Before}},
			{12, 5, 13, Translation{6, Next}},
			{13, 6, 13, Translation{6, Exact}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSyncStore(false)
			s.ReadToEnd()
			for _, st := range tt.steps {
				applyPair(s, st.up, st.down)
				if got := s.Translate(storeTP, mirror.UpstreamOffset(st.ask)); got != st.want {
					t.Errorf("after (%d, %d): Translate(%d) = %d %s, want %d %s",
						st.up, st.down, st.ask, got.Offset, got.Quality, st.want.Offset, st.want.Quality)
				}
			}
		})
	}
}

// The checkpoint task's scenario: five more syncs push the right one out, so the
// same group offset translates to less than before.
func TestSyncStoreForgetsAsMirrorMakerForgets(t *testing.T) {
	s := NewSyncStore(false)
	s.ReadToEnd()
	applyPair(s, 11, 4)
	applyPair(s, 12, 5)
	if got := s.Translate(storeTP, 13); got.Offset != 6 {
		t.Fatalf("Translate(13) = %d, want 6", got.Offset)
	}
	for i := range int64(5) {
		applyPair(s, 13+i, 6+i)
	}
	if got := s.Translate(storeTP, 13); got.Offset != 5 {
		t.Errorf("Translate(13) after five more syncs = %d, want 5", got.Offset)
	}
}

func TestSyncStoreAfterARestartFromACompactedTopic(t *testing.T) {
	s := NewSyncStore(false)
	for _, o := range []int64{175, 375, 475} {
		applyPair(s, o, o)
	}
	s.ReadToEnd()
	for ask, want := range map[mirror.UpstreamOffset]mirror.DownstreamOffset{250: 176, 370: 176, 400: 376} {
		if got := s.Translate(storeTP, ask); got.Offset != want {
			t.Errorf("Translate(%d) = %d, want %d", ask, got.Offset, want)
		}
	}
}

func TestSyncStoreKnowsNothingBeforeItIsComplete(t *testing.T) {
	s := NewSyncStore(false)
	applyPair(s, 100, 200)
	for _, up := range []mirror.UpstreamOffset{0, 100, 200} {
		if got := s.Translate(storeTP, up); got.Quality != Unknown || got.Known() {
			t.Errorf("Translate(%d) while loading = %s, want %s", up, got.Quality, Unknown)
		}
	}
	s.ReadToEnd()
	if got := s.Translate(storeTP, 100); got.Quality != Exact || !got.Known() {
		t.Errorf("Translate(100) when complete = %s, want %s", got.Quality, Exact)
	}
	if got := s.Translate(kafka.TopicPartition{Topic: "other"}, 100); got.Quality != Unknown {
		t.Errorf("Translate for a partition without syncs = %s, want %s", got.Quality, Unknown)
	}
	s.Forget(storeTP)
	if got := s.Translate(storeTP, 100); got.Quality != Unknown {
		t.Errorf("Translate for a forgotten partition = %s, want %s", got.Quality, Unknown)
	}
}

// tester is what both testing.T and rapid.T have.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkInvariants(t tester, s *SyncStore, newest, oldest int64) {
	t.Helper()
	h := s.histories[storeTP]
	if h[0].up != newest {
		t.Fatalf("invariant A: slot 0 holds %d, the newest sync is %d", h[0].up, newest)
	}
	if h[slots-1].up != oldest {
		t.Fatalf("invariant D: slot 63 holds %d, the oldest usable sync is %d", h[slots-1].up, oldest)
	}
	for j := range slots {
		for i := range j {
			x, y := h[i], h[j]
			if x == y {
				continue
			}
			if far := y.up + 1<<j - 1<<i; far >= 0 && x.up > far {
				t.Fatalf("invariant B: slot %d holds %d, more than %d, with %d in slot %d", i, x.up, far, y.up, j)
			}
			if near := y.up + 1<<max(i-2, 0); near >= 0 && x.up < near {
				t.Fatalf("invariant C: slot %d holds %d, less than %d, with %d in slot %d", i, x.up, near, y.up, j)
			}
		}
	}
}

// insertCounting applies syncs at growing distances and returns the most that
// one of them pushed out.
func insertCounting(t tester, first int64, steps []int64) int {
	s := NewSyncStore(false)
	s.ReadToEnd()
	apply(s, first, first, 1)
	offset, worst := first, 0
	before := 1
	for i, step := range steps {
		offset += step
		apply(s, offset, offset, 1)
		after := len(kept(s))
		worst = max(worst, before+1-after)
		before = after
		// Each check looks at two thousand pairs of slots.
		if i%25 == 0 || i == len(steps)-1 {
			checkInvariants(t, s, offset, first)
		}
	}
	return worst
}

func TestSyncStoreForgetsEvenlySpacedSyncsOneByOne(t *testing.T) {
	const inserts = 100
	for step := int64(1); step < math.MaxInt64/inserts; step = step*2 + 1 {
		for first := range int64(30) {
			steps := make([]int64, inserts)
			for i := range steps {
				steps[i] = step
			}
			if worst := insertCounting(t, first, steps); worst > 1 {
				t.Fatalf("step %d from %d: an insert pushed out %d syncs", step, first, worst)
			}
		}
	}
}

func TestSyncStoreForgetsAlternatingGapsByTwo(t *testing.T) {
	steps := make([]int64, 200)
	for i := range steps {
		steps[i] = 100 * int64(1+i%2)
	}
	if worst := insertCounting(t, 0, steps); worst > 2 {
		t.Errorf("an insert pushed out %d syncs, at most 2 may go", worst)
	}
}

func TestSyncStoreForgetsFewOfRandomSyncs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "n")
		first := rapid.Int64Range(0, 29).Draw(t, "first")
		steps := rapid.SliceOfN(rapid.Int64Range(1, 1<<n), 1, 100).Draw(t, "steps")
		if worst := insertCounting(t, first, steps); worst > n+2 {
			t.Fatalf("an insert pushed out %d syncs, at most %d may go", worst, n+2)
		}
	})
}

// Equal numbers in two syncs do not make them the same.
func TestSyncStoreTellsEqualSyncsApart(t *testing.T) {
	s := NewSyncStore(false)
	s.ReadToEnd()
	for range 5 {
		applyPair(s, 7, 7)
	}
	if got := s.Translate(storeTP, 7); got != (Translation{7, Exact}) {
		t.Errorf("Translate(7) = %+v", got)
	}
	if h := s.histories[storeTP]; h[0] == h[slots-1] {
		t.Error("slots 0 and 63 hold the same entry after five syncs")
	}
}

// FuzzSyncStore replays a partition's life from bytes and asks for every offset:
// the invariants hold, translation never falls as offsets grow, and it is never
// past the record that really follows.
func FuzzSyncStore(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true)
	f.Add([]byte{5, 100, 100, 100, 100, 100, 100, 0, 100, 3}, false)
	f.Add(binary.BigEndian.AppendUint64(nil, 0x0102030405060708), false)
	f.Fuzz(func(t *testing.T, life []byte, lastOnly bool) {
		if len(life) < 2 || len(life) > 400 {
			t.Skip()
		}
		s := NewSyncStore(lastOnly)
		s.ReadToEnd()
		up, down := int64(life[0]), int64(life[1])
		first := up
		truth := map[int64]int64{} // upstream offset of each record to its downstream one
		for _, b := range life[1:] {
			// The low bits are records in a run, the next two a gap on each side.
			for range int64(b & 0x1f) {
				truth[up], down, up = down, down+1, up+1
			}
			up += int64(b >> 5 & 1)
			down += int64(b >> 6 & 1)
			truth[up] = down
			applyPair(s, up, down)
			if len(s.Syncs(storeTP)) == 1 {
				first = up
			}
			checkInvariants(t, s, up, first)
			up, down = up+1, down+1
		}
		checkTranslations(t, s, truth, up, down)
	})
}

// checkTranslations asks for each offset up to end and compares with the truth.
func checkTranslations(t *testing.T, s *SyncStore, truth map[int64]int64, end, endDown int64) {
	t.Helper()
	next := endDown // where reading goes on downstream
	last := int64(math.MaxInt64)
	for ask := end; ask >= 0; ask-- {
		if d, ok := truth[ask]; ok {
			next = d
		}
		got := s.Translate(storeTP, mirror.UpstreamOffset(ask))
		if !got.Known() {
			if got.Quality != TooOld {
				t.Fatalf("Translate(%d) = %s", ask, got.Quality)
			}
			continue
		}
		if int64(got.Offset) > next {
			t.Fatalf("Translate(%d) = %d is ahead: the next record is %d", ask, got.Offset, next)
		}
		if got.Quality == Exact && int64(got.Offset) != truth[ask] {
			t.Fatalf("Translate(%d) = %d exact, the record is %d", ask, got.Offset, truth[ask])
		}
		if int64(got.Offset) > last {
			t.Fatalf("Translate(%d) = %d lies beyond the translation of the next offset, %d", ask, got.Offset, last)
		}
		last = int64(got.Offset)
	}
}

func TestQualitiesHaveNames(t *testing.T) {
	want := map[Quality]string{Unknown: "unknown", TooOld: "too_old", Before: "before", Next: "next", Exact: "exact", 77: "invalid"}
	for q, name := range want {
		if q.String() != name {
			t.Errorf("quality %d prints %q, want %q", q, q, name)
		}
	}
}
