package recordbatch

import (
	"fmt"

	"heliograph/internal/kafka"
)

// Records decodes a batch of any magic and codec, with source offsets and times
// as a consumer sees them. Keys and values point into the batch's bytes, or into
// memory of their own when it is compressed. A control batch gives its marker as
// a record; a batch emptied by compaction gives none.
func Records(b *Batch) ([]kafka.Record, error) {
	if err := b.VerifyChecksum(); err != nil {
		return nil, err
	}
	records, err := decode(b)
	if err != nil {
		return nil, corrupt("decode record batch", b.BaseOffset, err)
	}
	return records, nil
}

// decode is Records without the checksum.
func decode(b *Batch) ([]kafka.Record, error) {
	if b.Magic < 2 {
		return legacyRecords(b)
	}
	block := b.Bytes[HeaderSize:]
	if b.Codec() != CodecNone {
		var err error
		if block, err = decompress(nil, b.Codec(), block, b.Magic, maxDecompressed); err != nil {
			return nil, err
		}
	}
	if int64(b.Count) > int64(len(block)/minRecord) {
		return nil, fmt.Errorf("count is %d, but %d bytes cannot hold so many records", b.Count, len(block))
	}
	records := make([]kafka.Record, b.Count)
	for i := range records {
		f, rest, err := nextFrame(block)
		if err != nil {
			return nil, fmt.Errorf("record %d of %d: %w", i, b.Count, err)
		}
		block = rest
		r := &records[i]
		r.Offset = b.BaseOffset + int64(f.offsetDelta)
		r.Timestamp = b.recordTime(f.timeDelta)
		if err := f.fields(r); err != nil {
			return nil, fmt.Errorf("record %d of %d: %w", i, b.Count, err)
		}
	}
	if len(block) != 0 {
		return nil, fmt.Errorf("%d bytes follow the last of %d records", len(block), b.Count)
	}
	return records, nil
}

// recordTime is the time a consumer sees for a record with that delta.
func (h *Header) recordTime(delta int64) int64 {
	if h.LogAppendTime() {
		return h.MaxTimestamp
	}
	return h.FirstTimestamp + delta
}
