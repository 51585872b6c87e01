package recordbatch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// HeaderSize is the size of a magic 2 batch up to its records.
const HeaderSize = 61

// Where the header's fields lie.
const (
	posBaseOffset      = 0
	posLength          = 8
	posLeaderEpoch     = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posFirstTimestamp  = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posCount           = 57
)

// lengthEnd is where the bytes begin that the length field counts.
const lengthEnd = 12

// The attribute bits.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// What a batch carries where it has none of it.
const (
	noLeaderEpoch   = -1
	noProducerID    = -1
	noProducerEpoch = -1
	noSequence      = -1
)

// Header is the fixed part of a batch.
//
// For an entry of magic 0 or 1 it is filled as far as the old format goes:
// BaseOffset is the entry's own offset (for a compressed one that of its last
// record), both timestamps are the entry's, Count is 1, or 0 for a compressed
// one whose number of records is not known, and the leader epoch and producer
// fields are -1.
type Header struct {
	BaseOffset      int64
	Length          int32 // bytes after the length field
	LeaderEpoch     int32
	Magic           int8
	CRC             uint32
	Attributes      int16
	LastOffsetDelta int32
	FirstTimestamp  int64 // milliseconds
	MaxTimestamp    int64 // milliseconds
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32
}

// ParseHeader reads the first HeaderSize bytes of a magic 2 batch. It does not
// judge the values; that is the scanner's task.
func ParseHeader(data []byte) (Header, error) {
	if len(data) < HeaderSize {
		return Header{}, fmt.Errorf("parse batch header: %d bytes, need %d", len(data), HeaderSize)
	}
	if data[posMagic] != 2 {
		return Header{}, fmt.Errorf("parse batch header: magic %d, want 2", int8(data[posMagic]))
	}
	var h Header
	h.read(data)
	return h, nil
}

// read fills the header from at least HeaderSize bytes.
func (h *Header) read(p []byte) {
	_ = p[HeaderSize-1]
	be := binary.BigEndian
	h.BaseOffset = int64(be.Uint64(p[posBaseOffset:]))
	h.Length = int32(be.Uint32(p[posLength:]))
	h.LeaderEpoch = int32(be.Uint32(p[posLeaderEpoch:]))
	h.Magic = int8(p[posMagic])
	h.CRC = be.Uint32(p[posCRC:])
	h.Attributes = int16(be.Uint16(p[posAttributes:]))
	h.LastOffsetDelta = int32(be.Uint32(p[posLastOffsetDelta:]))
	h.FirstTimestamp = int64(be.Uint64(p[posFirstTimestamp:]))
	h.MaxTimestamp = int64(be.Uint64(p[posMaxTimestamp:]))
	h.ProducerID = int64(be.Uint64(p[posProducerID:]))
	h.ProducerEpoch = int16(be.Uint16(p[posProducerEpoch:]))
	h.BaseSequence = int32(be.Uint32(p[posBaseSequence:]))
	h.Count = int32(be.Uint32(p[posCount:]))
}

// AppendTo appends the header's HeaderSize bytes as they are, checksum included.
func (h *Header) AppendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(h.BaseOffset))
	dst = be.AppendUint32(dst, uint32(h.Length))
	dst = be.AppendUint32(dst, uint32(h.LeaderEpoch))
	dst = append(dst, byte(h.Magic))
	dst = be.AppendUint32(dst, h.CRC)
	dst = be.AppendUint16(dst, uint16(h.Attributes))
	dst = be.AppendUint32(dst, uint32(h.LastOffsetDelta))
	dst = be.AppendUint64(dst, uint64(h.FirstTimestamp))
	dst = be.AppendUint64(dst, uint64(h.MaxTimestamp))
	dst = be.AppendUint64(dst, uint64(h.ProducerID))
	dst = be.AppendUint16(dst, uint16(h.ProducerEpoch))
	dst = be.AppendUint32(dst, uint32(h.BaseSequence))
	return be.AppendUint32(dst, uint32(h.Count))
}

// check tells what makes the header impossible. A broker never sends such a
// one, and offsets computed from it would be nonsense.
func (h *Header) check() error {
	switch {
	case h.BaseOffset < 0:
		return fmt.Errorf("base offset %d is negative", h.BaseOffset)
	case h.LastOffsetDelta < 0:
		return fmt.Errorf("last offset delta %d is negative", h.LastOffsetDelta)
	case h.BaseOffset > math.MaxInt64-1-int64(h.LastOffsetDelta):
		return fmt.Errorf("base offset %d is too large", h.BaseOffset)
	case h.Count < 0:
		return fmt.Errorf("record count %d is negative", h.Count)
	}
	return nil
}

// LastOffset is the offset of the last record the batch has, or had before compaction.
func (h *Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// NextOffset is where reading goes on after the batch.
func (h *Header) NextOffset() int64 { return h.LastOffset() + 1 }

// Codec is how the records are compressed.
func (h *Header) Codec() Codec { return Codec(h.Attributes & attrCodec) }

// LogAppendTime reports that the records' time is the broker's: MaxTimestamp for all.
func (h *Header) LogAppendTime() bool { return h.Attributes&attrLogAppendTime != 0 }

// Transactional reports that the batch belongs to a transaction.
func (h *Header) Transactional() bool { return h.Attributes&attrTransactional != 0 }

// Control reports that the batch is a marker of the broker's, not data.
func (h *Header) Control() bool { return h.Attributes&attrControl != 0 }

// DeleteHorizon reports that FirstTimestamp is the time from which the broker
// may remove the batch's tombstones. The records' times count from it all the same.
func (h *Header) DeleteHorizon() bool { return h.Attributes&attrDeleteHorizon != 0 }
