package recordbatch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Kafka's Java client wraps snappy blocks in the framing of the xerial library:
// a header, then blocks with their length. Other clients send one bare block.

var xerialMagic = [8]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeader = len(xerialMagic) + 8 // two version numbers
	xerialBlock  = 32 << 10
	// snappyRatio is above what a snappy block can unfold to; a block that
	// claims more is damaged, and is refused before memory is taken for it.
	snappyRatio = 64
)

func appendSnappy(dst, src []byte) []byte {
	be := binary.BigEndian
	dst = append(dst, xerialMagic[:]...)
	dst = be.AppendUint32(dst, 1) // version
	dst = be.AppendUint32(dst, 1) // oldest compatible version
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		at := len(dst)
		most := s2.MaxEncodedLen(n)
		dst = slices.Grow(dst, 4+most)
		block := s2.EncodeSnappy(dst[at+4:at+4+most], src[:n])
		be.PutUint32(dst[at:at+4], uint32(len(block)))
		dst = dst[:at+4+len(block)]
		src = src[n:]
	}
	return dst
}

func readSnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialMagic[:]) {
		return readSnappyBlock(dst, src, limit)
	}
	if len(src) < xerialHeader {
		return dst, io.ErrUnexpectedEOF
	}
	start := len(dst)
	for src = src[xerialHeader:]; len(src) > 0; {
		if len(src) < 4 {
			return dst, io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return dst, io.ErrUnexpectedEOF
		}
		var err error
		if dst, err = readSnappyBlock(dst, src[:n], limit-(len(dst)-start)); err != nil {
			return dst, err
		}
		src = src[n:]
	}
	return dst, nil
}

func readSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	switch {
	case err != nil:
		return dst, err
	case n > limit:
		return dst, errTooLarge
	case n/snappyRatio > len(block):
		return dst, fmt.Errorf("a block of %d bytes claims to hold %d", len(block), n)
	}
	at := len(dst)
	dst = slices.Grow(dst, n)
	if _, err := s2.Decode(dst[at:at+n], block); err != nil {
		return dst, err
	}
	return dst[:at+n], nil
}

// An lz4 frame starts with its magic number and a descriptor: flags, block size,
// perhaps the content size, and a checksum byte of the descriptor.
const (
	lz4MagicSize   = 4
	lz4ContentSize = 0x08 // flag: eight bytes of content size
)

// mendLz4Header reads a frame as of magic 0, where Java's client computed the
// descriptor's checksum over the frame's magic number too. It puts the right
// one in its place, whatever is there, since the frame's bytes have a checksum
// of Kafka's own.
func mendLz4Header(src []byte) io.Reader {
	end := lz4MagicSize + 2
	if len(src) > lz4MagicSize && src[lz4MagicSize]&lz4ContentSize != 0 {
		end += 8
	}
	if len(src) <= end {
		return bytes.NewReader(src)
	}
	head := slices.Clone(src[:end+1])
	head[end] = byte(xxh32(head[lz4MagicSize:end]) >> 8)
	return io.MultiReader(bytes.NewReader(head), bytes.NewReader(src[end+1:]))
}

// xxh32 is the 32-bit xxHash, seed 0, of fewer than 16 bytes.
func xxh32(p []byte) uint32 {
	const (
		prime1 = 2654435761
		prime2 = 2246822519
		prime3 = 3266489917
		prime4 = 668265263
		prime5 = 374761393
	)
	h := uint32(prime5) + uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*prime3, 17) * prime4
	}
	for _, b := range p {
		h = bits.RotateLeft32(h+uint32(b)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
