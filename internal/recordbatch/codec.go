package recordbatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is how a batch's records are compressed.
type Codec int8

// The codecs, with their wire values.
const (
	CodecNone   Codec = 0
	CodecGzip   Codec = 1
	CodecSnappy Codec = 2
	CodecLz4    Codec = 3
	CodecZstd   Codec = 4
)

// String is the codec's name as Kafka's compression.type has it.
func (c Codec) String() string {
	switch c {
	case CodecNone:
		return "none"
	case CodecGzip:
		return "gzip"
	case CodecSnappy:
		return "snappy"
	case CodecLz4:
		return "lz4"
	case CodecZstd:
		return "zstd"
	}
	return "codec " + strconv.Itoa(int(c))
}

// maxDecompressed bounds what one batch may unfold to. Kafka's largest sensible
// batches are some tens of megabytes; a bomb must not take the process down.
const maxDecompressed = 256 << 20

var errTooLarge = errors.New("unfolds to more than a batch may hold")

// The pools hold codecs between batches, because a new one costs more than a
// small batch. Nothing that one batch left in them reaches the next.
var (
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}
	lz4Writers  = sync.Pool{New: func() any { return newLz4Writer() }}
	lz4Readers  = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	zstdWriters = sync.Pool{New: func() any { return newZstdWriter() }}
	zstdReaders = sync.Pool{New: func() any { return newZstdReader(maxDecompressed) }}
	scratches   = sync.Pool{New: func() any { return new(scratch) }}
)

// scratch is memory for one decompressed or not yet compressed block.
type scratch struct{ b []byte }

// maxScratch is the largest scratch kept; larger ones are left to the collector.
const maxScratch = 8 << 20

func getScratch() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) put() {
	if cap(s.b) <= maxScratch {
		s.b = s.b[:0]
		scratches.Put(s)
	}
}

// newLz4Writer is set to what Java's reader understands: independent blocks, no
// block checksums. It starts no goroutine.
func newLz4Writer() *lz4.Writer {
	w := lz4.NewWriter(nil)
	err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1))
	if err != nil {
		panic(fmt.Sprintf("recordbatch: lz4 options: %v", err))
	}
	return w
}

func newZstdWriter() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	if err != nil {
		panic(fmt.Sprintf("recordbatch: zstd options: %v", err))
	}
	return w
}

func newZstdReader(limit uint64) *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(limit))
	if err != nil {
		panic(fmt.Sprintf("recordbatch: zstd options: %v", err))
	}
	return r
}

// compress appends src, compressed, to dst.
func compress(dst []byte, c Codec, src []byte) ([]byte, error) {
	switch c {
	case CodecNone:
		return append(dst, src...), nil
	case CodecGzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		out := bytes.NewBuffer(dst)
		w.Reset(out)
		err := writeAll(w, src)
		return out.Bytes(), err
	case CodecSnappy:
		return appendSnappy(dst, src), nil
	case CodecLz4:
		w := lz4Writers.Get().(*lz4.Writer)
		defer lz4Writers.Put(w)
		out := bytes.NewBuffer(dst)
		w.Reset(out)
		err := writeAll(w, src)
		return out.Bytes(), err
	case CodecZstd:
		w := zstdWriters.Get().(*zstd.Encoder)
		defer zstdWriters.Put(w)
		return w.EncodeAll(src, dst), nil
	}
	return dst, fmt.Errorf("%s is unknown", c)
}

func writeAll(w io.WriteCloser, src []byte) error {
	if _, err := w.Write(src); err != nil {
		return err
	}
	return w.Close()
}

// decompress appends src, decompressed, to dst: at most limit bytes. magic is
// the format that src lies in; only lz4 in magic 0 differs.
func decompress(dst []byte, c Codec, src []byte, magic int8, limit int) ([]byte, error) {
	var err error
	start := len(dst)
	switch c {
	case CodecNone:
		dst = append(dst, src...)
	case CodecGzip:
		r := gzipReaders.Get().(*gzip.Reader)
		defer gzipReaders.Put(r)
		if err = r.Reset(bytes.NewReader(src)); err == nil {
			dst, err = readAll(dst, r, len(src), limit)
		}
	case CodecSnappy:
		dst, err = readSnappy(dst, src, limit)
	case CodecLz4:
		r := lz4Readers.Get().(*lz4.Reader)
		defer lz4Readers.Put(r)
		if magic == 0 {
			r.Reset(mendLz4Header(src))
		} else {
			r.Reset(bytes.NewReader(src))
		}
		dst, err = readAll(dst, r, len(src), limit)
	case CodecZstd:
		r := zstdReaders.Get().(*zstd.Decoder)
		defer zstdReaders.Put(r)
		dst, err = r.DecodeAll(src, dst)
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			err = errTooLarge
		}
	default:
		return dst, fmt.Errorf("%s is unknown", c)
	}
	if err == nil && len(dst)-start > limit {
		err = errTooLarge
	}
	if err != nil {
		return dst, fmt.Errorf("decompress %s: %w", c, err)
	}
	return dst, nil
}

// readAll appends what r unfolds of size bytes to dst, and stops soon after
// limit bytes. It first makes room for what records usually unfold to.
func readAll(dst []byte, r io.Reader, size, limit int) ([]byte, error) {
	const usualRatio = 3
	start := len(dst)
	dst = slices.Grow(dst, min(size, limit/usualRatio)*usualRatio)
	for len(dst)-start <= limit {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, max(512, len(dst)))
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, errTooLarge
}
