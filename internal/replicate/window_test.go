package replicate

import (
	"testing"
	"time"
)

func TestWindowFollowsThePath(t *testing.T) {
	const mib = 1 << 20
	w := window{bytes: mib, least: mib, most: 16 * mib}
	for _, step := range []struct {
		what string
		n    int
		took time.Duration
		want int32
	}{
		{"a full answer over a short path", mib, time.Millisecond, mib},
		{"a full answer over a long path", mib, 150 * time.Millisecond, 2 * mib},
		{"and another", 2 * mib, 150 * time.Millisecond, 4 * mib},
		{"little data over a long path: a long poll", 100, 500 * time.Millisecond, 4 * mib},
		{"full again", 4 * mib, 150 * time.Millisecond, 8 * mib},
		{"full again", 8 * mib, 150 * time.Millisecond, 16 * mib},
		{"no further than a whole answer", 16 * mib, 150 * time.Millisecond, 16 * mib},
		{"neither long nor short", 16 * mib, 10 * time.Millisecond, 16 * mib},
		{"a short path again", mib, time.Millisecond, 8 * mib},
	} {
		w.fetched(step.n, step.took)
		if w.bytes != step.want {
			t.Fatalf("%s: window %d, want %d", step.what, w.bytes, step.want)
		}
	}
}

func TestWindowAsksForWholeBatches(t *testing.T) {
	const mib = 1 << 20
	for _, step := range []struct{ piece, want int32 }{
		{0, mib},
		{300_000, 900_000},
		{mib, mib},
		{mib + 1, mib}, // it comes alone, and whole
		{100, mib - mib%100},
	} {
		w := window{bytes: mib, least: mib, most: 16 * mib, piece: step.piece}
		if got := w.ask(); got != step.want {
			t.Errorf("batches of %d: %d are asked for, want %d", step.piece, got, step.want)
		}
	}
	// An answer of whole batches is full, or a window would not grow over a long path.
	w := window{bytes: mib, least: mib, most: 16 * mib, piece: 600_000}
	if w.fetched(600_000, 150*time.Millisecond); w.bytes != 2*mib {
		t.Errorf("window %d", w.bytes)
	}
}

func TestWindowNeverShrinksBelowWhatTheFileSays(t *testing.T) {
	w := window{bytes: 1000, least: 1000, most: 500}
	w.fetched(1000, time.Second)
	w.fetched(1000, 0)
	if w.bytes != 1000 {
		t.Fatalf("window %d", w.bytes)
	}
}

func TestWindowGrowsWhereLargeBatchesAreCut(t *testing.T) {
	const mib = 1 << 20
	w := window{bytes: mib, least: mib, most: 16 * mib}
	w.cut(mib/200, mib)
	if w.bytes != mib {
		t.Fatalf("window %d for a small loss", w.bytes)
	}
	for _, want := range []int32{2 * mib, 2 * mib} {
		w.cut(mib/2, mib)
		w.fetched(mib, 0)
		if w.bytes != want {
			t.Fatalf("window %d, want %d", w.bytes, want)
		}
	}
	given := window{bytes: mib, least: mib, most: mib}
	if given.cut(mib/2, mib); given.bytes != mib {
		t.Fatalf("window %d, more than the file allows", given.bytes)
	}
}

func TestRoundTripIsTheShortestOfLate(t *testing.T) {
	var r roundTrip
	const ms = time.Millisecond
	for i, step := range []struct{ waited, want time.Duration }{
		{40 * ms, 40 * ms}, // a broker that starts up
		{2 * ms, 2 * ms},
		{500 * ms, 2 * ms}, // one that waits for data
		{90 * ms, 2 * ms},
	} {
		if got := r.waited(step.waited); got != step.want {
			t.Fatalf("answer %d: %v, want %v", i, got, step.want)
		}
	}
	for range 3 * tripAnswers {
		r.waited(150 * ms)
	}
	if got := r.waited(151 * ms); got != 150*ms {
		t.Fatalf("a path that has become long: %v", got)
	}
}
