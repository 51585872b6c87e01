package verify

const (
	// needleLength is how many records in a row must agree for two logs to be
	// taken as aligned.
	needleLength = 16
	// needleCount is how many needles are searched at once, so that a difference
	// among the first records does not hide the place.
	needleCount = 8
)

// A finder searches the first records of one log, the needles, in another, the
// haystack, whatever its length. It remembers as many items as the needles have.
type finder struct {
	needles [][]Item
	byLast  map[Digest][]int // needles by their last record
	ring    []Item
	seen    int
}

// newFinder cuts the first records of a log into needles. A log with fewer
// records than a needle has is one needle.
func newFinder(head []Item) *finder {
	f := &finder{byLast: map[Digest][]int{}}
	size := min(needleLength, len(head))
	for at := 0; size > 0 && at+size <= len(head) && len(f.needles) < needleCount; at += size {
		n := head[at : at+size]
		last := n[size-1].Digest
		f.byLast[last] = append(f.byLast[last], len(f.needles))
		f.needles = append(f.needles, n)
	}
	f.ring = make([]Item, 0, size*(needleCount+1))
	return f
}

// A hit is where the needles' log and the haystack have the same records.
type hit struct {
	haystack int64 // offset in the haystack of what the needles' log begins with
	skipped  int   // haystack records before
	needles  int64 // offset in the needles' log; its first one unless the haystack begins later
	lacking  int   // records of the needles' log before
}

// push takes the next item of the haystack and reports a hit that it completes.
func (f *finder) push(it Item) (hit, bool) {
	if len(f.ring) < cap(f.ring) {
		f.ring = append(f.ring, it)
	} else {
		f.ring[f.seen%cap(f.ring)] = it
	}
	f.seen++
	for _, n := range f.byLast[it.Digest] {
		size := len(f.needles[n])
		first := f.seen - size // index of the needle's place in the haystack
		if first < 0 || !f.matches(f.needles[n], first) {
			continue
		}
		before := n * size // records of the log before this needle
		if before <= first {
			return hit{haystack: f.at(first - before).Offset, skipped: first - before, needles: f.needles[0][0].Offset}, true
		}
		// The haystack begins within what lies before the needle.
		lacking := before - first
		return hit{haystack: f.at(0).Offset, needles: f.needles[lacking/size][lacking%size].Offset, lacking: lacking}, true
	}
	return hit{}, false
}

func (f *finder) at(index int) *Item { return &f.ring[index%cap(f.ring)] }

func (f *finder) matches(needle []Item, first int) bool {
	for i := range needle {
		if !same(&needle[i], f.at(first+i)) {
			return false
		}
	}
	return true
}
