package recordbatch

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

func TestRecordsAgreeWithClientLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := BuildOptions{Codec: drawCodec(t), LogAppendTime: rapid.Bool().Draw(t, "append time"), MaxTimestamp: someTime + 77}
		batch := built(drawRecords(t, true), o)
		wantSame(t, "decoding", mustRecords(t, batch), viaKgo(t, batch))
	})
}

func TestRecordsShowWhatConsumersSee(t *testing.T) {
	wantSame(t, "plain", mustRecords(t, plainBatch()), someRecords())
	wantSame(t, "delete horizon", mustRecords(t, horizonBatch()), someRecords())
	wantSame(t, "compacted", mustRecords(t, compactedBatch()), []kafka.Record{
		{Value: []byte{}, Timestamp: someTime + 5, Offset: 41},
	})
	wantSame(t, "empty", mustRecords(t, emptyBatch()), []kafka.Record{})
	for _, r := range mustRecords(t, appendTimeBatch()) {
		if r.Timestamp != someTime+9000 {
			t.Errorf("append time: offset %d has time %d", r.Offset, r.Timestamp)
		}
	}
}

// legacyRecordsOf are records that the old formats can hold.
func legacyRecordsOf(magic int8) []kafka.Record {
	records := someRecords()
	records[3].Offset = 47 // compaction took three before it
	for i := range records {
		records[i].Headers = nil
		if magic == 0 {
			records[i].Timestamp = kafka.TimestampNone
		}
	}
	return records
}

func TestRecordsOfOldFormats(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		want := legacyRecordsOf(magic)
		for _, r := range want {
			got := mustRecords(t, legacyEntry(magic, 0, r.Offset, r.Timestamp, r.Key, r.Value))
			wantSame(t, "single entry", got, []kafka.Record{r})
		}
		for codec := range kgoCodecs {
			entry := legacyWrapper(magic, codec, want)
			wantSame(t, codec.String()+" wrapper", mustRecords(t, entry), want)
			if codec == CodecLz4 && magic == 0 || codec == CodecZstd {
				continue // the client library reads neither
			}
			theirs := viaKgo(t, entry)
			if magic == 0 {
				for i := range theirs {
					theirs[i].Timestamp = kafka.TimestampNone
				}
			}
			if codec != CodecLz4 || magic != 1 {
				wantSame(t, codec.String()+" wrapper, client library", theirs, want)
			}
		}
	}
}

func TestRecordsOfWrapperStampedByBroker(t *testing.T) {
	entry := legacyWrapper(1, CodecGzip, legacyRecordsOf(1))
	entry[posLegacyAttributes] |= attrLogAppendTime
	binary.BigEndian.PutUint64(entry[posLegacyTimestamp:], someTime+500)
	fixLegacyChecksum(entry)
	for _, r := range mustRecords(t, entry) {
		if r.Timestamp != someTime+500 {
			t.Errorf("offset %d has time %d", r.Offset, r.Timestamp)
		}
	}
}

func fixLegacyChecksum(entry []byte) {
	b := Batch{Bytes: entry}
	b.readLegacy(entry)
	binary.BigEndian.PutUint32(entry[lengthEnd:], b.checksum())
}

// wrap puts a block into an entry of magic 1 at offset 9.
func wrap(block []byte) []byte {
	value, err := compress(nil, CodecGzip, block)
	if err != nil {
		panic(err)
	}
	return legacyEntry(1, int8(CodecGzip), 9, someTime, nil, value)
}

