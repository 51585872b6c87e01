package recordbatch

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

// checkRewritten holds a rewrite against the records that were wanted.
func checkRewritten(t fatal, out []Rewritten, want []kafka.Record, o RewriteOptions) {
	t.Helper()
	got := []kafka.Record{}
	for _, r := range out {
		if code := Validate(r.Bytes, Target{}, 0); code != kafka.CodeNone {
			t.Fatalf("a broker says %s", code)
		}
		if o.MaxBytes > 0 && len(r.Bytes) > int(o.MaxBytes) && r.Count > 1 {
			t.Fatalf("%d records in %d bytes, above %d", r.Count, len(r.Bytes), o.MaxBytes)
		}
		records := mustRecords(t, r.Bytes)
		if len(records) != int(r.Count) {
			t.Fatalf("count is %d, records are %d", r.Count, len(records))
		}
		latest := records[0].Timestamp
		index := int32(0)
		for n, run := range r.Runs {
			if run.Index != index || run.Count < 1 {
				t.Fatalf("run %d is %+v, want index %d", n, run, index)
			}
			if n > 0 && run.Source == r.Runs[n-1].Source+int64(r.Runs[n-1].Count) {
				t.Fatalf("run %d continues the one before it: %+v", n, r.Runs)
			}
			for k := range run.Count {
				records[index+k].Offset = run.Source + int64(k)
				latest = max(latest, records[index+k].Timestamp)
			}
			index += run.Count
		}
		if index != r.Count {
			t.Fatalf("the runs hold %d records of %d", index, r.Count)
		}
		var h Header
		if h.read(r.Bytes); h.MaxTimestamp != latest {
			t.Fatalf("max timestamp %d, the latest record has %d", h.MaxTimestamp, latest)
		}
		if h.BaseOffset != 0 || h.LeaderEpoch != -1 || h.ProducerID != -1 || h.Transactional() || h.DeleteHorizon() {
			t.Fatalf("the source shows in the header: %+v", h)
		}
		got = append(got, records...)
	}
	wantSame(t, "records", got, want)
}

func after(records []kafka.Record, from int64) []kafka.Record {
	kept := []kafka.Record{}
	for _, r := range records {
		if r.Offset >= from {
			kept = append(kept, r)
		}
	}
	return kept
}

func TestRewriteKeepsEveryRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t, true)
		build := BuildOptions{Codec: drawCodec(t), LogAppendTime: rapid.Bool().Draw(t, "append time"), MaxTimestamp: someTime + 123}
		batch := built(records, build)
		batch = with(batch, func(h *Header) {
			h.LastOffsetDelta += rapid.Int32Range(0, 5).Draw(t, "compacted tail")
			h.Attributes |= int16(rapid.SampledFrom([]int{0, attrTransactional, attrDeleteHorizon}).Draw(t, "bits"))
			h.ProducerID, h.LeaderEpoch = 55, 6
		})
		b, err := Parse(batch)
		if err != nil {
			t.Fatalf("parse: %v", err)
		}
		o := RewriteOptions{
			From:       rapid.Int64Range(b.BaseOffset-3, b.NextOffset()+3).Draw(t, "from"),
			AppendTime: rapid.Bool().Draw(t, "keep append time"),
			MaxBytes:   rapid.SampledFrom([]int32{0, 1, 200, 1000, 5000}).Draw(t, "max bytes"),
		}
		if rapid.Bool().Draw(t, "recompress") {
			codec := drawCodec(t)
			o.Codec = &codec
		}
		before := slices.Clone(batch)
		out, err := Rewrite(&b, o)
		if err != nil {
			t.Fatalf("rewrite: %v", err)
		}
		if !bytes.Equal(before, batch) {
			t.Fatalf("the source was changed")
		}
		checkRewritten(t, out, after(viaKgo(t, batch), o.From), o)
		for _, r := range out {
			var h Header
			h.read(r.Bytes)
			wantCodec := build.Codec
			if o.Codec != nil {
				wantCodec = *o.Codec
			}
			if h.Codec() != wantCodec || h.LogAppendTime() != (build.LogAppendTime && !o.AppendTime) {
				t.Fatalf("attributes %#x", h.Attributes)
			}
		}
	})
}

