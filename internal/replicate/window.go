package replicate

import "time"

const (
	// farFetch and nearFetch are the round trips of a long and of a short path.
	// Between them a window stays as it is.
	farFetch  = 30 * time.Millisecond
	nearFetch = 5 * time.Millisecond
	// nearAnswer is how large a whole answer gets over a short path, where larger
	// ones would cost memory and move nothing faster.
	nearAnswer = 4 << 20
	// cutPart is the part of an answer's bytes that may be thrown away: brokers cut
	// an answer at its byte limit, mostly inside a batch, which is fetched again.
	cutPart = 100
	// cutGrowth bounds how far a window grows for that reason, in its first sizes.
	cutGrowth = 2
)

// window is how many bytes of a partition, or of a whole answer, are asked for at
// once. A partition's is also how many may wait in its queue. One fetch is under
// way at a time, so that over a long path the window is what moves per round trip:
// it doubles while full answers come over a long path, up to the most the file
// allows, and shrinks when the path is short. So that no batch is cut off, as many are
// asked for as fit, by the size of those that came; where sizes differ so much that
// many are cut all the same, the window grows a little. The memory budget bounds all
// windows together.
type window struct {
	bytes       int32
	least, most int32
	grown       int32 // by how much least was multiplied because of cut batches; zero is once
	piece       int32 // what should come whole: the largest batch of the last answer; zero is not known
}

// ask is how much to ask for: the window, cut down to whole pieces.
func (w *window) ask() int32 {
	if w.piece <= 0 || w.piece > w.bytes {
		return w.bytes
	}
	return w.bytes - w.bytes%w.piece
}

// fetched takes the size of an answer and the round trip of the path it came over.
func (w *window) fetched(n int, trip time.Duration) {
	full := n > int(w.ask())/4*3
	switch {
	case full && trip >= farFetch:
		w.bytes = min(2*w.bytes, max(w.most, w.least))
	case trip <= nearFetch && w.bytes > w.least:
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

// tripAnswers is how many answers a measurement of the round trip lasts.
const tripAnswers = 8

// roundTrip is how long the first byte of an answer takes at the least. A broker
// that is busy or waits for data answers late now and then; a long path makes every
// answer late.
type roundTrip struct {
	now, before time.Duration // the shortest of this measurement and of the one before; zero is none yet
	answers     int           // of this measurement
}

// waited takes how long an answer's first byte was waited for, and returns the
// round trip as far as it is known.
func (r *roundTrip) waited(d time.Duration) time.Duration {
	if r.answers == tripAnswers {
		r.before, r.now, r.answers = r.now, 0, 0
	}
	r.answers++
	if r.now == 0 || d < r.now {
		r.now = d
	}
	if r.before != 0 {
		return min(r.now, r.before)
	}
	return r.now
}
