package offsets

import "heliograph/internal/mirror"

// Quality says how sure a translation is.
type Quality uint8

// The qualities. An offset is only given with the last three, and it is never
// past the true one: a reader may see records again and never misses any.
const (
	// Unknown means that no sync of the partition was read, or not all yet.
	Unknown Quality = iota
	// TooOld means that the offset lies before every sync that was kept.
	TooOld
	// Before means that the offset lies beyond a sync, the result right behind it.
	Before
	// Next means that the offset follows the record of a sync directly.
	Next
	// Exact means that the offset is the one of a sync.
	Exact
)

var qualities = [...]string{"unknown", "too_old", "before", "next", "exact"}

// String names the quality.
func (q Quality) String() string {
	if int(q) < len(qualities) {
		return qualities[q]
	}
	return "invalid"
}

// Translation is an upstream offset told in the target's terms.
type Translation struct {
	// Offset is meaningful only if Known.
	Offset  mirror.DownstreamOffset
	Quality Quality
}

// Known reports whether there is an offset.
func (t Translation) Known() bool { return t.Quality >= Before }
