package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

func TestHeaderRoundTripsAllFields(t *testing.T) {
	want := Header{
		BaseOffset: 0x0102030405060708, Length: 0x11121314, LeaderEpoch: 0x21222324, Magic: 2, CRC: 0xf1f2f3f4,
		Attributes: 0x3132, LastOffsetDelta: 0x41424344, FirstTimestamp: 0x5152535455565758, MaxTimestamp: -2,
		ProducerID: 0x6162636465666768, ProducerEpoch: 0x7172, BaseSequence: -3, Count: 0x01020304,
	}
	p := want.AppendTo(nil)
	if len(p) != HeaderSize {
		t.Fatalf("appended %d bytes", len(p))
	}
	got, err := ParseHeader(p)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "header", got, want)
}

func TestParseHeaderRefusesWhatIsNoBatch(t *testing.T) {
	if _, err := ParseHeader(plainBatch()[:HeaderSize-1]); err == nil {
		t.Error("60 bytes were taken for a header")
	}
	if _, err := ParseHeader(make([]byte, HeaderSize)); err == nil {
		t.Error("magic 0 was taken for a header")
	}
}

func TestScannerWalksAllFormats(t *testing.T) {
	parts := [][]byte{
		legacyEntry(0, 0, 10, 0, nil, []byte("v0")),
		legacyEntry(1, 0, 11, someTime, []byte("k"), []byte("v1")),
		plainBatch(),
		emptyBatch(),
	}
	s := NewScanner(slices.Concat(parts...))
	var b Batch
	for i, want := range parts {
		if !s.Next(&b) {
			t.Fatalf("batch %d is missing: %v", i, s.Err())
		}
		if string(b.Bytes) != string(want) {
			t.Errorf("batch %d: got % x, want % x", i, b.Bytes, want)
		}
		if err := b.VerifyChecksum(); err != nil {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	if s.Next(&b) || s.Err() != nil {
		t.Errorf("after the end: %v", s.Err())
	}
}

func TestScannerEndsSilentlyAtEveryCut(t *testing.T) {
	first, second := plainBatch(), appendTimeBatch()
	all := slices.Concat(first, second)
	for cut := range all {
		s := NewScanner(all[:cut])
		var b Batch
		n := 0
		for s.Next(&b) {
			n++
		}
		want := 0
		if cut >= len(first) {
			want = 1
		}
		if n != want || s.Err() != nil {
			t.Fatalf("cut at %d: %d batches, want %d, err %v", cut, n, want, s.Err())
		}
	}
}

func TestScannerNamesWhereGarbageIs(t *testing.T) {
	edit := func(pos int, p ...byte) []byte {
		batch := plainBatch()
		copy(batch[pos:], p)
		return batch
	}
	for name, bad := range map[string][]byte{
		"magic":        edit(posMagic, 3),
		"length":       edit(posLength, 0, 0, 0, 48),
		"negative":     edit(posLength, 0xff, 0xff, 0xff, 0xff),
		"short legacy": edit(posLength, 0, 0, 0, 21, 0, 0, 0, 0, 1),
		"base offset":  edit(posBaseOffset, 0x80),
		"huge offset":  edit(posBaseOffset, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"delta":        edit(posLastOffsetDelta, 0xff),
		"count":        edit(posCount, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			good := plainBatch()
			s := NewScanner(slices.Concat(good, bad))
			var b Batch
			if !s.Next(&b) || s.Next(&b) || s.Next(&b) {
				t.Fatal("the scanner did not stop at the second batch")
			}
			if kafka.ClassOf(s.Err()) != kafka.ClassData {
				t.Errorf("class %v", kafka.ClassOf(s.Err()))
			}
			for _, part := range []string{"at offset 44", fmt.Sprint("byte ", len(good), " ")} {
				if !strings.Contains(s.Err().Error(), part) {
					t.Errorf("%q does not say %q", s.Err(), part)
				}
			}
		})
	}
}

func TestParseWantsExactlyOneBatch(t *testing.T) {
	batch := plainBatch()
	if _, err := Parse(batch); err != nil {
		t.Error(err)
	}
	for name, p := range map[string][]byte{
		"nothing":  nil,
		"cut off":  batch[:len(batch)-1],
		"followed": append(slices.Clone(batch), 0),
		"garbage":  make([]byte, 100),
	} {
		if _, err := Parse(p); kafka.CodeOf(err) != kafka.CodeCorruptMessage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifyChecksumSeesEveryFlippedBit(t *testing.T) {
	for _, batch := range [][]byte{plainBatch(), legacyEntry(1, 0, 3, someTime, nil, []byte("v"))} {
		from := posAttributes
		if batch[posMagic] == 1 {
			from = posLegacyAttributes
		}
		for bit := from * 8; bit < len(batch)*8; bit++ {
			p := slices.Clone(batch)
			p[bit/8] ^= 1 << (bit % 8)
			b := Batch{Bytes: p}
			if p[posMagic] == 2 {
				b.read(p)
			} else {
				b.readLegacy(p)
			}
			if err := b.VerifyChecksum(); !errors.Is(err, ErrChecksum) {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	}
}

func TestScannerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var ends []int
		for range rapid.IntRange(0, 5).Draw(t, "batches") {
			all = append(all, built(drawRecords(t, true), BuildOptions{Codec: drawCodec(t)})...)
			ends = append(ends, len(all))
		}
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		s := NewScanner(all[:cut])
		var b Batch
		n := 0
		for s.Next(&b) {
			n++
		}
		want := 0
		for want < len(ends) && ends[want] <= cut {
			want++
		}
		if n != want || s.Err() != nil {
			t.Fatalf("%d batches, want %d, err %v", n, want, s.Err())
		}
	})
}

func TestLegacyHeaderShowsWhatTheFormatHas(t *testing.T) {
	got := view(t, legacyEntry(1, attrLogAppendTime, 12, someTime, nil, []byte("v"))).Header
	if !got.LogAppendTime() || got.MaxTimestamp != someTime || got.Count != 1 || got.LastOffset() != 12 || got.ProducerID != -1 {
		t.Errorf("magic 1: %+v", got)
	}
	got = view(t, legacyEntry(0, 0x30, 12, 0, nil, []byte("v"))).Header
	if got.Control() || got.Transactional() || got.MaxTimestamp != kafka.TimestampNone {
		t.Errorf("magic 0: %+v", got)
	}
	got = view(t, legacyWrapper(1, CodecGzip, someRecords())).Header
	if got.Codec() != CodecGzip || got.Count != 0 || got.NextOffset() != 44 {
		t.Errorf("wrapper: %+v", got)
	}
	if binary.BigEndian.Uint32(legacyEntry(0, 0, 0, 0, nil, nil)[posLength:]) != minLength0 {
		t.Error("the least length of magic 0 is wrong")
	}
}
