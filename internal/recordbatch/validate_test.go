package recordbatch

import (
	"slices"
	"testing"

	"heliograph/internal/kafka"
)

// TestValidateAnswersAsBrokers holds what Kafka 4.3 answered to the same
// batches; the rows that need the whole request are not here.
func TestValidateAnswersAsBrokers(t *testing.T) {
	const (
		now  = someTime
		hour = 60 * 60 * 1000
	)
	at := func(ms int64) []byte {
		return built([]kafka.Record{{Key: []byte("k"), Timestamp: ms}}, BuildOptions{})
	}
	good := built(renumbered(someRecords()), BuildOptions{})
	edit := func(change func(h *Header)) []byte { return with(good, change) }
	keyed := someRecords()
	keyed[1].Key = []byte("k")
	keyless := Target{Compacted: true}
	stamped := edit(func(h *Header) { h.Attributes |= attrLogAppendTime })

	for _, c := range []struct {
		name   string
		batch  []byte
		target Target
		want   kafka.Code
	}{
		{"good", good, Target{}, kafka.CodeNone},
		{"leader epoch 9", edit(func(h *Header) { h.LeaderEpoch = 9 }), Target{}, kafka.CodeNone},
		{"base offset 77", edit(func(h *Header) { h.BaseOffset = 77 }), Target{}, kafka.CodeInvalidRecord},
		{"span larger than the count", edit(func(h *Header) { h.LastOffsetDelta = 6 }), Target{}, kafka.CodeInvalidRecord},
		{"count 0", edit(func(h *Header) { h.Count, h.LastOffsetDelta = 0, 0 }), Target{}, kafka.CodeInvalidRecord},
		{"count 3 of 4", edit(func(h *Header) { h.Count, h.LastOffsetDelta = 3, 2 }), Target{}, kafka.CodeInvalidRecord},
		{"control bit", edit(func(h *Header) { h.Attributes |= attrControl }), Target{}, kafka.CodeInvalidRecord},
		{"two batches", slices.Concat(good, good), Target{}, kafka.CodeInvalidRecord},
		{"magic 1", legacyEntry(1, 0, 0, now, nil, nil), Target{}, kafka.CodeInvalidRecord},
		{"truncated", good[:len(good)-1], Target{}, kafka.CodeInvalidRecord},
		{"producer without sequence", edit(func(h *Header) { h.ProducerID = 5 }), Target{}, kafka.CodeInvalidRecord},
		{"bad checksum", append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), Target{}, kafka.CodeCorruptMessage},
		{"codec that is not", edit(func(h *Header) { h.Attributes |= int16(CodecGzip) }), Target{}, kafka.CodeUnknownServerError},
		{"append time, create time topic", stamped, Target{}, kafka.CodeNone},
		{"append time, append time topic", stamped, Target{LogAppendTime: true}, kafka.CodeInvalidTimestamp},
		{"create time, append time topic", good, Target{LogAppendTime: true}, kafka.CodeNone},
		{"delete horizon", edit(func(h *Header) { h.Attributes |= attrDeleteHorizon }), Target{}, kafka.CodeNone},
		{"foreign producer", edit(func(h *Header) { h.ProducerID, h.ProducerEpoch, h.BaseSequence = 99, 7, 500 }), Target{}, kafka.CodeNone},
		{"year 2200", at(7_258_118_400_000), Target{}, kafka.CodeInvalidTimestamp},
		{"two hours ahead", at(now + 2*hour), Target{}, kafka.CodeInvalidTimestamp},
		{"two hours ahead, append time topic", at(now + 2*hour), Target{LogAppendTime: true}, kafka.CodeNone},
		{"50 minutes ahead", at(now + 50*60*1000), Target{}, kafka.CodeNone},
		{"1970", at(0), Target{}, kafka.CodeNone},
		{"no time", at(kafka.TimestampNone), Target{}, kafka.CodeNone},
		{"no key, compacted topic", good, keyless, kafka.CodeInvalidRecord},
		{"keys, compacted topic", built(renumbered(keyed), BuildOptions{}), keyless, kafka.CodeNone},
		{"too large", good, Target{MaxMessageBytes: int32(len(good)) - 1}, kafka.CodeMessageTooLarge},
		{"just not too large", good, Target{MaxMessageBytes: int32(len(good))}, kafka.CodeNone},
		{"inner offsets, stricter than brokers", innerOffsetsOff(), Target{}, kafka.CodeInvalidRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Validate(c.batch, c.target, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := Validate(at(now+2*hour), Target{}, 0); got != kafka.CodeNone {
		t.Errorf("without a clock: %s", got)
	}
}

// innerOffsetsOff is a batch with a hole, hidden by patching its last delta alone.
func innerOffsetsOff() []byte {
	records := renumbered(someRecords())
	records[3].Offset = 9
	return with(built(records, BuildOptions{}), func(h *Header) { h.LastOffsetDelta = 3 })
}
