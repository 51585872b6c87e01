package recordbatch

import (
	"encoding/binary"
	"fmt"
)

// The smallest possible values of the length field.
const (
	minLength  = HeaderSize - lengthEnd
	minLength0 = 14 // checksum, magic, attributes, two lengths
	minLength1 = minLength0 + 8
)

// Scanner walks the batches of a fetch answer by their headers. It allocates
// nothing until it meets garbage.
//
// Brokers cut an answer at a byte limit, so a last batch that is not whole ends
// the walk without an error. A length that is damaged but possible looks the
// same; brokers send at least one whole batch if there is any, so an answer with
// bytes and without a batch is not regular.
type Scanner struct {
	rest []byte
	pos  int   // where rest begins, for errors
	next int64 // offset after the last batch, for errors
	err  error
}

// NewScanner starts at the first byte of a partition's records.
func NewScanner(records []byte) Scanner { return Scanner{rest: records} }

// Err is why the walk stopped, or nil at a regular end.
func (s *Scanner) Err() error { return s.err }

// Next fills b with the next batch. It returns false at the end, at a cut-off
// batch, and at garbage, which [Scanner.Err] then describes.
func (s *Scanner) Next(b *Batch) bool {
	if s.err != nil || len(s.rest) <= posMagic {
		return false
	}
	length := int32(binary.BigEndian.Uint32(s.rest[posLength:]))
	magic := int8(s.rest[posMagic])
	var least int32
	switch magic {
	case 2:
		least = minLength
	case 1:
		least = minLength1
	case 0:
		least = minLength0
	default:
		return s.fail(fmt.Errorf("magic %d is unknown", magic))
	}
	if length < least {
		return s.fail(fmt.Errorf("length %d is impossible, the least for magic %d is %d", length, magic, least))
	}
	if int64(length)+lengthEnd > int64(len(s.rest)) {
		return false
	}
	size := int(length) + lengthEnd
	b.Bytes = s.rest[:size:size]
	if magic == 2 {
		b.read(b.Bytes)
	} else {
		b.readLegacy(b.Bytes)
	}
	if err := b.check(); err != nil {
		return s.fail(err)
	}
	s.rest = s.rest[size:]
	s.pos += size
	s.next = b.NextOffset()
	return true
}

func (s *Scanner) fail(err error) bool {
	s.err = corrupt("scan record batch", s.next, fmt.Errorf("byte %d of the answer: %w", s.pos, err))
	return false
}

// readLegacy fills the header from an entry of magic 0 or 1.
func (h *Header) readLegacy(p []byte) {
	be := binary.BigEndian
	*h = Header{
		BaseOffset:     int64(be.Uint64(p[posBaseOffset:])),
		Length:         int32(be.Uint32(p[posLength:])),
		LeaderEpoch:    noLeaderEpoch,
		CRC:            be.Uint32(p[lengthEnd:]),
		Magic:          int8(p[posMagic]),
		Attributes:     int16(p[posLegacyAttributes]) & attrCodec,
		FirstTimestamp: -1,
		MaxTimestamp:   -1,
		ProducerID:     noProducerID,
		ProducerEpoch:  noProducerEpoch,
		BaseSequence:   noSequence,
	}
	if h.Magic == 1 {
		h.Attributes |= int16(p[posLegacyAttributes]) & attrLogAppendTime
		h.FirstTimestamp = int64(be.Uint64(p[posLegacyTimestamp:]))
		h.MaxTimestamp = h.FirstTimestamp
	}
	if h.Codec() == CodecNone {
		h.Count = 1
	}
}
