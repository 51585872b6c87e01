package replicate

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRingIsAQueueWithAccessToItsMiddle holds a ring against a slice.
func TestRingIsAQueueWithAccessToItsMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring[int]
		var want []int
		push := func(n int) {
			for range n {
				v := len(want)*1000 + rapid.IntRange(1, 999).Draw(t, "value")
				r.push(v)
				want = append(want, v)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) { push(rapid.IntRange(1, 20).Draw(t, "n")) },
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				if got := r.pop(); got != want[0] {
					t.Fatalf("popped %d, want %d", got, want[0])
				}
				want = want[1:]
			},
			"splice": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "from")
				n := rapid.IntRange(1, len(want)-i).Draw(t, "count")
				r.splice(i, n, -1)
				want = slices.Replace(slices.Clone(want), i, i+n, -1)
			},
			"insert": func(t *rapid.T) {
				i := rapid.IntRange(0, len(want)).Draw(t, "at")
				r.insert(i, -2)
				want = slices.Insert(slices.Clone(want), i, -2)
			},
			"cut": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "left")
				r.cut(n, func(*int) {})
				want = want[:n]
			},
			"": func(t *rapid.T) {
				got := make([]int, r.len())
				for i := range got {
					got[i] = *r.at(i)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("holds %v, want %v", got, want)
				}
				for i := r.len(); i < len(r.slots); i++ {
					if *r.at(i) != 0 {
						t.Fatalf("slot %d behind the last still holds %d", i, *r.at(i))
					}
				}
			},
		})
	})
}
