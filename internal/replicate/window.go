package replicate

import "time"

const (
	// farFetch and nearFetch are how long a fetch of waiting data takes over a
	// long and over a short path. Between them a window stays as it is.
	farFetch  = 30 * time.Millisecond
	nearFetch = 5 * time.Millisecond
)

// window is how many bytes of a partition are asked for at once, and how many
// may wait in its queue. One fetch is under way at a time, so that over a long
// path the window is what moves per round trip: it doubles while full answers
// take long, up to a whole fetch answer, and shrinks when the path is short.
// The memory budget bounds all windows together.
type window struct {
	bytes       int32
	least, most int32
}

// fetched takes the size of an answer's part and how long the answer took.
func (w *window) fetched(n int, took time.Duration) {
	full := n > int(w.bytes)/4*3
	switch {
	case full && took >= farFetch:
		w.bytes = min(2*w.bytes, max(w.most, w.least))
	case took <= nearFetch && w.bytes > w.least:
		w.bytes = max(w.bytes/2, w.least)
	}
}
