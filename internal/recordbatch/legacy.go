package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"heliograph/internal/kafka"
)

// Where the fields of an entry of magic 0 or 1 lie.
const (
	posLegacyAttributes = 17
	posLegacyTimestamp  = 18 // magic 1 only
	legacyTimestampSize = 8
)

// legacyRecords decodes an entry of magic 0 or 1: one record, or those that a
// compressed entry wraps. The wrapper's checksum has been verified.
func legacyRecords(b *Batch) ([]kafka.Record, error) {
	key, value, err := legacyKeyValue(b)
	if err != nil {
		return nil, err
	}
	if b.Codec() == CodecNone {
		return []kafka.Record{{Key: key, Value: value, Timestamp: b.MaxTimestamp, Offset: b.BaseOffset}}, nil
	}
	block, err := decompress(nil, b.Codec(), value, b.Magic, maxDecompressed)
	if err != nil {
		return nil, err
	}
	var (
		records []kafka.Record
		inner   Batch
		scanner = NewScanner(block)
		done    int
	)
	for scanner.Next(&inner) {
		done += len(inner.Bytes)
		r, err := innerRecord(&inner, b)
		if err != nil {
			return nil, fmt.Errorf("wrapped entry %d: %w", len(records), err)
		}
		records = append(records, r)
	}
	switch {
	case scanner.Err() != nil:
		return nil, fmt.Errorf("wrapped entry %d: %w", len(records), scanner.Err())
	case done != len(block):
		return nil, fmt.Errorf("wrapped entry %d is cut off", len(records))
	case len(records) == 0:
		return nil, errors.New("compressed entry wraps nothing")
	}
	return records, placeInner(records, b)
}

// innerRecord decodes one wrapped entry, its offset still as it lies there.
func innerRecord(inner, wrapper *Batch) (kafka.Record, error) {
	if inner.Magic != wrapper.Magic {
		return kafka.Record{}, fmt.Errorf("magic %d inside magic %d", inner.Magic, wrapper.Magic)
	}
	if inner.Codec() != CodecNone {
		return kafka.Record{}, errors.New("compressed within a compressed entry")
	}
	if err := inner.VerifyChecksum(); err != nil {
		return kafka.Record{}, err
	}
	key, value, err := legacyKeyValue(inner)
	if err != nil {
		return kafka.Record{}, err
	}
	r := kafka.Record{Key: key, Value: value, Timestamp: inner.MaxTimestamp, Offset: inner.BaseOffset}
	if wrapper.LogAppendTime() {
		r.Timestamp = wrapper.MaxTimestamp
	}
	return r, nil
}

// placeInner makes the offsets of wrapped records absolute. In magic 1 they
// count from the first record that was ever in the wrapper, and the last one's
// is the wrapper's.
func placeInner(records []kafka.Record, wrapper *Batch) error {
	var base int64
	if wrapper.Magic == 1 {
		base = wrapper.BaseOffset - records[len(records)-1].Offset
	}
	for i := range records {
		records[i].Offset += base
		if records[i].Offset < 0 || i > 0 && records[i].Offset <= records[i-1].Offset {
			return fmt.Errorf("wrapped entry %d: offset %d is out of order", i, records[i].Offset)
		}
	}
	return nil
}

// legacyKeyValue reads an entry's key and value as they lie there.
func legacyKeyValue(b *Batch) (key, value []byte, err error) {
	rest := b.Bytes[posLegacyAttributes+1:]
	if b.Magic == 1 {
		rest = rest[legacyTimestampSize:]
	}
	if key, rest, err = readLegacyBytes(rest); err != nil {
		return nil, nil, fmt.Errorf("key: %w", err)
	}
	if value, rest, err = readLegacyBytes(rest); err != nil {
		return nil, nil, fmt.Errorf("value: %w", err)
	}
	if len(rest) != 0 {
		return nil, nil, fmt.Errorf("%d bytes follow the value", len(rest))
	}
	return key, value, nil
}

func readLegacyBytes(data []byte) (value, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, fmt.Errorf("length %w", errShort)
	}
	length := int32(binary.BigEndian.Uint32(data))
	data = data[4:]
	switch {
	case length == -1:
		return nil, data, nil
	case length < 0 || int64(length) > int64(len(data)):
		return nil, nil, fmt.Errorf("length %d, with %d bytes left", length, len(data))
	}
	return data[:length:length], data[length:], nil
}
