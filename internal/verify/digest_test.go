package verify

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

func TestDigestsTellEveryFieldApart(t *testing.T) {
	var h hasher
	header := func(key, value string) kafka.Header { return kafka.Header{Key: key, Value: []byte(value)} }
	seen := map[Digest]int{}
	for i, r := range []kafka.Record{
		{},
		{Key: []byte{}},
		{Value: []byte{}},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("a"), Value: []byte("b")},
		{Key: []byte("ab")},
		{Key: []byte("ab"), Value: []byte{}},
		{Value: []byte("ab")},
		{Headers: []kafka.Header{header("a", "b")}},
		{Headers: []kafka.Header{header("ab", "")}},
		{Headers: []kafka.Header{{Key: "ab"}}},
		{Headers: []kafka.Header{header("a", "b"), header("c", "d")}},
		{Headers: []kafka.Header{header("c", "d"), header("a", "b")}},
		{Headers: []kafka.Header{header("a", "b"), header("a", "b")}},
	} {
		d := h.record(&r)
		if j, ok := seen[d]; ok {
			t.Errorf("records %d and %d have the same digest", j, i)
		}
		seen[d] = i
	}
	a, b := kafka.Record{Value: []byte("x"), Offset: 1, Timestamp: 2}, kafka.Record{Value: []byte("x"), Offset: 3, Timestamp: 4}
	if h.record(&a) != h.record(&b) {
		t.Error("offset or time are in the digest")
	}
}

func TestRollingDigestIsThatOfTheSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOf(rapid.IntRange(0, 1)).Draw(t, "x")
		y := rapid.SliceOf(rapid.IntRange(0, 1)).Draw(t, "y")
		sum := func(cs []int) string {
			r := newRolling()
			for i, c := range cs {
				it := item(c, i)
				r.add(&it)
			}
			return r.String()
		}
		if equal := slices.Equal(x, y); equal != (sum(x) == sum(y)) {
			t.Fatalf("equal sequences: %v", equal)
		}
	})
}

// Here (Xeon with SHA extensions, one core) a digest of 100 bytes took 172 ns, 5.8
// million records a second, without allocation.
func BenchmarkDigest(b *testing.B) {
	var h hasher
	r := kafka.Record{Key: make([]byte, 10), Value: make([]byte, 90)}
	b.SetBytes(100)
	b.ReportAllocs()
	for b.Loop() {
		h.record(&r)
	}
}
