package offsets

import (
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// slots is how many syncs are kept of a partition: distances double from slot
// to slot, so 64 span every offset there can be.
const slots = 64

// pair is one stored sync. Two are the same if they are the same entry: pairs
// with equal numbers may come twice and are still two.
type pair struct {
	up   int64
	down int64
}

// history is what is kept of one partition, slot 0 the newest. The same sync
// may fill several slots.
//
// With u(i) the upstream offset in slot i, for i < j with different syncs:
//
// Invariant A: slot 0 is the newest sync.
// Invariant B: u(i) <= u(j) + 2^j - 2^i, so that slots do not thin out too much.
// Invariant C: u(i) >= u(j) + 2^max(i-2,0), so that they do not crowd.
// Invariant D: slot 63 is the oldest sync that can be used.
type history [slots]*pair

// SyncStore holds the offset syncs of many partitions, dense near the end and
// ever coarser further back, and translates with them. It is MirrorMaker's
// store: fed with the same syncs it keeps the same ones.
type SyncStore struct {
	lastOnly  bool
	complete  bool
	histories map[kafka.TopicPartition]*history
}

// NewSyncStore makes an empty store. lastOnly says that the checkpoints written
// before could not be read: then of the syncs read before [SyncStore.ReadToEnd]
// only the last counts, so that no group is set back behind a checkpoint that
// this process does not know of.
func NewSyncStore(lastOnly bool) *SyncStore {
	return &SyncStore{lastOnly: lastOnly, histories: map[kafka.TopicPartition]*history{}}
}

// ReadToEnd says that all syncs that were there at the start have been applied.
// Before, nothing is translated.
func (s *SyncStore) ReadToEnd() { s.complete = true }

// Apply takes the next sync in the order of the offset syncs topic.
func (s *SyncStore) Apply(o mirror.OffsetSync) {
	n := &pair{up: int64(o.Upstream), down: int64(o.Downstream)}
	h, ok := s.histories[o.TopicPartition]
	switch {
	case !ok:
		h = &history{}
		s.histories[o.TopicPartition] = h
		h.restart(n)
	case s.lastOnly && !s.complete, n.up < h[0].up:
		h.restart(n)
	default:
		h.insert(n)
	}
}

// restart forgets everything but n.
func (h *history) restart(n *pair) {
	for i := range h {
		h[i] = n
	}
}

// insert puts n into slot 0 and moves older syncs back, as few as keep the
// invariants, dropping those that would come too close to each other.
func (h *history) insert(n *pair) {
	old := *h
	h[0] = n
	candidate, c := n, 0
	for p := 1; p < slots; p++ {
		candidate, c = h.choose(&old, p, c, candidate)
		if notTooFar(h[p-1], p-1, h[p], p) {
			return
		}
		h[p] = candidate
	}
}

// choose looks for the sync to put into slot p among the old ones from cursor c
// on, and returns it with the moved cursor. Where none fits it is the candidate
// of the slot before.
func (h *history) choose(old *history, p, c int, candidate *pair) (*pair, int) {
	previous := h[p-1]
	for {
		o := old[c]
		apart := farEnough(previous, p-1, o)
		fits := apart && notTooFar(previous, p-1, o, p) && (p == slots-1 || farEnough(o, p, h[p+1]))
		duplicate := c+1 < slots && old[c+1] == o
		if fits {
			candidate = o
		}
		if fits || duplicate || !apart {
			c++
		}
		if c >= p || (!duplicate && apart) {
			return candidate, c
		}
	}
}

// notTooFar is invariant B for x in slot i and y in slot j. The sum wraps on
// purpose: a negative bound lies beyond every offset.
func notTooFar(x *pair, i int, y *pair, j int) bool {
	bound := y.up + 1<<j - 1<<i
	return x == y || bound < 0 || x.up <= bound
}

// farEnough is invariant C for x in slot i and an older y. The sum wraps on
// purpose: a bound that overflowed cannot be reached.
func farEnough(x *pair, i int, y *pair) bool {
	bound := y.up + 1<<max(i-2, 0)
	return x == y || bound >= 0 && x.up >= bound
}

// Translate tells an upstream offset in the target's terms: the pair's own
// offset where a sync has it, else right behind the newest sync before it.
// It never goes further, so a reader who starts there misses nothing.
func (s *SyncStore) Translate(tp kafka.TopicPartition, up mirror.UpstreamOffset) Translation {
	h, ok := s.histories[tp]
	if !ok || !s.complete {
		return Translation{Quality: Unknown}
	}
	for _, o := range h {
		switch distance := int64(up) - o.up; {
		case o.up > int64(up):
			continue
		case distance == 0:
			return Translation{Offset: mirror.DownstreamOffset(o.down), Quality: Exact}
		case distance == 1:
			return Translation{Offset: mirror.DownstreamOffset(o.down + 1), Quality: Next}
		default:
			return Translation{Offset: mirror.DownstreamOffset(o.down + 1), Quality: Before}
		}
	}
	return Translation{Quality: TooOld}
}

// Syncs are the different syncs kept of a partition, the newest first.
func (s *SyncStore) Syncs(tp kafka.TopicPartition) []mirror.OffsetSync {
	h, ok := s.histories[tp]
	if !ok {
		return nil
	}
	var kept []mirror.OffsetSync
	for i, o := range h {
		if i > 0 && o == h[i-1] {
			continue
		}
		kept = append(kept, mirror.OffsetSync{
			TopicPartition: tp,
			Upstream:       mirror.UpstreamOffset(o.up),
			Downstream:     mirror.DownstreamOffset(o.down),
		})
	}
	return kept
}

// Forget drops a partition, whose topic is gone or no longer ours.
func (s *SyncStore) Forget(tp kafka.TopicPartition) { delete(s.histories, tp) }
