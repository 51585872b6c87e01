package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"heliograph/internal/kafka"
)

// ErrChecksum is in the chain of every error about bytes that do not match
// their checksum: fetch again before giving up.
var ErrChecksum = errors.New("checksum does not match")

// Batch is a view of one batch, or of one entry of magic 0 or 1. It borrows the
// bytes it was scanned from and is good as long as they are.
type Batch struct {
	Header

	// Bytes is the whole batch, header included.
	Bytes []byte
}

// Parse views bytes that are exactly one batch, or one entry of magic 0 or 1.
func Parse(batch []byte) (Batch, error) {
	var b Batch
	s := NewScanner(batch)
	switch {
	case s.Next(&b) && len(b.Bytes) == len(batch):
		return b, nil
	case s.Err() != nil:
		return Batch{}, s.Err()
	case b.Bytes == nil:
		return Batch{}, corrupt("parse record batch", 0, errors.New("cut off"))
	}
	return Batch{}, corrupt("parse record batch", b.BaseOffset,
		fmt.Errorf("%d bytes follow the batch", len(batch)-len(b.Bytes)))
}

// VerifyChecksum compares the batch with its checksum. The error has
// [ErrChecksum] in its chain.
func (b *Batch) VerifyChecksum() error {
	if got := b.checksum(); got != b.CRC {
		return corrupt("verify record batch", b.BaseOffset,
			fmt.Errorf("%w: header says %08x, bytes give %08x", ErrChecksum, b.CRC, got))
	}
	return nil
}

func (b *Batch) checksum() uint32 {
	if b.Magic < 2 {
		return crc32.ChecksumIEEE(b.Bytes[posMagic:])
	}
	return crc32.Checksum(b.Bytes[posAttributes:], castagnoli)
}

// SetChecksum computes the checksum of a magic 2 batch anew and sets it. It is
// for bytes that were made here; bytes that arrived keep theirs.
func SetChecksum(batch []byte) {
	binary.BigEndian.PutUint32(batch[posCRC:], crc32.Checksum(batch[posAttributes:], castagnoli))
}

// corrupt is the error for bytes that cannot be what a broker stored.
func corrupt(op string, offset int64, err error) error {
	return &kafka.Error{
		Op:      op,
		Subject: "at offset " + strconv.FormatInt(offset, 10),
		Code:    kafka.CodeCorruptMessage,
		Class:   kafka.ClassData,
		Err:     err,
	}
}
