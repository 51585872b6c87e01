package recordbatch

import (
	"errors"
	"fmt"
	"math"

	"heliograph/internal/kafka"
)

// BuildOptions say what a built batch is like. The zero value gives a dense,
// uncompressed CreateTime batch.
type BuildOptions struct {
	Codec Codec
	// LogAppendTime flags the batch as stamped by a broker: MaxTimestamp is then
	// the time of every record.
	LogAppendTime bool
	MaxTimestamp  int64 // milliseconds; only with LogAppendTime
	// KeepOffsets lays the records as a source's log has them, at their own
	// offsets, which must rise. Otherwise they are numbered from 0.
	KeepOffsets bool
}

// Build makes one batch of at least one record, without producer.
func Build(records []kafka.Record, o BuildOptions) ([]byte, error) {
	batch, err := build(records, o)
	if err != nil {
		return nil, fmt.Errorf("build record batch: %w", err)
	}
	return batch, nil
}

func build(records []kafka.Record, o BuildOptions) ([]byte, error) {
	if o.Codec == CodecNone {
		batch, h, err := appendRecords(make([]byte, HeaderSize, HeaderSize+sizeHint(records)), records, o)
		if err != nil {
			return nil, err
		}
		return h.close(batch), nil
	}
	memory := getScratch()
	defer memory.put()
	var (
		h   Header
		err error
	)
	if memory.b, h, err = appendRecords(memory.b, records, o); err != nil {
		return nil, err
	}
	batch, err := compress(make([]byte, HeaderSize, HeaderSize+len(memory.b)/2), o.Codec, memory.b)
	if err != nil {
		return nil, err
	}
	return h.close(batch), nil
}

// sizeHint is about what the records take.
func sizeHint(records []kafka.Record) int {
	const overhead = 16
	n := 0
	for i := range records {
		n += overhead + len(records[i].Key) + len(records[i].Value)
	}
	return n
}

// appendRecords appends the records uncompressed and gives the header that fits
// them but for length and checksum.
func appendRecords(dst []byte, records []kafka.Record, o BuildOptions) ([]byte, Header, error) {
	if len(records) == 0 {
		return dst, Header{}, errors.New("no records")
	}
	if len(records) > math.MaxInt32 {
		return dst, Header{}, fmt.Errorf("%d records are too many", len(records))
	}
	first := records[0].Timestamp
	h := (&Header{FirstTimestamp: first, MaxTimestamp: first}).dense()
	h.Attributes = int16(o.Codec)
	h.Count = int32(len(records))
	if o.KeepOffsets {
		h.BaseOffset = records[0].Offset
	}
	start := len(dst)
	for i := range records {
		r := &records[i]
		delta := int64(i)
		if o.KeepOffsets {
			delta = r.Offset - h.BaseOffset
			if i > 0 && delta <= int64(h.LastOffsetDelta) || delta > math.MaxInt32 {
				return dst, Header{}, fmt.Errorf("record %d: offset %d does not fit after %d", i, r.Offset, h.LastOffset())
			}
		}
		h.LastOffsetDelta = int32(delta)
		h.MaxTimestamp = max(h.MaxTimestamp, r.Timestamp)
		dst = appendRecord(dst, r, int32(delta), r.Timestamp-first)
		if len(dst)-start > maxDecompressed {
			return dst, Header{}, fmt.Errorf("record %d of %d: %w", i, len(records), errTooLarge)
		}
	}
	if o.LogAppendTime {
		h.Attributes |= attrLogAppendTime
		h.MaxTimestamp = o.MaxTimestamp
	}
	return dst, h, nil
}
