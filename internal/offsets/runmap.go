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

// DownEnd is the target offset behind the run.
func (r Run) DownEnd() mirror.DownstreamOffset { return r.Down + mirror.DownstreamOffset(r.Count) }

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
// It is bounded: what is older than maxRuns runs thins to anchors, single runs
// with others left out between them, ever further apart. Between two anchors the
// map tells the last record that it knows; reading both logs from there tells the
// rest.
//
// Invariant: runs rise on both sides and do not overlap; anchors lie before them.
// Invariant: an answer is never ahead of the truth, and Exact only where the
// record at the asked offset lies at the answered one, or where nothing was
// copied between it and the answered end.
type RunMap struct {
	anchors []Run
	runs    []Run
	// first is the number of the first run since the map was made; older ones
	// were let go.
	first int64
}

// NewRunMap makes an empty map whose first run goes into the given chunk.
func NewRunMap(chunk int64) *RunMap { return &RunMap{first: chunk * ChunkRuns} }

const (
	// maxRuns bounds a map. With one transaction a second it reaches almost three
	// hours back.
	maxRuns = 40 * ChunkRuns
	// Of a chunk that is let go every anchorEvery-th run stays as an anchor. With
	// more than maxAnchors every second of them is let go too: a day of a
	// transaction a second has one a minute.
	anchorEvery = 16
	maxAnchors  = 2048
)

// Append adds records that were acknowledged. It reports whether they started a
// run of their own rather than making the last one longer.
func (m *RunMap) Append(r Run) (started bool, err error) {
	if n := len(m.runs); n > 0 {
		last := &m.runs[n-1]
		if r.Up < last.End() || r.Down < last.DownEnd() {
			return false, ErrRunOrder
		}
		if r.Up == last.End() && r.Down == last.DownEnd() {
			last.Count += r.Count
			return false, nil
		}
	}
	m.runs = append(m.runs, r)
	if len(m.runs) > maxRuns {
		m.thin(m.runs[:ChunkRuns])
		m.runs = slices.Delete(m.runs, 0, ChunkRuns)
		m.first += ChunkRuns
	}
	return true, nil
}

// thin keeps anchors of runs that are let go. The very first run always stays.
func (m *RunMap) thin(runs []Run) {
	for i := 0; i < len(runs); i += anchorEvery {
		m.anchors = append(m.anchors, runs[i])
	}
	if len(m.anchors) > maxAnchors {
		half := m.anchors[:0]
		for i := 0; i < len(m.anchors); i += 2 {
			half = append(half, m.anchors[i])
		}
		m.anchors = slices.Clip(half)
	}
}

// Clear forgets everything and goes on counting in a fresh chunk.
func (m *RunMap) Clear() {
	m.first += int64(len(m.runs)) + ChunkRuns
	m.first -= m.first % ChunkRuns
	m.runs, m.anchors = nil, nil
}

// lastStarting is the last run in front of the first that lies beyond what is
// looked for, or -1. Runs rise on both sides, so that either may be asked.
func (m *RunMap) lastStarting(beyond func(Run) bool) int {
	return sort.Search(len(m.runs), func(i int) bool { return beyond(m.runs[i]) }) - 1
}

// Len is how many runs the map holds.
func (m *RunMap) Len() int { return len(m.runs) }

// lastBefore is the last run or anchor in front of the first that lies beyond.
func (m *RunMap) lastBefore(beyond func(Run) bool) (Run, bool) {
	if i := m.lastStarting(beyond); i >= 0 {
		return m.runs[i], true
	}
	return m.lastAnchor(beyond)
}

// lastAnchor is the last anchor in front of the first that lies beyond.
func (m *RunMap) lastAnchor(beyond func(Run) bool) (Run, bool) {
	i := sort.Search(len(m.anchors), func(i int) bool { return beyond(m.anchors[i]) }) - 1
	if i < 0 {
		return Run{}, false
	}
	return m.anchors[i], true
}

// Oldest is the first run that is known of.
func (m *RunMap) Oldest() (Run, bool) {
	for _, runs := range [][]Run{m.anchors, m.runs} {
		if len(runs) > 0 {
			return runs[0], true
		}
	}
	return Run{}, false
}

// Thinned reports whether the map has let runs go.
func (m *RunMap) Thinned() bool { return len(m.anchors) > 0 }

// Behind is a map of past runs with those of m behind them, which must not be
// thinned. Its chunks are numbered behind those of m, so that none is mistaken for
// the other.
func (m *RunMap) Behind(past []Run) (*RunMap, error) {
	all := NewRunMap(m.LastChunk() + 1)
	for _, runs := range [][]Run{past, m.runs} {
		for _, r := range runs {
			if _, err := all.Append(r); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Known is the last record in front of source offset u whose place is known.
// Reading both logs from there on makes exact what [RunMap.Translate] does not.
func (m *RunMap) Known(u mirror.UpstreamOffset) (mirror.UpstreamOffset, mirror.DownstreamOffset, bool) {
	r, ok := m.lastBefore(func(r Run) bool { return r.Up >= u })
	if !ok {
		return 0, 0, false
	}
	n := min(r.Count, int64(u-r.Up)) - 1
	return r.Up + mirror.UpstreamOffset(n), r.Down + mirror.DownstreamOffset(n), true
}

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
		return m.translateOld(u)
	case u < m.runs[i].End():
		return Translation{Offset: m.runs[i].Down + mirror.DownstreamOffset(u-m.runs[i].Up), Quality: Exact}
	case i+1 < len(m.runs):
		return Translation{Offset: m.runs[i+1].Down, Quality: Next}
	}
	return Translation{Offset: end, Quality: Exact}
}

// translateOld answers for what lies in front of the runs.
func (m *RunMap) translateOld(u mirror.UpstreamOffset) Translation {
	if a, ok := m.lastAnchor(func(r Run) bool { return r.Up > u }); ok {
		if u < a.End() {
			return Translation{Offset: a.Down + mirror.DownstreamOffset(u-a.Up), Quality: Exact}
		}
		return Translation{Offset: a.DownEnd(), Quality: Before}
	}
	// Nothing lies in front of the first record of the target's log: what was not
	// copied before it never was.
	if first, ok := m.Oldest(); ok && first.Down == 0 {
		return Translation{Offset: 0, Quality: Next}
	}
	return Translation{Quality: Unknown}
}
