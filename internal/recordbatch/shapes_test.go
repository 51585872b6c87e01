package recordbatch

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

// The shapes a broker serves, made by hand: kfake makes few of them.

const someTime = 1_700_000_000_000

func someRecords() []kafka.Record {
	return []kafka.Record{
		{Key: []byte("a"), Value: []byte("one"), Timestamp: someTime, Offset: 40},
		{Key: nil, Value: []byte{}, Timestamp: someTime + 5, Offset: 41},
		{Key: []byte{}, Value: nil, Timestamp: someTime - 7, Offset: 42, Headers: []kafka.Header{
			{Key: "trace", Value: []byte{0, 1}},
			{Key: "", Value: nil},
		}},
		{Key: []byte("d"), Value: []byte("four"), Timestamp: someTime + 1, Offset: 43},
	}
}

// built is a batch as it lies in a source's log, with holes where the offsets have them.
func built(records []kafka.Record, o BuildOptions) []byte {
	o.KeepOffsets = true
	batch, err := Build(records, o)
	if err != nil {
		panic(err)
	}
	return batch
}

// with changes a batch's header, and the checksum with it.
func with(batch []byte, change func(h *Header)) []byte {
	batch = slices.Clone(batch)
	var h Header
	h.read(batch)
	change(&h)
	h.AppendTo(batch[:0])
	SetChecksum(batch)
	return batch
}

func view(tb testing.TB, batch []byte) *Batch {
	tb.Helper()
	b, err := Parse(batch)
	if err != nil {
		tb.Fatalf("parse: %v", err)
	}
	return &b
}

func plainBatch() []byte { return built(someRecords(), BuildOptions{}) }

// compactedBatch lost its first, third and last record; its bounds stay.
func compactedBatch() []byte {
	kept := someRecords()[1:2]
	kept[0].Offset = 1 // counted from the base below
	batch := built(append([]kafka.Record{{Offset: 0}}, kept...), BuildOptions{})
	// Cut the record that only served to set the base off again.
	f, _, err := nextFrame(batch[HeaderSize:])
	if err != nil {
		panic(err)
	}
	batch = slices.Delete(batch, HeaderSize, HeaderSize+len(f.whole))
	return with(batch, func(h *Header) {
		h.BaseOffset, h.LastOffsetDelta, h.Count = 40, 3, 1
		h.Length = int32(len(batch) - lengthEnd)
	})
}

func emptyBatch() []byte {
	return with(plainBatch()[:HeaderSize], func(h *Header) {
		h.Count, h.Length = 0, minLength
	})
}

func appendTimeBatch() []byte {
	return built(someRecords(), BuildOptions{LogAppendTime: true, MaxTimestamp: someTime + 9000})
}

func transactionalBatch(producer, base int64, value string) []byte {
	batch := built([]kafka.Record{{Value: []byte(value), Offset: base, Timestamp: someTime}}, BuildOptions{})
	return with(batch, func(h *Header) {
		h.Attributes |= attrTransactional
		h.ProducerID, h.ProducerEpoch, h.BaseSequence = producer, 3, 17
	})
}

func markerBatch(producer, base int64, kind ControlKind) []byte {
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(kind))
	value := []byte{0, 0, 0, 0, 0, 8} // version, coordinator epoch
	batch := built([]kafka.Record{{Key: key, Value: value, Offset: base, Timestamp: someTime}}, BuildOptions{})
	return with(batch, func(h *Header) {
		h.Attributes |= attrTransactional | attrControl
		h.ProducerID, h.ProducerEpoch = producer, 3
	})
}

func horizonBatch() []byte {
	return with(plainBatch(), func(h *Header) { h.Attributes |= attrDeleteHorizon })
}

// legacyEntry is an entry of magic 0 or 1.
func legacyEntry(magic int8, attributes int8, offset, timestamp int64, key, value []byte) []byte {
	be := binary.BigEndian
	body := []byte{byte(magic), byte(attributes)}
	if magic == 1 {
		body = be.AppendUint64(body, uint64(timestamp))
	}
	for _, p := range [][]byte{key, value} {
		if p == nil {
			body = be.AppendUint32(body, 0xffffffff)
			continue
		}
		body = be.AppendUint32(body, uint32(len(p)))
		body = append(body, p...)
	}
	entry := be.AppendUint64(nil, uint64(offset))
	entry = be.AppendUint32(entry, uint32(4+len(body)))
	entry = be.AppendUint32(entry, crc32.ChecksumIEEE(body))
	return append(entry, body...)
}

// legacyWrapper wraps records of magic 0 or 1 as brokers store them: inner
// offsets absolute in magic 0, relative to the first in magic 1.
func legacyWrapper(magic int8, codec Codec, records []kafka.Record) []byte {
	var block []byte
	var base int64
	if magic == 1 {
		base = records[0].Offset
	}
	for _, r := range records {
		block = append(block, legacyEntry(magic, 0, r.Offset-base, r.Timestamp, r.Key, r.Value)...)
	}
	value, err := compress(nil, codec, block)
	if err != nil {
		panic(err)
	}
	if magic == 0 && codec == CodecLz4 {
		breakLz4Header(value)
	}
	last := records[len(records)-1]
	return legacyEntry(magic, int8(codec), last.Offset, last.Timestamp, nil, value)
}

