package offsets

import (
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Origin is a downstream offset told in the source's terms: the way back of a
// [Translation].
type Origin struct {
	// Offset is meaningful only if Known.
	Offset  mirror.UpstreamOffset
	Quality Quality
}

// Known reports whether there is an offset.
func (o Origin) Known() bool { return o.Quality >= Before }

// Reverse tells where on the source a reader goes on that wants target offset d
// next. position and end are those of [RunMap.Translate]. What others wrote to
// the target has no place at the source: behind it a reader goes on with the next
// record that was copied.
func (m *RunMap) Reverse(d, end mirror.DownstreamOffset, position mirror.UpstreamOffset) Origin {
	if d > end {
		return Origin{Offset: position, Quality: Before}
	}
	i := m.lastStarting(func(r Run) bool { return r.Down > d })
	switch {
	case i < 0 && len(m.runs) == 0 && d == end:
		return Origin{Offset: position, Quality: Exact}
	case i < 0:
		return m.reverseOld(d)
	case d < m.runs[i].DownEnd():
		return Origin{Offset: m.runs[i].Up + mirror.UpstreamOffset(d-m.runs[i].Down), Quality: Exact}
	case i+1 < len(m.runs):
		return Origin{Offset: m.runs[i+1].Up, Quality: Next}
	}
	return Origin{Offset: position, Quality: Exact}
}

// reverseOld answers for what lies in front of the runs.
func (m *RunMap) reverseOld(d mirror.DownstreamOffset) Origin {
	a, ok := m.lastAnchor(func(r Run) bool { return r.Down > d })
	switch {
	case !ok:
		return Origin{Quality: Unknown}
	case d < a.DownEnd():
		return Origin{Offset: a.Up + mirror.UpstreamOffset(d-a.Down), Quality: Exact}
	}
	return Origin{Offset: a.End(), Quality: Before}
}

// KnownBack is the last record in front of target offset d whose place is known.
func (m *RunMap) KnownBack(d mirror.DownstreamOffset) (mirror.UpstreamOffset, mirror.DownstreamOffset, bool) {
	r, ok := m.lastBefore(func(r Run) bool { return r.Down >= d })
	if !ok {
		return 0, 0, false
	}
	n := min(r.Count, int64(d-r.Down)) - 1
	return r.Up + mirror.UpstreamOffset(n), r.Down + mirror.DownstreamOffset(n), true
}

// Reverse tells a downstream offset in the source's terms, by the newest sync
// that does not lie behind it. It never goes further, so a reader who starts
// there misses nothing.
func (s *SyncStore) Reverse(tp kafka.TopicPartition, down mirror.DownstreamOffset) Origin {
	h, ok := s.histories[tp]
	if !ok || !s.complete {
		return Origin{Quality: Unknown}
	}
	for _, o := range h {
		switch distance := int64(down) - o.down; {
		case distance < 0:
			continue
		case distance == 0:
			return Origin{Offset: mirror.UpstreamOffset(o.up), Quality: Exact}
		case distance == 1:
			return Origin{Offset: mirror.UpstreamOffset(o.up + 1), Quality: Next}
		default:
			return Origin{Offset: mirror.UpstreamOffset(o.up + 1), Quality: Before}
		}
	}
	return Origin{Quality: TooOld}
}
