package recordbatch

import (
	"errors"
	"fmt"

	"heliograph/internal/kafka"
)

// RewriteOptions say what is wanted of a rewritten batch; see [RewriteFor].
type RewriteOptions struct {
	// From is the first wanted source offset; records before it are left out.
	From int64
	// AppendTime gives every record of a LogAppendTime batch the append time
	// that readers of the source see, as a CreateTime batch. Without it the batch
	// stays one of LogAppendTime until [Seal] clears that bit.
	AppendTime bool
	// MaxBytes splits what is larger; 0 means no limit. A single record that is
	// larger still comes out, alone in its batch, for the target to refuse.
	MaxBytes int32
	// Codec compresses anew; nil keeps the batch's codec.
	Codec *Codec
}

// Rewritten is one batch that a broker takes once it is sealed: base offset 0,
// no holes, no producer. Its bytes are its own.
type Rewritten struct {
	Bytes []byte
	Count int32
	// Runs map its records to source offsets, in order, without gap at Index.
	Runs []Run
}

// Run is Count records that are contiguous at the source from offset Source on,
// and in the batch from Index on.
type Run struct {
	Source int64
	Index  int32
	Count  int32
}

// Rewrite renumbers the records of a batch of any magic and codec, leaves out
// those before o.From and splits what is too large. The order, times, keys,
// values and headers of the records stay. Records of magic 2 are moved as bytes;
// only the old formats are decoded.
//
// The checksum is verified first: the new bytes get one of their own, which must
// not bless damage. The result is empty if no record is wanted.
func Rewrite(b *Batch, o RewriteOptions) ([]Rewritten, error) {
	if err := b.VerifyChecksum(); err != nil {
		return nil, err
	}
	if b.Control() {
		return nil, &kafka.Error{
			Op: "rewrite record batch", Subject: fmt.Sprintf("at offset %d", b.BaseOffset),
			Class: kafka.ClassBug, Err: errors.New("a control batch holds no data"),
		}
	}
	w := rewriter{codec: b.Codec(), maxBytes: int(o.MaxBytes)}
	if o.Codec != nil {
		w.codec = *o.Codec
	}
	memory := getScratch()
	defer memory.put()
	s, err := w.open(b, memory)
	if err == nil {
		s, err = s.from(o.From - w.header.BaseOffset)
	}
	if err == nil {
		w.appendTime = o.AppendTime && w.header.LogAppendTime()
		err = w.add(s)
	}
	if err != nil {
		return nil, corrupt("rewrite record batch", b.BaseOffset, err)
	}
	return w.out, nil
}

// rewriter makes new batches of the records of one.
type rewriter struct {
	header     Header // of the source; a made-up one for the old formats
	codec      Codec  // of the results
	appendTime bool   // every record's time becomes header.MaxTimestamp
	maxBytes   int
	out        []Rewritten
}

// open gives the source's records as magic 2 bytes, in memory where they are
// not usable in place.
func (w *rewriter) open(b *Batch, memory *scratch) (span, error) {
	var err error
	if b.Magic < 2 {
		records, err := legacyRecords(b)
		if err != nil {
			return span{}, err
		}
		memory.b, w.header, err = appendRecords(memory.b, records, BuildOptions{KeepOffsets: true})
		return span{memory.b, w.header.Count}, err
	}
	w.header = b.Header
	if b.Codec() == CodecNone {
		return span{b.Bytes[HeaderSize:], b.Count}, nil
	}
	memory.b, err = decompress(memory.b, b.Codec(), b.Bytes[HeaderSize:], b.Magic, maxDecompressed)
	return span{memory.b, b.Count}, err
}

// add appends s as one batch, or as two halves if it comes out too large.
func (w *rewriter) add(s span) error {
	if s.count == 0 {
		if len(s.records) != 0 {
			return fmt.Errorf("%d bytes follow the last record", len(s.records))
		}
		return nil
	}
	r, err := w.encode(s)
	if err != nil {
		return err
	}
	if w.maxBytes == 0 || len(r.Bytes) <= w.maxBytes || s.count == 1 {
		w.out = append(w.out, r)
		return nil
	}
	first, second, err := s.halve()
	if err != nil {
		return err
	}
	if err := w.add(first); err != nil {
		return err
	}
	return w.add(second)
}

