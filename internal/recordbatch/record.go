package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"heliograph/internal/kafka"
)

// minRecord is the size of the smallest record: seven fields of one byte.
const minRecord = 7

var errShort = errors.New("runs past its end")

// frame is one record, read as far as moving it to another batch needs.
type frame struct {
	whole       []byte // with the length before it
	times       []byte // attributes and timestamp delta, as they lie there
	timeDelta   int64
	offsetDelta int32
	tail        []byte // everything after the offset delta
}

// nextFrame reads the first record of data and returns what follows it.
func nextFrame(data []byte) (f frame, rest []byte, err error) {
	length, n := binary.Varint(data)
	if n <= 0 {
		return frame{}, nil, errors.New("record length is cut off")
	}
	if length < minRecord-1 || length > int64(len(data)-n) {
		return frame{}, nil, fmt.Errorf("record length %d, with %d bytes left", length, len(data)-n)
	}
	end := n + int(length)
	f.whole = data[:end:end]
	body := f.whole[n:]
	var m int
	if f.timeDelta, m = binary.Varint(body[1:]); m <= 0 {
		return frame{}, nil, fmt.Errorf("timestamp delta %w", errShort)
	}
	f.times = body[: 1+m : 1+m]
	delta, k := binary.Varint(body[1+m:])
	if k <= 0 {
		return frame{}, nil, fmt.Errorf("offset delta %w", errShort)
	}
	if delta < 0 || delta > math.MaxInt32 {
		return frame{}, nil, fmt.Errorf("offset delta %d is impossible", delta)
	}
	f.offsetDelta = int32(delta)
	f.tail = body[1+m+k:]
	return f, data[end:], nil
}

// appendAs appends the record with another offset delta, its time untouched.
func (f *frame) appendAs(dst []byte, offsetDelta int32) []byte {
	if offsetDelta == f.offsetDelta {
		return append(dst, f.whole...)
	}
	size := len(f.times) + varintSize(int64(offsetDelta)) + len(f.tail)
	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, f.times...)
	dst = binary.AppendVarint(dst, int64(offsetDelta))
	return append(dst, f.tail...)
}

// appendAt appends the record with another offset delta and timestamp delta.
func (f *frame) appendAt(dst []byte, offsetDelta int32, timeDelta int64) []byte {
	if timeDelta == f.timeDelta {
		return f.appendAs(dst, offsetDelta)
	}
	size := 1 + varintSize(timeDelta) + varintSize(int64(offsetDelta)) + len(f.tail)
	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, f.times[0])
	dst = binary.AppendVarint(dst, timeDelta)
	dst = binary.AppendVarint(dst, int64(offsetDelta))
	return append(dst, f.tail...)
}

func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// readBytes reads a length and as many bytes; length -1 is null, and gives nil.
func readBytes(data []byte) (value, rest []byte, err error) {
	length, n := binary.Varint(data)
	switch {
	case n <= 0:
		return nil, nil, fmt.Errorf("length %w", errShort)
	case length == -1:
		return nil, data[n:], nil
	case length < 0 || length > int64(len(data)-n):
		return nil, nil, fmt.Errorf("length %d, with %d bytes left", length, len(data)-n)
	}
	end := n + int(length)
	return data[n:end:end], data[end:], nil
}

// fields reads key, value and headers. Nothing may be left over.
func (f *frame) fields(r *kafka.Record) (err error) {
	rest := f.tail
	if r.Key, rest, err = readBytes(rest); err != nil {
		return fmt.Errorf("record key: %w", err)
	}
	if r.Value, rest, err = readBytes(rest); err != nil {
		return fmt.Errorf("record value: %w", err)
	}
	n, m := binary.Varint(rest)
	rest = rest[max(m, 0):]
	if m <= 0 || n < 0 || n > int64(len(rest)/2) { // a header takes two bytes at least
		return fmt.Errorf("number of headers %d, with %d bytes left", n, len(rest))
	}
	if n > 0 {
		r.Headers = make([]kafka.Header, n)
	}
	for i := range r.Headers {
		var key []byte
		if key, rest, err = readBytes(rest); err != nil {
			return fmt.Errorf("header key: %w", err)
		}
		if key == nil {
			return errors.New("header key is null")
		}
		r.Headers[i].Key = string(key)
		if r.Headers[i].Value, rest, err = readBytes(rest); err != nil {
			return fmt.Errorf("header value: %w", err)
		}
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes follow the last header", len(rest))
	}
	return nil
}

// appendRecord appends a record made here.
func appendRecord(dst []byte, r *kafka.Record, offsetDelta int32, timeDelta int64) []byte {
	size := 1 + varintSize(timeDelta) + varintSize(int64(offsetDelta)) +
		bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(len(r.Headers)))
	for _, h := range r.Headers {
		size += varintSize(int64(len(h.Key))) + len(h.Key) + bytesSize(h.Value)
	}
	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, 0) // attributes: none are defined
	dst = binary.AppendVarint(dst, timeDelta)
	dst = binary.AppendVarint(dst, int64(offsetDelta))
	dst = appendBytes(dst, r.Key)
	dst = appendBytes(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for _, h := range r.Headers {
		dst = binary.AppendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendBytes(dst, h.Value)
	}
	return dst
}

func bytesSize(p []byte) int {
	if p == nil {
		return varintSize(-1)
	}
	return varintSize(int64(len(p))) + len(p)
}

func appendBytes(dst, p []byte) []byte {
	if p == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(p))), p...)
}
