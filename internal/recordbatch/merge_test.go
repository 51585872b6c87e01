package recordbatch

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

func TestMergeIsConcatenation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		codec := drawCodec(t)
		var batches [][]byte
		var want []kafka.Record
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			records := drawRecords(t, false)
			batch, err := Build(records, BuildOptions{Codec: codec})
			if err != nil {
				t.Fatalf("build: %v", err)
			}
			Seal(batch, drawStamp(t))
			batches = append(batches, batch)
			want = append(want, records...)
		}
		prefix := []byte("kept")
		merged, err := Merge(slices.Clone(prefix), batches)
		if err != nil || !bytes.HasPrefix(merged, prefix) {
			t.Fatalf("merge: %v", err)
		}
		merged = merged[len(prefix):]
		if code := Validate(merged, Target{}, 0); code != kafka.CodeNone {
			t.Fatalf("a broker says %s", code)
		}
		var h Header
		h.read(merged)
		if h.ProducerID != -1 || h.Transactional() || h.Codec() != codec {
			t.Fatalf("header %+v", h)
		}
		wantSame(t, "merged", mustRecords(t, merged), renumbered(want))
		wantSame(t, "merged, client library", viaKgo(t, merged), renumbered(want))
	})
}

func TestMergeOfAppendTimesHasTheLatest(t *testing.T) {
	early := built(renumbered(someRecords()), BuildOptions{LogAppendTime: true, MaxTimestamp: someTime + 1})
	late := built(renumbered(someRecords()), BuildOptions{LogAppendTime: true, MaxTimestamp: someTime + 2})
	merged, err := Merge(nil, [][]byte{late, early})
	if err != nil {
		t.Fatal(err)
	}
	b := view(t, merged)
	if !b.LogAppendTime() || b.MaxTimestamp != someTime+2 {
		t.Errorf("append time %v, max timestamp %d", b.LogAppendTime(), b.MaxTimestamp)
	}
}

func TestMergeNeverMixes(t *testing.T) {
	dense := func(o BuildOptions) []byte { return built(renumbered(someRecords()), o) }
	plain := dense(BuildOptions{})
	for name, other := range map[string][]byte{
		"codecs":     dense(BuildOptions{Codec: CodecLz4}),
		"times":      dense(BuildOptions{LogAppendTime: true}),
		"holes":      compactedBatch(),
		"nothing":    emptyBatch(),
		"marker":     markerBatch(1, 0, ControlCommit),
		"old format": legacyEntry(1, 0, 0, 0, nil, nil),
	} {
		a, b := view(t, plain), view(t, other)
		if CanMerge(a, b) || CanMerge(b, a) {
			t.Errorf("%s can be merged", name)
		}
		dst := []byte("kept")
		got, err := Merge(dst, [][]byte{plain, other})
		if err == nil || string(got) != "kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if !CanMerge(view(t, plain), view(t, with(plain, func(h *Header) { h.Attributes |= attrTransactional }))) {
		t.Error("the transactional bit, which sealing replaces, keeps batches apart")
	}
}

func TestMergeRefusesDamage(t *testing.T) {
	plain := built(renumbered(someRecords()), BuildOptions{})
	damaged := slices.Clone(plain)
	damaged[len(damaged)-1] ^= 1
	for name, batches := range map[string][][]byte{
		"nothing":  {},
		"cut off":  {plain, plain[:70]},
		"checksum": {plain, damaged},
		"count":    {plain, with(plain, func(h *Header) { h.Count, h.LastOffsetDelta = 5, 4 })},
		"too many": {with(plain, func(h *Header) { h.Count, h.LastOffsetDelta = 3, 2 })},
		"codec":    {with(plain, func(h *Header) { h.Attributes |= int16(CodecSnappy) })},
	} {
		got, err := Merge(nil, batches)
		if err == nil || got != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if errors.Is(err, ErrChecksum) != (name == "checksum") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBuild(t *testing.T) {
	t.Run("numbers from zero", func(t *testing.T) {
		records := someRecords()
		records[3].Offset = 1 << 60
		batch, err := Build(records, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "records", mustRecords(t, batch), renumbered(records))
	})
	for name, c := range map[string]struct {
		records []kafka.Record
		o       BuildOptions
	}{
		"no records":       {nil, BuildOptions{}},
		"offsets fall":     {[]kafka.Record{{Offset: 5}, {Offset: 5}}, BuildOptions{KeepOffsets: true}},
		"offsets too far":  {[]kafka.Record{{Offset: 5}, {Offset: 1 << 40}}, BuildOptions{KeepOffsets: true}},
		"no such codec":    {someRecords(), BuildOptions{Codec: 6}},
		"more than memory": {slices.Repeat([]kafka.Record{{Value: make([]byte, 1<<20)}}, 257), BuildOptions{}},
	} {
		if batch, err := Build(c.records, c.o); err == nil {
			t.Errorf("%s: built %d bytes", name, len(batch))
		}
	}
}
