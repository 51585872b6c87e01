package offsets

import (
	"errors"
	"slices"
	"sort"

	"heliograph/internal/mirror"
)

// Run says that Count records that follow each other at the source from Up on
// lie behind each other on the target from Down on.
type Run struct {
	Up    mirror.UpstreamOffset
	Down  mirror.DownstreamOffset
	Count int64
}

// End is the source offset behind the run.
func (r Run) End() mirror.UpstreamOffset { return r.Up + mirror.UpstreamOffset(r.Count) }

// downEnd is the target offset behind the run.
func (r Run) downEnd() mirror.DownstreamOffset { return r.Down + mirror.DownstreamOffset(r.Count) }

// ErrRunOrder is returned for a run that does not lie behind the map's last on
// both sides: the source or the target was truncated, made again or rewound.
var ErrRunOrder = errors.New("the run does not follow the last one")

// RunMap is the exact offset map of one partition: which source run became
// which target run. Dense data is one run however long; every gap on either
// side (a transaction's marker, a compaction hole, a foreign record) starts
// another.
//
// Its owner guards it.
//
// Invariant: runs rise on both sides and do not overlap.
// Invariant: an answer is never ahead of the truth, and Exact only where the
// record at the asked offset lies at the answered one, or where nothing was
// copied between it and the answered end.
type RunMap struct {
	runs []Run
	// first is the number of the first run since the map was made; older ones
	// were let go.
	first int64
}

// NewRunMap makes an empty map whose first run goes into the given chunk.
func NewRunMap(chunk int64) *RunMap { return &RunMap{first: chunk * ChunkRuns} }

// maxRuns bounds a map. With one transaction a second it reaches almost three
// hours back; what is older is answered by the offset syncs.
const maxRuns = 40 * ChunkRuns

// Append adds records that were acknowledged. It reports whether they started a
// run of their own rather than making the last one longer.
func (m *RunMap) Append(r Run) (started bool, err error) {
	if n := len(m.runs); n > 0 {
		last := &m.runs[n-1]
		if r.Up < last.End() || r.Down < last.downEnd() {
			return false, ErrRunOrder
		}
		if r.Up == last.End() && r.Down == last.downEnd() {
			last.Count += r.Count
			return false, nil
		}
	}
	m.runs = append(m.runs, r)
	if len(m.runs) > maxRuns {
		m.runs = slices.Delete(m.runs, 0, ChunkRuns)
		m.first += ChunkRuns
	}
	return true, nil
}

// Clear forgets everything and goes on counting in a fresh chunk.
func (m *RunMap) Clear() {
	m.first += int64(len(m.runs)) + ChunkRuns
	m.first -= m.first % ChunkRuns
	m.runs = nil
}

// lastStarting is the last run in front of the first that lies beyond what is
// looked for, or -1. Runs rise on both sides, so that either may be asked.
func (m *RunMap) lastStarting(beyond func(Run) bool) int {
	return sort.Search(len(m.runs), func(i int) bool { return beyond(m.runs[i]) }) - 1
}

// Len is how many runs the map holds.
func (m *RunMap) Len() int { return len(m.runs) }

// Translate tells where a reader that wants source offset u next goes on at the
// target. position is the first source offset that is not settled, end the
// target offset behind all that is. It knows nothing of what lies before its
// first run.
func (m *RunMap) Translate(u, position mirror.UpstreamOffset, end mirror.DownstreamOffset) Translation {
	if u > position {
		return Translation{Offset: end, Quality: Before}
	}
	i := m.lastStarting(func(r Run) bool { return r.Up > u })
	switch {
	case i < 0 && len(m.runs) == 0 && u == position:
		return Translation{Offset: end, Quality: Exact}
	case i < 0:
		return Translation{Quality: Unknown}
	case u < m.runs[i].End():
		return Translation{Offset: m.runs[i].Down + mirror.DownstreamOffset(u-m.runs[i].Up), Quality: Exact}
	case i+1 < len(m.runs):
		return Translation{Offset: m.runs[i+1].Down, Quality: Next}
	}
	return Translation{Offset: end, Quality: Exact}
}
