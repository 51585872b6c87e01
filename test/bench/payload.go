//go:build bench

package main

import (
	"math/rand/v2"
	"strconv"
)

// document writes records that look like what services send: JSON with the same
// names in every record, identifiers and numbers that differ in each, and words.
// No two are alike, and lz4 shrinks a batch of them about 2.2 times.
type document struct{ rng *rand.Rand }

func newDocument(seed uint64) *document { return &document{rand.New(rand.NewPCG(seed, 2))} }

var words = [...]string{
	"amber", "anchor", "autumn", "basket", "beacon", "bridge", "candle", "canyon", "cedar", "copper", "coral", "cotton",
	"crystal", "dawn", "delta", "desert", "ember", "falcon", "feather", "forest", "garden", "glacier", "granite", "harbor",
	"hollow", "island", "ivory", "jasmine", "juniper", "lantern", "lavender", "marble", "meadow", "mirror", "mosaic", "ocean",
	"orchard", "orchid", "pebble", "pepper", "pilot", "prairie", "quartz", "raven", "ribbon", "river", "saddle", "saffron",
	"shadow", "silver", "sparrow", "spruce", "summit", "thistle", "timber", "tunnel", "valley", "velvet", "walnut", "willow",
	"winter", "yarrow", "zenith", "zephyr",
}

var states = [...]string{"created", "paid", "packed", "shipped", "delivered", "returned"}

// append adds one document of exactly n bytes.
func (d *document) append(dst []byte, n int) []byte {
	end := len(dst) + n
	dst = append(dst, `{"orderId":"`...)
	dst = d.hex(dst, 32)
	dst = append(dst, `","customer":{"id":`...)
	dst = strconv.AppendUint(dst, uint64(d.rng.Uint32()), 10)
	dst = append(dst, `,"name":"`...)
	dst = append(d.word(append(d.word(dst), ' ')), `"},"state":"`...)
	dst = append(dst, states[d.rng.IntN(len(states))]...)
	dst = append(dst, `","items":[`...)
	for len(dst) < end-160 {
		dst = append(dst, `{"sku":"`...)
		dst = d.hex(dst, 10)
		dst = append(dst, `","title":"`...)
		dst = append(d.word(append(d.word(dst), ' ')), `","quantity":`...)
		dst = strconv.AppendInt(dst, 1+d.rng.Int64N(9), 10)
		dst = append(dst, `,"price":`...)
		dst = strconv.AppendFloat(dst, float64(100+d.rng.IntN(99900))/100, 'f', 2, 64)
		dst = append(dst, `},`...)
	}
	dst = append(dst, `{}],"note":"`...)
	for len(dst) < end-12 {
		dst = append(d.word(dst), ' ')
	}
	for len(dst) < end-2 {
		dst = append(dst, '.')
	}
	return append(dst[:end-2], `"}`...)
}

func (d *document) word(dst []byte) []byte { return append(dst, words[d.rng.IntN(len(words))]...) }

func (d *document) hex(dst []byte, n int) []byte {
	const digits = "0123456789abcdef"
	for range n {
		dst = append(dst, digits[d.rng.IntN(len(digits))])
	}
	return dst
}
