package recordbatch

import (
	"heliograph/internal/kafka"
)

// maxAhead is message.timestamp.after.max.ms as brokers from 4.0 on have it by default.
const maxAhead = 60 * 60 * 1000

// Validate answers a produced batch as a Kafka 4.x broker does, for fake targets
// in tests: the records are opened, which the fakes themselves leave out. now is
// in milliseconds; 0 leaves the check of times ahead out.
//
// It is stricter than a broker in two points where a broker stores nonsense:
// bytes after the batch, and inner offsets that are not 0, 1, 2 and so on, are
// INVALID_RECORD. What needs the rest of the request is not checked: a second
// batch for the partition, the transactional id, the producer's state.
func Validate(batch []byte, t Target, now int64) kafka.Code {
	b, err := Parse(batch)
	if err != nil || b.Magic != 2 || b.BaseOffset != 0 {
		return kafka.CodeInvalidRecord
	}
	if t.MaxMessageBytes > 0 && len(batch) > int(t.MaxMessageBytes) {
		return kafka.CodeMessageTooLarge
	}
	if b.VerifyChecksum() != nil {
		return kafka.CodeCorruptMessage
	}
	switch {
	case b.Count == 0, b.Count != b.LastOffsetDelta+1, b.Control():
		return kafka.CodeInvalidRecord
	case b.ProducerID >= 0 && b.BaseSequence < 0:
		return kafka.CodeInvalidRecord
	}
	return validateRecords(&b, t, now)
}

func validateRecords(b *Batch, t Target, now int64) kafka.Code {
	if b.Codec() != CodecNone {
		// What does not decompress is no InvalidRecordException to a broker.
		if _, err := decompress(nil, b.Codec(), b.Bytes[HeaderSize:], b.Magic, maxDecompressed); err != nil {
			return kafka.CodeUnknownServerError
		}
	}
	records, err := decode(b)
	if err != nil {
		return kafka.CodeInvalidRecord
	}
	if t.LogAppendTime && b.LogAppendTime() {
		return kafka.CodeInvalidTimestamp
	}
	for i := range records {
		r := &records[i]
		switch {
		case r.Offset != int64(i):
			return kafka.CodeInvalidRecord
		case t.Compacted && r.Key == nil:
			return kafka.CodeInvalidRecord
		case !t.LogAppendTime && now > 0 && r.Timestamp > now+maxAhead:
			return kafka.CodeInvalidTimestamp
		}
	}
	return kafka.CodeNone
}