func TestRecordsRefuseDamage(t *testing.T) {
	inner := legacyEntry(1, 0, 0, someTime, nil, []byte("v"))
	second := legacyEntry(1, 0, 1, someTime, nil, []byte("w"))
	innerDamaged := slices.Clone(inner)
	innerDamaged[len(innerDamaged)-1] ^= 1
	records := func(p ...byte) []byte {
		batch := append(plainBatch()[:HeaderSize:HeaderSize], p...)
		return with(batch, func(h *Header) { h.Count, h.LastOffsetDelta, h.Length = 1, 0, int32(len(batch)-lengthEnd) })
	}
	for name, c := range map[string]struct {
		batch []byte
		says  string
	}{
		"checksum":               {shapes()["damaged"], "checksum"},
		"one record too few":     {with(plainBatch(), func(h *Header) { h.Count = 5 }), "record 4 of 5"},
		"one record too many":    {with(plainBatch(), func(h *Header) { h.Count = 3 }), "follow the last"},
		"absurd count":           {with(plainBatch(), func(h *Header) { h.Count = 1 << 30 }), "cannot hold"},
		"codec that is not":      {with(plainBatch(), func(h *Header) { h.Attributes |= int16(CodecZstd) }), "decompress zstd"},
		"unknown codec":          {with(plainBatch(), func(h *Header) { h.Attributes |= 6 }), "codec 6"},
		"length past the end":    {records(126, 0, 0, 0, 1, 1, 0), "record length 63"},
		"length too small":       {records(10, 0, 0, 0, 1, 1, 0), "record length 5"},
		"negative offset delta":  {records(12, 0, 0, 1, 1, 1, 0), "offset delta -1"},
		"key past the end":       {records(12, 0, 0, 0, 90, 1, 0), "record key"},
		"key length -2":          {records(12, 0, 0, 0, 3, 1, 0), "record key"},
		"value past the end":     {records(12, 0, 0, 0, 1, 90, 0), "record value"},
		"headers past the end":   {records(12, 0, 0, 0, 1, 1, 20), "number of headers"},
		"negative headers":       {records(12, 0, 0, 0, 1, 1, 1), "number of headers"},
		"null header key":        {records(16, 0, 0, 0, 1, 1, 2, 1, 1), "header key is null"},
		"header value past":      {records(16, 0, 0, 0, 1, 1, 2, 0, 8), "header value"},
		"bytes after headers":    {records(14, 0, 0, 0, 1, 1, 0, 0), "follow the last header"},
		"endless varint":         {records(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "record length"},
		"wrapper of garbage":     {legacyEntry(1, int8(CodecGzip), 9, 0, nil, []byte("no gzip")), "decompress gzip"},
		"wrapper of nothing":     {wrap(nil), "wraps nothing"},
		"wrapper cut off":        {wrap(slices.Concat(inner, second[:len(second)-2])), "cut off"},
		"wrapper in a wrapper":   {wrap(wrap(inner)), "compressed within"},
		"magic 0 in magic 1":     {wrap(legacyEntry(0, 0, 0, 0, nil, nil)), "magic 0 inside magic 1"},
		"batch in magic 1":       {wrap(plainBatch()), "magic 2 inside magic 1"},
		"inner checksum":         {wrap(innerDamaged), "checksum"},
		"inner order":            {wrap(slices.Concat(second, inner)), "out of order"},
		"inner offset too large": {wrap(legacyEntry(1, 0, 50, someTime, nil, nil)), ""},
		"inner garbage":          {wrap(make([]byte, 40)), "wrapped entry 0"},
		"legacy key too long":    {legacyLength(0x7f), "key"},
		"legacy key of -2":       {legacyLength(0xff), "key"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Records(view(t, c.batch))
			if c.says == "" {
				if err != nil || got[0].Offset != 9 { // a lone record has its wrapper's offset
					t.Fatalf("got %v, %v", got, err)
				}
				return
			}
			if err == nil {
				t.Fatal("decoded")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if kafka.ClassOf(err) != kafka.ClassData {
				t.Errorf("class %v", kafka.ClassOf(err))
			}
			if errors.Is(err, ErrChecksum) != (c.says == "checksum") {
				t.Errorf("ErrChecksum in %q", err)
			}
		})
	}
}

// legacyLength is an entry whose key claims another length.
func legacyLength(first byte) []byte {
	entry := legacyEntry(1, 0, 3, someTime, []byte("key"), nil)
	entry[posLegacyTimestamp+legacyTimestampSize] = first
	fixLegacyChecksum(entry)
	return entry
}
