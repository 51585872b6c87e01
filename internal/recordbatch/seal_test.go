package recordbatch

import (
	"bytes"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// permitted are the bytes that Seal may change; see the table in doc.go.
func permitted(pos int) bool {
	switch {
	case pos < posLength, pos >= posLeaderEpoch && pos < posMagic:
		return true
	case pos >= posCRC && pos < posLastOffsetDelta:
		return true
	case pos >= posProducerID && pos < posCount:
		return true
	}
	return false
}

func checkSealed(t fatal, before, after []byte, s Stamp) {
	for i := range before {
		if before[i] != after[i] && !permitted(i) {
			t.Fatalf("byte %d went from %02x to %02x", i, before[i], after[i])
		}
	}
	var was, is Header
	was.read(before)
	is.read(after)
	if is.BaseOffset != 0 || is.LeaderEpoch != -1 {
		t.Fatalf("base offset %d, leader epoch %d", is.BaseOffset, is.LeaderEpoch)
	}
	if is.ProducerID != s.ProducerID || is.ProducerEpoch != s.Epoch || is.BaseSequence != s.Sequence {
		t.Fatalf("producer fields %d %d %d, want %+v", is.ProducerID, is.ProducerEpoch, is.BaseSequence, s)
	}
	if is.Transactional() != s.Transactional || is.LogAppendTime() || is.DeleteHorizon() {
		t.Fatalf("attributes %#x", is.Attributes)
	}
	const free = attrTransactional | attrLogAppendTime | attrDeleteHorizon
	if (was.Attributes^is.Attributes)&^free != 0 {
		t.Fatalf("attributes went from %#x to %#x", was.Attributes, is.Attributes)
	}
}

func TestSealChangesOnlyWhatItMay(t *testing.T) {
	for name, batch := range shapes() {
		if batch[posMagic] != 2 || name == "damaged" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := Stamp{ProducerID: 7001, Epoch: 2, Sequence: 99, Transactional: true}
			got := slices.Clone(batch)
			Seal(got, s)
			checkSealed(t, batch, got, s)
			if err := view(t, got).VerifyChecksum(); err != nil {
				t.Error(err)
			}
		})
	}
}

func drawStamp(t *rapid.T) Stamp {
	return Stamp{
		ProducerID: rapid.Int64().Draw(t, "producer"), Epoch: rapid.Int16().Draw(t, "epoch"),
		Sequence: rapid.Int32().Draw(t, "sequence"), Transactional: rapid.Bool().Draw(t, "transactional"),
	}
}

func TestSealMovesTheChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := built(drawRecords(t, true), BuildOptions{Codec: drawCodec(t)})
		batch = with(batch, func(h *Header) {
			h.Attributes |= int16(rapid.IntRange(0, 15).Draw(t, "bits")) << 3
			h.ProducerID = rapid.Int64().Draw(t, "old producer")
			h.LeaderEpoch = rapid.Int32().Draw(t, "old epoch")
		})
		once, s := slices.Clone(batch), drawStamp(t)
		Seal(once, s)
		checkSealed(t, batch, once, s)

		recomputed := slices.Clone(once)
		SetChecksum(recomputed)
		if !bytes.Equal(once, recomputed) {
			t.Fatalf("moved %x, recomputed %x", once[posCRC:posAttributes], recomputed[posCRC:posAttributes])
		}

		again := slices.Clone(batch)
		Seal(again, drawStamp(t))
		Seal(again, s)
		if !bytes.Equal(once, again) {
			t.Fatalf("sealing twice is not sealing once")
		}
	})
}

func TestSealDoesNotBlessDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := built(drawRecords(t, false), BuildOptions{})
		bit := rapid.IntRange(HeaderSize*8, len(batch)*8-1).Draw(t, "bit")
		batch[bit/8] ^= 1 << (bit % 8)
		Seal(batch, drawStamp(t))
		b, err := Parse(batch)
		if err != nil {
			t.Fatalf("parse: %v", err)
		}
		if err := b.VerifyChecksum(); !errors.Is(err, ErrChecksum) {
			t.Fatalf("a flipped bit passes: %v", err)
		}
	})
}

func TestMoveChecksumOverLongTails(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 255, 256, 4095, 65_537, 3 << 20} {
		message := bytes.Repeat([]byte{0x5a}, 36+n)
		old := crc32.Checksum(message, castagnoli)
		before := slices.Clone(message[:36])
		copy(message, "other bytes at the start")
		got := moveChecksum(old, before, message[:36], n)
		if want := crc32.Checksum(message, castagnoli); got != want {
			t.Errorf("tail of %d bytes: moved %08x, recomputed %08x", n, got, want)
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	answer := slices.Concat(plainBatch(), compactedBatch(), appendTimeBatch(),
		legacyEntry(1, 0, 60, someTime, nil, []byte("v")))
	sealed := plainBatch()
	var filter AbortFilter
	allocations := testing.AllocsPerRun(200, func() {
		s := NewScanner(answer)
		var b Batch
		filter.Reset(nil)
		for s.Next(&b) {
			if filter.Aborted(&b) || b.VerifyChecksum() != nil {
				t.Error("a good batch was refused")
			}
			Judge(&b, 0, Target{MaxMessageBytes: 1 << 20})
		}
		Seal(sealed, Stamp{ProducerID: 4, Sequence: 8})
	})
	if allocations != 0 {
		t.Errorf("%v allocations for scan, filter, checksum, judge and seal", allocations)
	}
}
