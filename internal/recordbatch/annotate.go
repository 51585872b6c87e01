package recordbatch

import (
	"fmt"
	"strings"
	"time"

	"heliograph/internal/kafka"
)

const (
	annotateWidth = 16 // bytes of a hex row
	annotateText  = 80 // bytes of a key or value that are shown
)

// Annotate explains a batch field by field, then its records, for people. It
// shows damage where it finds it and never fails.
func Annotate(b *Batch) string {
	var a annotator
	if b.Magic < 2 {
		a.legacy(b)
	} else {
		a.header(b)
	}
	a.records(b)
	return a.out.String()
}

// AnnotateHeader is [Annotate] without the records, for data that is not to be shown.
func AnnotateHeader(b *Batch) string {
	a := annotator{headerOnly: true}
	if b.Magic < 2 {
		a.legacy(b)
	} else {
		a.header(b)
	}
	return a.out.String()
}

type annotator struct {
	out        strings.Builder
	headerOnly bool
}

// row writes the bytes p that lie at pos, and what they mean.
func (a *annotator) row(pos int, p []byte, name, meaning string) {
	fmt.Fprintf(&a.out, "%04x  % -*x  %-18s %s\n", pos, annotateHex, p, name, meaning)
}

// annotateHex is the width of the longest field, eight bytes.
const annotateHex = 8*3 - 1

func (a *annotator) header(b *Batch) {
	p := b.Bytes
	field := func(from, to int, name, format string, args ...any) {
		a.row(from, p[from:to], name, fmt.Sprintf(format, args...))
	}
	field(posBaseOffset, posLength, "base offset", "%d, last is %d", b.BaseOffset, b.LastOffset())
	field(posLength, posLeaderEpoch, "length", "%d, with this %d bytes in all", b.Length, len(p))
	field(posLeaderEpoch, posMagic, "leader epoch", "%d", b.LeaderEpoch)
	field(posMagic, posCRC, "magic", "%d", b.Magic)
	field(posCRC, posAttributes, "checksum", "%s", b.checksumMeaning())
	field(posAttributes, posLastOffsetDelta, "attributes", "%s", b.attributesMeaning())
	field(posLastOffsetDelta, posFirstTimestamp, "last offset delta", "%d", b.LastOffsetDelta)
	firstMeans := ""
	if b.DeleteHorizon() {
		firstMeans = ", the delete horizon"
	}
	field(posFirstTimestamp, posMaxTimestamp, "first timestamp", "%s%s", timeMeaning(b.FirstTimestamp), firstMeans)
	field(posMaxTimestamp, posProducerID, "max timestamp", "%s", timeMeaning(b.MaxTimestamp))
	field(posProducerID, posProducerEpoch, "producer id", "%d", b.ProducerID)
	field(posProducerEpoch, posBaseSequence, "producer epoch", "%d", b.ProducerEpoch)
	field(posBaseSequence, posCount, "base sequence", "%d", b.BaseSequence)
	field(posCount, HeaderSize, "count", "%s", b.countMeaning())
	a.body(HeaderSize, p[HeaderSize:], b.Codec())
}

func (a *annotator) legacy(b *Batch) {
	p := b.Bytes
	field := func(from, to int, name, meaning string) { a.row(from, p[from:to], name, meaning) }
	field(posBaseOffset, posLength, "offset", fmt.Sprint(b.BaseOffset))
	field(posLength, lengthEnd, "size", fmt.Sprintf("%d, with this %d bytes in all", b.Length, len(p)))
	field(lengthEnd, posMagic, "checksum", b.checksumMeaning())
	field(posMagic, posLegacyAttributes, "magic", fmt.Sprint(b.Magic))
	field(posLegacyAttributes, posLegacyTimestamp, "attributes", b.attributesMeaning())
	end := posLegacyTimestamp
	if b.Magic == 1 {
		end += legacyTimestampSize
		field(posLegacyTimestamp, end, "timestamp", timeMeaning(b.MaxTimestamp))
	}
	a.body(end, p[end:], b.Codec())
}

// body dumps what follows the header.
func (a *annotator) body(pos int, p []byte, c Codec) {
	kind := "records"
	if c != CodecNone {
		kind = "records in " + c.String()
	}
	fmt.Fprintf(&a.out, "%04x  %s, %d bytes\n", pos, kind, len(p))
	if a.headerOnly {
		return
	}
	for len(p) > 0 {
		n := min(len(p), annotateWidth)
		fmt.Fprintf(&a.out, "%04x  % x\n", pos, p[:n])
		p = p[n:]
		pos += n
	}
}

func (a *annotator) records(b *Batch) {
	records, err := decode(b)
	if err != nil {
		fmt.Fprintf(&a.out, "records cannot be read: %v\n", err)
		return
	}
	if kind, ok := Control(b); ok {
		fmt.Fprintf(&a.out, "marker: %s\n", kind)
		return
	}
	for i := range records {
		r := &records[i]
		fmt.Fprintf(&a.out, "record %d  offset %d  time %s  key %s  value %s%s\n",
			i, r.Offset, timeMeaning(r.Timestamp), text(r.Key), text(r.Value), headersText(r.Headers))
	}
}

func headersText(headers []kafka.Header) string {
	var b strings.Builder
	for _, h := range headers {
		fmt.Fprintf(&b, "  header %q %s", h.Key, text(h.Value))
	}
	return b.String()
}

// text quotes bytes, null as a bare word.
func text(p []byte) string {
	switch {
	case p == nil:
		return "null"
	case len(p) > annotateText:
		return fmt.Sprintf("%q… (%d bytes)", p[:annotateText], len(p))
	}
	return fmt.Sprintf("%q", p)
}

func (b *Batch) checksumMeaning() string {
	if got := b.checksum(); got != b.CRC {
		return fmt.Sprintf("WRONG, the bytes give %08x", got)
	}
	return "matches"
}

func (h *Header) attributesMeaning() string {
	parts := []string{h.Codec().String()}
	if h.LogAppendTime() {
		parts = append(parts, "LogAppendTime")
	} else {
		parts = append(parts, "CreateTime")
	}
	for _, p := range []struct {
		set  bool
		name string
	}{{h.Transactional(), "transactional"}, {h.Control(), "control"}, {h.DeleteHorizon(), "delete horizon"}} {
		if p.set {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, ", ")
}

func (h *Header) countMeaning() string {
	switch missing := int64(h.LastOffsetDelta) + 1 - int64(h.Count); {
	case missing > 0:
		return fmt.Sprintf("%d, %d compacted away", h.Count, missing)
	case missing < 0:
		return fmt.Sprintf("%d, IMPOSSIBLE for the last offset delta", h.Count)
	}
	return fmt.Sprint(h.Count)
}

// timeMeaning writes milliseconds, and as a date where that makes sense.
func timeMeaning(ms int64) string {
	if ms == kafka.TimestampNone {
		return "none"
	}
	const lastYear9999 = 253402300799999
	if ms < 0 || ms > lastYear9999 {
		return fmt.Sprint(ms)
	}
	return fmt.Sprintf("%d (%s)", ms, time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"))
}
