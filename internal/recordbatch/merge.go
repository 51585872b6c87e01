package recordbatch

import (
	"errors"
	"fmt"
	"math"
)

// CanMerge reports that two batches may become one: both of magic 2 and dense,
// both data, of the same codec and the same kind of timestamps.
func CanMerge(a, b *Batch) bool {
	const same = attrCodec | attrLogAppendTime
	return mergeable(a) == nil && mergeable(b) == nil && (a.Attributes^b.Attributes)&same == 0
}

func mergeable(b *Batch) error {
	switch {
	case b.Magic != 2:
		return fmt.Errorf("magic %d", b.Magic)
	case b.Control():
		return errors.New("a control batch")
	case b.Count == 0 || int64(b.Count) != int64(b.LastOffsetDelta)+1:
		return fmt.Errorf("holes: %d records, last offset delta %d", b.Count, b.LastOffsetDelta)
	}
	return nil
}

// Merge appends to dst one batch of the records of all the given ones, in order,
// which must be such that [CanMerge] holds between them. Records are moved as
// bytes; compressed ones are decompressed and compressed again as one block. The
// result has base offset 0 and no producer.
//
// Checksums are verified first. Times stay as they are, except that batches of
// LogAppendTime get the latest append time of all: merge those only for a
// target that sets times itself.
//
// Dst must not overlap any of the batches; on an error it is returned as it was.
func Merge(dst []byte, batches [][]byte) ([]byte, error) {
	open := make([]Batch, len(batches))
	for i, bytes := range batches {
		b, err := Parse(bytes)
		if err == nil {
			err = b.VerifyChecksum()
		}
		if err != nil {
			return dst, fmt.Errorf("merge record batches: batch %d of %d: %w", i, len(batches), err)
		}
		open[i] = b
	}
	return MergeVerified(dst, open)
}

// MergeVerified is [Merge] of batches whose checksums are known to be right.
func MergeVerified(dst []byte, batches []Batch) ([]byte, error) {
	out, err := merge(dst, batches)
	if err != nil {
		return dst, fmt.Errorf("merge record batches: %w", err)
	}
	return out, nil
}

func merge(dst []byte, batches []Batch) ([]byte, error) {
	if len(batches) == 0 {
		return dst, errors.New("no batches")
	}
	first := &batches[0]
	m := merger{header: first.dense(), codec: first.Codec()}
	start := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	memory := getScratch()
	defer memory.put()
	for i := range batches {
		b := &batches[i]
		err := mergeable(b)
		if err == nil && !CanMerge(first, b) {
			err = fmt.Errorf("attributes %#04x do not go with %#04x", b.Attributes, first.Attributes)
		}
		if err == nil {
			if m.codec == CodecNone {
				dst, err = m.add(dst, b)
			} else {
				memory.b, err = m.add(memory.b, b)
			}
		}
		if err != nil {
			return dst, fmt.Errorf("batch %d of %d: %w", i, len(batches), err)
		}
	}
	dst, err := compress(dst, m.codec, memory.b) // without a codec, memory is empty
	if err != nil {
		return dst, err
	}
	m.header.Attributes |= int16(m.codec)
	m.header.LastOffsetDelta = m.header.Count - 1
	m.header.close(dst[start:])
	return dst, nil
}

// merger is the batch that grows.
type merger struct {
	header Header
	codec  Codec
}

// add appends the records of b, renumbered and with times counted from the
// first batch's.
func (m *merger) add(dst []byte, b *Batch) ([]byte, error) {
	block := b.Bytes[HeaderSize:]
	if m.codec != CodecNone {
		memory := getScratch()
		defer memory.put()
		var err error
		if memory.b, err = decompress(memory.b, m.codec, block, b.Magic, maxDecompressed); err != nil {
			return dst, err
		}
		block = memory.b
	}
	if len(dst)+len(block) > maxDecompressed || int64(m.header.Count)+int64(b.Count) > math.MaxInt32 {
		return dst, errTooLarge
	}
	shift := b.FirstTimestamp - m.header.FirstTimestamp
	for i := range b.Count {
		f, rest, err := nextFrame(block)
		if err != nil {
			return dst, fmt.Errorf("record %d of %d: %w", i, b.Count, err)
		}
		block = rest
		dst = f.appendAt(dst, m.header.Count, f.timeDelta+shift)
		m.header.Count++
	}
	if len(block) != 0 {
		return dst, fmt.Errorf("%d bytes follow the last of %d records", len(block), b.Count)
	}
	m.header.MaxTimestamp = max(m.header.MaxTimestamp, b.MaxTimestamp)
	return dst, nil
}