// breakLz4Header sets the descriptor's checksum as Java's client of magic 0 did.
func breakLz4Header(frame []byte) {
	end := lz4MagicSize + 2
	frame[end] = byte(xxh32(frame[:end]) >> 8)
}

// lz4Fixed is a batch of lz4 as some producer once made it: its bytes do not
// change with the library.
func lz4Fixed() []byte {
	const frame = "04224d1860408209000080100000000261027800" + "00000000"
	p, err := hex.DecodeString(frame)
	if err != nil {
		panic(err)
	}
	h := Header{
		BaseOffset: 7, Magic: 2, Attributes: int16(CodecLz4), LeaderEpoch: 4, FirstTimestamp: someTime, MaxTimestamp: someTime,
		ProducerID: noProducerID, ProducerEpoch: noProducerEpoch, BaseSequence: noSequence, Count: 1,
	}
	return h.close(append(make([]byte, HeaderSize), p...))
}

// shapes are the batches that goldens and fuzz seeds are made of.
func shapes() map[string][]byte {
	old := someRecords()
	for i := range old {
		old[i].Headers = nil
	}
	damaged := plainBatch()
	damaged[HeaderSize+8] ^= 0x10
	short := with(plainBatch(), func(h *Header) { h.Count++ })
	return map[string][]byte{
		"plain":          plainBatch(),
		"compacted":      compactedBatch(),
		"empty":          emptyBatch(),
		"append_time":    appendTimeBatch(),
		"transactional":  transactionalBatch(9, 50, "x"),
		"commit_marker":  markerBatch(9, 51, ControlCommit),
		"abort_marker":   markerBatch(9, 51, ControlAbort),
		"delete_horizon": horizonBatch(),
		"lz4":            lz4Fixed(),
		"magic0":         legacyEntry(0, 0, 12, 0, []byte("k"), []byte("v")),
		"magic1":         legacyEntry(1, attrLogAppendTime, 12, someTime, nil, []byte("v")),
		"damaged":        damaged,
		"wrong_count":    short,
	}
}

// viaKgo decodes with the client library: the reference.
func viaKgo(tb fatal, raw []byte, aborted ...kafka.AbortedTxn) []kafka.Record {
	tb.Helper()
	part := kmsg.NewFetchResponseTopicPartition()
	part.RecordBatches = raw
	for _, a := range aborted {
		part.AbortedTransactions = append(part.AbortedTransactions,
			kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a.ProducerID, FirstOffset: a.FirstOffset})
	}
	options := kgo.ProcessFetchPartitionOpts{IsolationLevel: kgo.ReadCommitted()}
	got, _ := kgo.ProcessFetchPartition(options, &part, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		tb.Fatalf("kgo: %v", got.Err)
	}
	records := []kafka.Record{}
	for _, r := range got.Records {
		record := kafka.Record{Key: r.Key, Value: r.Value, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli()}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		records = append(records, record)
	}
	return records
}

// fatal is what *testing.T and *rapid.T share.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustRecords(tb fatal, batch []byte) []kafka.Record {
	tb.Helper()
	b, err := Parse(batch)
	if err != nil {
		tb.Fatalf("parse: %v", err)
	}
	records, err := Records(&b)
	if err != nil {
		tb.Fatalf("records: %v", err)
	}
	return records
}

func wantSame(tb fatal, what string, got, want any) {
	tb.Helper()
	if !reflect.DeepEqual(got, want) { // cmp alone takes seconds for what agrees
		tb.Fatalf("%s differs (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

// drawRecords draws records with rising offsets, with holes if wanted.
func drawRecords(t *rapid.T, holes bool) []kafka.Record {
	data := rapid.Custom(func(t *rapid.T) []byte {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return bytes.Repeat([]byte("abc"), rapid.IntRange(0, 400).Draw(t, "repeats"))
		}
		return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
	})
	n := rapid.IntRange(1, 40).Draw(t, "records")
	records := make([]kafka.Record, n)
	offset := rapid.Int64Range(0, 1<<40).Draw(t, "base")
	for i := range records {
		records[i] = kafka.Record{
			Key: data.Draw(t, "key"), Value: data.Draw(t, "value"), Offset: offset,
			Timestamp: someTime + rapid.Int64Range(-1<<35, 1<<35).Draw(t, "time"),
		}
		for h := range rapid.IntRange(0, 2).Draw(t, "headers") {
			records[i].Headers = append(records[i].Headers, kafka.Header{Key: fmt.Sprint("h", h), Value: data.Draw(t, "header")})
		}
		offset++
		if holes && rapid.IntRange(0, 3).Draw(t, "hole") == 0 {
			offset += rapid.Int64Range(1, 300).Draw(t, "gap")
		}
	}
	return records
}

func drawCodec(t *rapid.T) Codec {
	return Codec(rapid.IntRange(int(CodecNone), int(CodecZstd)).Draw(t, "codec"))
}

func renumbered(records []kafka.Record) []kafka.Record {
	out := slices.Clone(records)
	for i := range out {
		out[i].Offset = int64(i)
	}
	return out
}
