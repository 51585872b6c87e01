package recordbatch

import (
	"hash/crc32"
	"math/bits"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// powers[k] is x^(8·2^k) modulo the polynomial: what 2^k zero bytes do to a
// checksum. Bit 31 is x^0, as in the reflected form the checksum itself has.
var powers = func() (t [31]uint32) {
	t[0] = 1 << (31 - 8)
	for k := 1; k < len(t); k++ {
		t[k] = multiply(t[k-1], t[k-1])
	}
	return t
}()

// multiply is the product of two polynomials modulo the checksum's.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.Castagnoli
		} else {
			b >>= 1
		}
	}
	return product
}

// moveChecksum is the checksum of a message of which a stretch was changed,
// computed from the old one without reading the rest.
//
// A CRC is linear: the checksums of two messages of equal length differ by the
// CRC, without start value, of the difference of the messages. That difference
// is zero before the stretch, which does nothing, and zero for the n bytes after
// it, which multiplies by x^(8n).
func moveChecksum(old uint32, before, after []byte, n int) uint32 {
	var diff uint32
	for i, b := range before {
		diff = castagnoli[byte(diff)^b^after[i]] ^ diff>>8
	}
	for rest := uint32(n); rest != 0; rest &= rest - 1 {
		diff = multiply(powers[bits.TrailingZeros32(rest)], diff)
	}
	return old ^ diff
}
