package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"heliograph/internal/kafka"
)

// Digest stands for a record's content: the first half of a SHA-256. It is
// short enough to hold many, and long enough that nobody can make two records
// with the same one.
type Digest [16]byte

// An Item is a record as the comparison sees it.
type Item struct {
	Digest   Digest // of key, value and headers
	Time     int64  // kafka.TimestampNone where the record has none
	Offset   int64
	Producer int64 // the producer id of its batch, -1 for none
	// Stamped says that the time is the target's own (LogAppendTime) and cannot
	// be the source's.
	Stamped bool
}

// same reports that two items, one of each side, are the same record.
func same(a, b *Item) bool {
	return a.Digest == b.Digest && (a.Time == b.Time || !timed(a, b))
}

// timed reports that the times of both are comparable.
func timed(a, b *Item) bool {
	return !a.Stamped && !b.Stamped && a.Time != kafka.TimestampNone && b.Time != kafka.TimestampNone
}

// A hasher makes digests. One goroutine uses it.
type hasher struct{ scratch []byte }

// record is the digest of key, value and headers in their order. Null and empty
// differ, and so do all borders between fields.
func (h *hasher) record(r *kafka.Record) Digest {
	b := appendField(h.scratch[:0], r.Key)
	b = h.rest(b, r)
	h.scratch = b
	return short(b)
}

// value is the digest of all that compaction keeps of a key: value and headers.
func (h *hasher) value(r *kafka.Record) Digest {
	h.scratch = h.rest(h.scratch[:0], r)
	return short(h.scratch)
}

// key is the digest of the key alone.
func (h *hasher) key(r *kafka.Record) Digest {
	h.scratch = appendField(h.scratch[:0], r.Key)
	return short(h.scratch)
}

func (h *hasher) rest(b []byte, r *kafka.Record) []byte {
	b = appendField(b, r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for i := range r.Headers {
		b = binary.AppendUvarint(b, uint64(len(r.Headers[i].Key)))
		b = append(b, r.Headers[i].Key...)
		b = appendField(b, r.Headers[i].Value)
	}
	return b
}

// appendField appends a length, one more than the true one so that null has 0,
// and the bytes.
func appendField(b, field []byte) []byte {
	if field == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(field))+1)
	return append(b, field...)
}

func short(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(sum[:len(Digest{})])
}

// rolling is one digest over a sequence of records. Two sequences have the same
// one exactly if they are the same, in the same order.
type rolling struct {
	h   hash.Hash
	buf []byte
}

const itemBytes = len(Digest{}) + 8

func newRolling() *rolling {
	return &rolling{h: sha256.New(), buf: make([]byte, 0, 64*itemBytes)}
}

func (r *rolling) add(it *Item) {
	if len(r.buf)+itemBytes > cap(r.buf) {
		r.flush()
	}
	r.buf = append(r.buf, it.Digest[:]...)
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(it.Time))
}

func (r *rolling) flush() {
	r.h.Write(r.buf)
	r.buf = r.buf[:0]
}

// String is the digest of all that was added, in hexadecimal digits.
func (r *rolling) String() string {
	r.flush()
	return hex.EncodeToString(r.h.Sum(nil))
}
