package recordbatch

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"unsafe"

	"heliograph/internal/kafka"
)

// The seeds are the shapes, in testdata/fuzz.

// FuzzScan: no bytes make the walk panic, leave the given bytes, or stand still.
func FuzzScan(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewScanner(data)
		var b Batch
		var filter AbortFilter
		filter.Reset([]kafka.AbortedTxn{{ProducerID: 9, FirstOffset: 3}})
		pos := 0
		for s.Next(&b) {
			if len(b.Bytes) == 0 || cap(b.Bytes) != len(b.Bytes) || unsafe.SliceData(b.Bytes) != &data[pos] {
				t.Fatalf("at byte %d: a view of %d bytes, capacity %d, elsewhere", pos, len(b.Bytes), cap(b.Bytes))
			}
			pos += len(b.Bytes)
			if b.BaseOffset < 0 || b.NextOffset() <= b.BaseOffset || b.Count < 0 {
				t.Fatalf("at byte %d: impossible header %+v", pos, b.Header)
			}
			filter.Aborted(&b)
			Judge(&b, 40, Target{MaxMessageBytes: 100})
			Control(&b)
			_ = b.VerifyChecksum()
		}
		if s.Next(&b) {
			t.Fatal("the walk went on after its end")
		}
	})
}

// FuzzHeader: parsing and appending are each other's inverse.
func FuzzHeader(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseHeader(data)
		if err != nil {
			return
		}
		if got := h.AppendTo(nil); !bytes.Equal(got, data[:HeaderSize]) {
			t.Fatalf("parsed  % x\nappended % x", data[:HeaderSize], got)
		}
	})
}

// FuzzRestamp: Seal keeps a right checksum right and a wrong one wrong, and
// changes nothing but what it may.
func FuzzRestamp(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewScanner(data)
		var b Batch
		for s.Next(&b) {
			if b.Magic != 2 {
				continue
			}
			was := b.VerifyChecksum() == nil
			sealed := slices.Clone(b.Bytes)
			stamp := Stamp{ProducerID: 1 << 40, Epoch: 7, Sequence: 1 << 20, Transactional: len(data)%2 == 0}
			Seal(sealed, stamp)
			checkSealed(t, b.Bytes, sealed, stamp)
			after, err := Parse(sealed)
			if err != nil {
				t.Fatalf("sealed: %v", err)
			}
			if is := after.VerifyChecksum() == nil; is != was {
				t.Fatalf("checksum right before: %v, after: %v", was, is)
			}
		}
	})
}

// timeBeyondClient is a time that the client library's nanoseconds cannot hold.
func timeBeyondClient(r kafka.Record) bool {
	const most = math.MaxInt64 / 1_000_000
	return r.Timestamp > most || r.Timestamp < -most
}

// FuzzRewrite: whatever comes out is acceptable to a broker if the source could
// be decoded at all, and holds the same records as the client library sees.
func FuzzRewrite(f *testing.F) {
	for codec := CodecGzip; codec <= CodecZstd; codec++ { // not in testdata: their bytes change with the libraries
		f.Add(built(someRecords(), BuildOptions{Codec: codec}))
		f.Add(legacyWrapper(0, codec, legacyRecordsOf(0)))
		f.Add(legacyWrapper(1, codec, legacyRecordsOf(1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewScanner(data)
		var b Batch
		for s.Next(&b) {
			if b.Magic == 2 { // let damage get past the checksum
				SetChecksum(b.Bytes)
				b.read(b.Bytes)
			} else {
				fixLegacyChecksum(b.Bytes)
				b.readLegacy(b.Bytes)
			}
			o := RewriteOptions{From: b.BaseOffset + int64(len(data)%3), MaxBytes: int32(len(data) % 128)}
			out, err := Rewrite(&b, o)
			records, decodeErr := Records(&b)
			Annotate(&b)
			if err != nil || decodeErr != nil {
				continue
			}
			if b.Magic == 2 && b.Count > 0 && !slices.ContainsFunc(records, timeBeyondClient) {
				wantSame(t, "decoding", records, viaKgo(t, b.Bytes))
			}
			checkRewritten(t, out, after(records, o.From), o)
		}
	})
}
