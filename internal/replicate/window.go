package replicate

import "time"

const (
	// farFetch and nearFetch are how long the first byte of waiting data takes over
	// a long and over a short path. Between them a window stays as it is.
	farFetch  = 30 * time.Millisecond
	nearFetch = 5 * time.Millisecond
	// nearAnswer is how large a whole answer gets over a short path, where larger
	// ones would cost memory and move nothing faster.
	nearAnswer = 8 << 20
	// cutPart is the part of an answer's bytes that may be thrown away: brokers cut
	// an answer at its byte limit, mostly inside a batch, which is fetched again.
	cutPart = 100
	// cutGrowth bounds how far a window grows for that reason, in its first sizes.
	cutGrowth = 2
)

// window is how many bytes of a partition, or of a whole answer, are asked for at
// once. A partition's is also how many may wait in its queue. One fetch is under
// way at a time, so that over a long path the window is what moves per round trip:
// it doubles while full answers are waited for long, up to the most the file
// allows, and shrinks when the path is short. It also grows a little where batches
// are so large that much of each answer is cut off. The memory budget bounds all
// windows together.
type window struct {
	bytes       int32
	least, most int32
	grown       int32 // by how much least was multiplied because of cut batches; zero is once
}

// fetched takes the size of an answer and how long its first byte was waited for.
func (w *window) fetched(n int, waited time.Duration) {
	full := n > int(w.bytes)/4*3
	switch {
	case full && waited >= farFetch:
		w.bytes = min(2*w.bytes, max(w.most, w.least))
	case waited <= nearFetch && w.bytes > w.least:
		w.bytes = max(w.bytes/2, w.least)
	}
}

// cut takes how many of an answer's n bytes were the beginning of a batch that did
// not fit.
func (w *window) cut(cut, n int) {
	grown := max(w.grown, 1)
	if cut <= n/cutPart || grown >= cutGrowth || 2*w.least > w.most {
		return
	}
	w.grown = 2 * grown
	w.least *= 2
	w.bytes = max(w.bytes, w.least)
}
