package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The keys and the version ranges of the two requests written by hand.
const (
	keyProduce int16 = 0
	keyFetch   int16 = 1

	minFetch, maxFetch     int16 = 4, 17
	minProduce, maxProduce int16 = 3, 13

	fetchFlexible   int16 = 12
	fetchTopicIDs   int16 = 13
	produceFlexible int16 = 9
	produceTopicIDs int16 = 13
	// produceTxn1 is the last version in which a transactional id does not mean
	// that the append itself adds the partition, produceTxn2 the first in which
	// it does (KIP-890).
	produceTxn1 int16 = 11
	produceTxn2 int16 = 12
)

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendString(dst []byte, s string, flexible bool) []byte {
	if flexible {
		return append(binary.AppendUvarint(dst, uint64(len(s))+1), s...)
	}
	return append(appendInt16(dst, int16(len(s))), s...)
}

// appendNullable writes an empty string as null.
func appendNullable(dst []byte, s string, flexible bool) []byte {
	switch {
	case s != "":
		return appendString(dst, s, flexible)
	case flexible:
		return append(dst, 0)
	}
	return appendInt16(dst, -1)
}

func appendLen(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(dst, uint64(n)+1)
	}
	return appendInt32(dst, int32(n))
}

// appendHeader starts a request with room for its size in front.
func appendHeader(dst []byte, key, version int16, correlation int32, clientID string, flexible bool) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = appendInt16(dst, key)
	dst = appendInt16(dst, version)
	dst = appendInt32(dst, correlation)
	dst = appendString(dst, clientID, false)
	if flexible {
		dst = append(dst, 0) // no tags
	}
	return dst
}

// errAnswer is any answer that cannot be what the protocol says.
var errAnswer = errors.New("the answer is cut off or damaged")

// A reader decodes an answer in place. After a read beyond the end it is bad
// and every further read gives zero: callers check once, at the end.
type reader struct {
	b        []byte
	flexible bool
	bad      bool
}

func (r *reader) span(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) int16() int16 {
	if s := r.span(2); s != nil {
		return int16(binary.BigEndian.Uint16(s))
	}
	return 0
}

func (r *reader) int32() int32 {
	if s := r.span(4); s != nil {
		return int32(binary.BigEndian.Uint32(s))
	}
	return 0
}

func (r *reader) int64() int64 {
	if s := r.span(8); s != nil {
		return int64(binary.BigEndian.Uint64(s))
	}
	return 0
}

// uvarint reads what the protocol bounds to 32 bits.
func (r *reader) uvarint() int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<31-1 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

// count reads an array's length; null is empty. An element takes no
// fewer than least bytes, so a length that cannot fit is refused before anything is made.
func (r *reader) count(least int) int {
	var n int
	if r.flexible {
		n = r.uvarint() - 1
	} else {
		n = int(r.int32())
	}
	if n <= 0 {
		return 0
	}
	if n > len(r.b)/least {
		r.bad, r.b = true, nil
		return 0
	}
	return n
}

// text reads a string as a view; null is empty.
func (r *reader) text() []byte {
	if r.flexible {
		return r.span(max(r.uvarint()-1, 0))
	}
	return r.span(max(int(r.int16()), 0))
}

// bytes reads a nullable block as a view.
func (r *reader) bytes() []byte {
	if r.flexible {
		return r.span(max(r.uvarint()-1, 0))
	}
	return r.span(max(int(r.int32()), 0))
}

// skipTags passes over tagged fields.
func (r *reader) skipTags() {
	if !r.flexible {
		return
	}
	for range r.tags() {
		r.uvarint()
		r.span(r.uvarint())
	}
}

// tags is the number of tagged fields; each takes two bytes at least.
func (r *reader) tags() int {
	if !r.flexible {
		return 0
	}
	n := r.uvarint()
	if n > len(r.b)/2 {
		r.bad, r.b = true, nil
		return 0
	}
	return n
}

// tag reads one tagged field's number and a reader of its content.
func (r *reader) tag() (int, reader) {
	number := r.uvarint()
	return number, reader{b: r.span(r.uvarint()), flexible: true}
}

// end checks that all was well. Bytes left over are refused as well: they mean
// that this reader and the broker disagree about the version.
func (r *reader) end() error {
	if r.bad {
		return errAnswer
	}
	if len(r.b) > 0 {
		return fmt.Errorf("the answer has %d bytes too many", len(r.b))
	}
	return nil
}

// names turns the bytes of topic names into the strings that requests used, so
// that an answer allocates none.
type names struct {
	byName map[string]string
	byID   map[[16]byte]string
}

func newNames() names {
	return names{byName: make(map[string]string), byID: make(map[[16]byte]string)}
}

func (n *names) add(name string, id [16]byte) {
	if _, ok := n.byName[name]; !ok {
		n.byName[name] = name
	}
	if id != [16]byte{} && n.byID[id] != name {
		n.byID[id] = name
	}
}

func (n *names) name(b []byte) string {
	if s, ok := n.byName[string(b)]; ok {
		return s
	}
	return string(b)
}

// topic reads a topic's name or its id. An id that was never asked for gives
// an empty name.
func (n *names) topic(r *reader, byID bool) string {
	if !byID {
		return n.name(r.text())
	}
	if s := r.span(16); s != nil {
		return n.byID[[16]byte(s)]
	}
	return ""
}
