package recordbatch

import "encoding/binary"

// Stamp is the producer identity written on a batch.
type Stamp struct {
	ProducerID    int64
	Epoch         int16
	Sequence      int32 // of the batch's first record
	Transactional bool
}

// sealEnd is the end of what Seal changes under the checksum; it starts at the attributes.
const sealEnd = posCount

// Seal makes a magic 2 batch fit to be produced under the stamp, in place: base
// offset 0, leader epoch -1, the stamp's producer fields and transactional bit,
// no LogAppendTime and no delete horizon.
//
// The checksum is moved, not computed anew: records damaged on the way still do
// not match afterwards, and the target refuses them. Sealing again with another
// stamp, or with the same one, is fine. The batch must have come from a
// [Scanner], [Rewrite], [Build] or [Merge].
func Seal(batch []byte, s Stamp) {
	be := binary.BigEndian
	var before [sealEnd - posAttributes]byte
	copy(before[:], batch[posAttributes:sealEnd])

	be.PutUint64(batch[posBaseOffset:], 0)
	be.PutUint32(batch[posLeaderEpoch:], noLeaderEpoch&0xffffffff)
	attributes := be.Uint16(batch[posAttributes:])
	attributes &^= attrLogAppendTime | attrTransactional | attrDeleteHorizon
	if s.Transactional {
		attributes |= attrTransactional
	}
	be.PutUint16(batch[posAttributes:], attributes)
	be.PutUint64(batch[posProducerID:], uint64(s.ProducerID))
	be.PutUint16(batch[posProducerEpoch:], uint16(s.Epoch))
	be.PutUint32(batch[posBaseSequence:], uint32(s.Sequence))

	old := be.Uint32(batch[posCRC:])
	be.PutUint32(batch[posCRC:], moveChecksum(old, before[:], batch[posAttributes:sealEnd], len(batch)-sealEnd))
}