func TestRewriteOfOldFormats(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		want := legacyRecordsOf(magic)
		for codec := CodecNone; codec <= CodecZstd; codec++ {
			entry := legacyEntry(magic, 0, 40, want[0].Timestamp, want[0].Key, want[0].Value)
			source := want[:1]
			if codec != CodecNone {
				entry, source = legacyWrapper(magic, codec, want), want
			}
			for from := int64(39); from <= 48; from++ {
				o := RewriteOptions{From: from, MaxBytes: 90}
				out, err := Rewrite(view(t, entry), o)
				if err != nil {
					t.Fatalf("magic %d, %s: %v", magic, codec, err)
				}
				checkRewritten(t, out, after(source, from), o)
				for _, r := range out {
					if got := view(t, r.Bytes).Codec(); got != codec {
						t.Errorf("magic %d: %s became %s", magic, codec, got)
					}
				}
			}
		}
	}
}

func TestRewriteCutsAtEveryOffset(t *testing.T) {
	for from := int64(39); from <= 45; from++ {
		out, err := Rewrite(view(t, plainBatch()), RewriteOptions{From: from})
		if err != nil {
			t.Fatal(err)
		}
		checkRewritten(t, out, after(someRecords(), from), RewriteOptions{})
	}
}

func TestRewriteMapsHoles(t *testing.T) {
	records := someRecords()
	records[2].Offset, records[3].Offset = 50, 51
	out, err := Rewrite(view(t, built(records, BuildOptions{})), RewriteOptions{From: 41})
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "runs", out[0].Runs, []Run{{Source: 41, Index: 0, Count: 1}, {Source: 50, Index: 1, Count: 2}})
}

func TestRewriteOfEmptyBatchIsEmpty(t *testing.T) {
	out, err := Rewrite(view(t, emptyBatch()), RewriteOptions{})
	if err != nil || len(out) != 0 {
		t.Errorf("got %v, %v", out, err)
	}
}

func TestRewriteLeavesARecordThatIsTooLarge(t *testing.T) {
	records := someRecords()
	records[1].Value = make([]byte, 5000)
	out, err := Rewrite(view(t, built(records, BuildOptions{})), RewriteOptions{MaxBytes: 300})
	if err != nil {
		t.Fatal(err)
	}
	large := 0
	for _, r := range out {
		if len(r.Bytes) > 300 {
			large++
			if r.Count != 1 || r.Runs[0].Source != 41 {
				t.Errorf("the large batch has %d records from %d", r.Count, r.Runs[0].Source)
			}
		}
	}
	if large != 1 {
		t.Errorf("%d batches are too large, want 1", large)
	}
	checkRewritten(t, out, records, RewriteOptions{MaxBytes: 300})
}

func TestRewriteRefusesDamage(t *testing.T) {
	backwards := func() []byte {
		batch := plainBatch()
		f, rest, err := nextFrame(batch[HeaderSize:])
		if err != nil {
			t.Fatal(err)
		}
		return with(append(append(batch[:HeaderSize:HeaderSize], rest...), f.whole...), func(*Header) {})
	}
	for name, batch := range map[string][]byte{
		"too few records":  with(plainBatch(), func(h *Header) { h.Count = 5 }),
		"too many records": with(plainBatch(), func(h *Header) { h.Count = 3 }),
		"none, but bytes":  with(plainBatch(), func(h *Header) { h.Count = 0 }),
		"order":            backwards(),
		"past the last":    with(plainBatch(), func(h *Header) { h.LastOffsetDelta = 2 }),
		"no such codec":    with(plainBatch(), func(h *Header) { h.Attributes |= 7 }),
		"not compressed":   with(plainBatch(), func(h *Header) { h.Attributes |= int16(CodecLz4) }),
		"old format":       legacyLength(0x7f),
	} {
		out, err := Rewrite(view(t, batch), RewriteOptions{})
		if kafka.CodeOf(err) != kafka.CodeCorruptMessage || errors.Is(err, ErrChecksum) {
			t.Errorf("%s: %d batches, %v", name, len(out), err)
		}
	}
	if _, err := Rewrite(view(t, shapes()["damaged"]), RewriteOptions{}); !errors.Is(err, ErrChecksum) {
		t.Errorf("checksum: %v", err)
	}
	if _, err := Rewrite(view(t, markerBatch(1, 2, ControlAbort)), RewriteOptions{}); kafka.ClassOf(err) != kafka.ClassBug {
		t.Errorf("marker: %v", err)
	}
	unknown := Codec(7)
	if _, err := Rewrite(view(t, plainBatch()), RewriteOptions{Codec: &unknown}); err == nil {
		t.Error("a codec that is not was written")
	}
}
