package recordbatch

import (
	"cmp"
	"encoding/binary"
	"slices"

	"heliograph/internal/kafka"
)

// AbortFilter tells which batches of a fetch answer belong to aborted
// transactions. The zero value is ready; it belongs to one partition's reader.
type AbortFilter struct {
	pending []kafka.AbortedTxn // sorted, not yet reached
	store   []kafka.AbortedTxn // memory of pending
	open    map[int64]struct{} // producers that are within an aborted transaction
}

// Reset starts a new answer with the broker's list, which need not be sorted
// and is not kept.
func (f *AbortFilter) Reset(aborted []kafka.AbortedTxn) {
	f.store = append(f.store[:0], aborted...)
	slices.SortFunc(f.store, func(a, b kafka.AbortedTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	f.pending = f.store
	clear(f.open)
}

// Aborted must be asked for every batch of the answer, in order, also for
// control batches: they end a transaction. A control batch itself is not aborted.
func (f *AbortFilter) Aborted(b *Batch) bool {
	for len(f.pending) > 0 && f.pending[0].FirstOffset <= b.LastOffset() {
		if f.open == nil {
			f.open = make(map[int64]struct{})
		}
		f.open[f.pending[0].ProducerID] = struct{}{}
		f.pending = f.pending[1:]
	}
	if b.Control() {
		delete(f.open, b.ProducerID)
		return false
	}
	if !b.Transactional() {
		return false
	}
	_, aborted := f.open[b.ProducerID]
	return aborted
}

// ControlKind is what a transaction marker says.
type ControlKind int16

// The markers, with their wire values.
const (
	ControlAbort  ControlKind = 0
	ControlCommit ControlKind = 1
)

// String names the marker.
func (k ControlKind) String() string {
	switch k {
	case ControlAbort:
		return "abort"
	case ControlCommit:
		return "commit"
	}
	return "unknown"
}

// controlKeySize is the size of a marker's key: version and kind.
const controlKeySize = 4

// Control reads a transaction marker. It is false for data, for control batches
// of other kinds, and for one whose marker was compacted away.
func Control(b *Batch) (kind ControlKind, ok bool) {
	if !b.Control() || b.Count == 0 || b.Codec() != CodecNone {
		return 0, false
	}
	f, _, err := nextFrame(b.Bytes[HeaderSize:])
	if err != nil {
		return 0, false
	}
	key, _, err := readBytes(f.tail)
	if err != nil || len(key) < controlKeySize {
		return 0, false
	}
	kind = ControlKind(binary.BigEndian.Uint16(key[2:]))
	return kind, kind == ControlAbort || kind == ControlCommit
}
