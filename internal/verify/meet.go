package verify

// runLength is how many equal records in a row count as the logs having met
// again. One would do if records never repeated.
const runLength = 4

// manyPlaces bounds how many places of one repeating record are tried.
const manyPlaces = 32

// meet finds the nearest place where two sequences agree again: behind i items of
// a and j of b, with i+j the smallest. aOver and bOver say that nothing follows a
// and b. A place is sure where runLength items agree or both sequences agree to
// their ends; where one of them is over, loose also takes any agreement up to there.
func meet(a, b []Item, aOver, bOver, loose bool) (i, j int, ok bool) {
	places := make(map[Digest][]int, len(b))
	for j := range b {
		if at := places[b[j].Digest]; len(at) < manyPlaces {
			places[b[j].Digest] = append(at, j)
		}
	}
	best := len(a) + len(b)
	for x := 0; x < len(a) && x < best; x++ {
		for _, y := range places[a[x].Digest] {
			if x+y >= best {
				break
			}
			if agree(a[x:], b[y:], aOver, bOver, loose) {
				i, j, ok, best = x, y, true, x+y
			}
		}
	}
	if !ok && aOver && bOver {
		return len(a), len(b), true // they meet at their ends
	}
	return i, j, ok
}

// agree reports that a and b begin with the same records, for long enough.
func agree(a, b []Item, aOver, bOver, loose bool) bool {
	n := equalRun(a, b, runLength)
	if n == runLength {
		return true
	}
	aEnds, bEnds := aOver && n == len(a), bOver && n == len(b)
	if aEnds && bEnds {
		return true
	}
	return loose && n > 0 && (aEnds || bEnds)
}

// equalRun counts the items that agree from the first on, up to most.
func equalRun(a, b []Item, most int) int {
	n := min(len(a), len(b), most)
	for i := range n {
		if !same(&a[i], &b[i]) {
			return i
		}
	}
	return n
}