// encode makes one batch of s.
func (w *rewriter) encode(s span) (Rewritten, error) {
	h := w.header.dense()
	h.Count, h.LastOffsetDelta = s.count, s.count-1
	h.Attributes |= int16(w.codec)
	if w.appendTime {
		h.Attributes &^= attrLogAppendTime
		h.FirstTimestamp = h.MaxTimestamp
	}
	dst := make([]byte, HeaderSize, HeaderSize+len(s.records))
	if w.codec == CodecNone {
		dst, runs, err := w.renumber(dst, &h, s)
		return Rewritten{Bytes: h.close(dst), Count: s.count, Runs: runs}, err
	}
	memory := getScratch()
	defer memory.put()
	var (
		runs []Run
		err  error
	)
	if memory.b, runs, err = w.renumber(memory.b, &h, s); err != nil {
		return Rewritten{}, err
	}
	if dst, err = compress(dst, w.codec, memory.b); err != nil {
		return Rewritten{}, err
	}
	return Rewritten{Bytes: h.close(dst), Count: s.count, Runs: runs}, nil
}

// renumber appends the records of s with dense offsets, sets the header's
// largest time, and tells where the records came from.
func (w *rewriter) renumber(dst []byte, h *Header, s span) ([]byte, []Run, error) {
	var (
		runs    []Run
		rest    = s.records
		latest  int64
		created = !h.LogAppendTime() && !w.appendTime
	)
	for i := range s.count {
		f, after, err := nextFrame(rest)
		if err != nil {
			return dst, nil, fmt.Errorf("record %d of %d: %w", i, s.count, err)
		}
		rest = after
		source := w.header.BaseOffset + int64(f.offsetDelta)
		if runs, err = appendRun(runs, source, i, w.header.LastOffset()); err != nil {
			return dst, nil, err
		}
		if t := h.FirstTimestamp + f.timeDelta; i == 0 || t > latest {
			latest = t
		}
		if w.appendTime {
			dst = f.appendAt(dst, i, 0)
		} else {
			dst = f.appendAs(dst, i)
		}
	}
	if len(rest) != 0 {
		return dst, nil, fmt.Errorf("%d bytes follow the last of %d records", len(rest), s.count)
	}
	if created {
		h.MaxTimestamp = latest
	}
	return dst, runs, nil
}

// appendRun notes that the record at index comes from that source offset.
func appendRun(runs []Run, source int64, index int32, last int64) ([]Run, error) {
	if source > last {
		return nil, fmt.Errorf("record %d has offset %d, past the batch's last, %d", index, source, last)
	}
	if len(runs) > 0 {
		r := &runs[len(runs)-1]
		next := r.Source + int64(r.Count)
		if source < next {
			return nil, fmt.Errorf("record %d has offset %d, after %d", index, source, next-1)
		}
		if source == next {
			r.Count++
			return runs, nil
		}
	}
	return append(runs, Run{Source: source, Index: index, Count: 1}), nil
}

// span is a stretch of whole magic 2 records.
type span struct {
	records []byte
	count   int32
}

// from leaves out the records before an offset delta.
func (s span) from(delta int64) (span, error) {
	for s.count > 0 && delta > 0 {
		f, rest, err := nextFrame(s.records)
		if err != nil {
			return span{}, fmt.Errorf("first of %d records: %w", s.count, err)
		}
		if int64(f.offsetDelta) >= delta {
			break
		}
		s = span{rest, s.count - 1}
	}
	return s, nil
}

// halve cuts a span of at least two records near the middle of its bytes.
func (s span) halve() (first, second span, err error) {
	second = s
	for first.count == 0 || second.count > 1 && len(second.records) > len(s.records)/2 {
		_, rest, err := nextFrame(second.records)
		if err != nil {
			return span{}, span{}, err
		}
		first.count++
		second = span{rest, second.count - 1}
	}
	first.records = s.records[:len(s.records)-len(second.records)]
	return first, second, nil
}

// dense is the header of a batch made from this one's records: what concerns
// the source's log and producer is gone, times stay, the codec is not set.
func (h *Header) dense() Header {
	return Header{
		LeaderEpoch:    noLeaderEpoch,
		Magic:          2,
		Attributes:     h.Attributes & attrLogAppendTime,
		FirstTimestamp: h.FirstTimestamp,
		MaxTimestamp:   h.MaxTimestamp,
		ProducerID:     noProducerID,
		ProducerEpoch:  noProducerEpoch,
		BaseSequence:   noSequence,
	}
}

// close writes the header over the first HeaderSize bytes of a batch that is
// otherwise complete, with length and checksum.
func (h *Header) close(batch []byte) []byte {
	h.Length = int32(len(batch) - lengthEnd)
	h.AppendTo(batch[:0])
	SetChecksum(batch)
	return batch
}
