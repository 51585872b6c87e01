package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrMalformed is in the chain of every error about bytes that are not the
// record they should be.
var ErrMalformed = errors.New("malformed record")

// recordVersion is the only version of heartbeats and checkpoints there is.
const recordVersion = 0

// appendString appends a STRING. No string that Kafka's protocol carries is
// longer than an int16 can tell; a longer one is a mistake of ours.
func appendString(dst []byte, s string) []byte {
	if len(s) > math.MaxInt16 {
		panic(fmt.Sprintf("mirror: string of %d bytes does not fit a record", len(s)))
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// reader takes primitives off the front of b. The first failure sticks, and
// everything read after it is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int, field string) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.b) {
		r.err = fmt.Errorf("%s: %d bytes wanted, %d left: %w", field, n, len(r.b), ErrMalformed)
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) int16(field string) int16 {
	if b := r.take(2, field); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32(field string) int32 {
	if b := r.take(4, field); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64(field string) int64 {
	if b := r.take(8, field); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) string(field string) string {
	n := r.int16(field)
	if r.err == nil && n < 0 {
		r.err = fmt.Errorf("%s: length %d is negative: %w", field, n, ErrMalformed)
	}
	if r.err != nil {
		return ""
	}
	b := r.take(int(n), field)
	if r.err == nil && !utf8.Valid(b) {
		r.err = fmt.Errorf("%s: not UTF-8: %w", field, ErrMalformed)
	}
	return string(b)
}

func (r *reader) partition(field string) int32 {
	n := r.int32(field)
	if r.err == nil && n < 0 {
		r.err = fmt.Errorf("%s: %d is negative: %w", field, n, ErrMalformed)
	}
	return n
}

func (r *reader) version() {
	v := r.int16("version")
	if r.err == nil && v != recordVersion {
		r.err = fmt.Errorf("version %d is not known, only %d is: %w", v, recordVersion, ErrMalformed)
	}
}
