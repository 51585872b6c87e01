package recordbatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

var kgoCodecs = map[Codec]kgo.CompressionCodec{
	CodecGzip:   kgo.GzipCompression(),
	CodecSnappy: kgo.SnappyCompression(),
	CodecLz4:    kgo.Lz4Compression(),
	CodecZstd:   kgo.ZstdCompression(),
}

func drawBlock(t *rapid.T) []byte {
	unit := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "unit")
	return bytes.Repeat(unit, rapid.IntRange(1, 3000).Draw(t, "repeats"))
}

func TestCodecsAgreeWithClientLibrary(t *testing.T) {
	for codec, theirs := range kgoCodecs {
		t.Run(codec.String(), func(t *testing.T) {
			compressor, err := kgo.DefaultCompressor(theirs)
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) {
				block := drawBlock(t)
				prefix := []byte("kept")

				ours, err := compress(slices.Clone(prefix), codec, block)
				if err != nil || !bytes.HasPrefix(ours, prefix) {
					t.Fatalf("compress: %v", err)
				}
				got, err := kgo.DefaultDecompressor().Decompress(ours[len(prefix):], kgo.CompressionCodecType(codec))
				if err != nil || !bytes.Equal(got, block) {
					t.Fatalf("the client library does not read ours: %v", err)
				}

				foreign, _ := compressor.Compress(new(bytes.Buffer), block)
				got, err = decompress(slices.Clone(prefix), codec, foreign, 2, maxDecompressed)
				if err != nil || !bytes.Equal(got, append(prefix, block...)) {
					t.Fatalf("we do not read the client library's: %v", err)
				}
			})
		})
	}
}

func TestSnappyIsReadFramedAndBare(t *testing.T) {
	block := bytes.Repeat([]byte("snappy "), 20_000) // more than three xerial blocks
	framed := appendSnappy(nil, block)
	if !bytes.HasPrefix(framed, xerialMagic[:]) {
		t.Error("what we write is not framed as Java expects")
	}
	bare := appendSnappy(nil, block[:xerialBlock])[xerialHeader+4:]
	for name, c := range map[string]struct{ src, want []byte }{
		"framed": {framed, block},
		"bare":   {bare, block[:xerialBlock]},
	} {
		got, err := decompress(nil, CodecSnappy, c.src, 2, maxDecompressed)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLz4HeaderOfMagic0(t *testing.T) {
	block := bytes.Repeat([]byte("old lz4 "), 300)
	right, err := compress(nil, CodecLz4, block)
	if err != nil {
		t.Fatal(err)
	}
	broken := slices.Clone(right)
	breakLz4Header(broken)
	if bytes.Equal(right, broken) {
		t.Fatal("the broken header equals the right one")
	}
	for name, src := range map[string][]byte{"right": right, "broken": broken} {
		got, err := decompress(nil, CodecLz4, src, 0, maxDecompressed)
		if err != nil || !bytes.Equal(got, block) {
			t.Errorf("magic 0, %s checksum: %v", name, err)
		}
	}
	if _, err := decompress(nil, CodecLz4, broken, 1, maxDecompressed); err == nil {
		t.Error("magic 1 takes a broken header checksum")
	}
}

func TestBombsAreRefused(t *testing.T) {
	const limit = 1 << 20
	block := make([]byte, limit+1)
	for codec := range kgoCodecs {
		src, err := compress(nil, codec, block)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decompress(nil, codec, src, 2, limit); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", codec, err)
		}
		if got, err := decompress(nil, codec, src, 2, limit+1); err != nil || len(got) != limit+1 {
			t.Errorf("%s at the limit: %d bytes, %v", codec, len(got), err)
		}
	}
}

// TestZstdBombsAreRefused unfolds frames made by hand. The codec's own limit
// matters: it stops before the memory is taken.
func TestZstdBombsAreRefused(t *testing.T) {
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}

	// A frame that tells its size, one byte too many, before any block.
	honest := binary.LittleEndian.AppendUint64(append(slices.Clone(magic), 0xe0), maxDecompressed+1)
	honest = append(honest, 3, 0, 0, 'x')
	if got, err := decompress(nil, CodecZstd, honest, 2, maxDecompressed); !errors.Is(err, errTooLarge) || cap(got) > 1<<10 {
		t.Errorf("a told size: %d bytes of memory, %v", cap(got), err)
	}

	// A frame without size, of blocks that each repeat one byte 128 Ki times.
	const blockSize, limit = 128 << 10, 1 << 20
	silent := append(slices.Clone(magic), 0, 7<<3)
	for range 100 {
		silent = append(silent, 2, 0, blockSize<<3>>16, 'x')
	}
	got, err := newZstdReader(limit).DecodeAll(silent, nil)
	if !errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(got) > limit+blockSize {
		t.Errorf("an untold size: %d bytes, %v", len(got), err)
	}
}

func TestSnappyLieIsRefusedBeforeMemoryIsTaken(t *testing.T) {
	lie := []byte{0xff, 0xff, 0xff, 0x7f, 0, 0} // claims 256 MiB less one byte in two
	got, err := readSnappyBlock(nil, lie, maxDecompressed)
	if err == nil || cap(got) != 0 {
		t.Errorf("%d bytes of memory for a lie, %v", cap(got), err)
	}
}

func TestGarbageDoesNotDecompress(t *testing.T) {
	random := make([]byte, 200)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	xerialCut := append(slices.Clone(xerialMagic[:]), 0, 0, 0, 1)
	xerialLong := append(slices.Clone(xerialMagic[:]), 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0, 0, 0)
	for codec := range kgoCodecs {
		whole, err := compress(nil, codec, bytes.Repeat([]byte("whole"), 100))
		if err != nil {
			t.Fatal(err)
		}
		for name, src := range map[string][]byte{
			"random": random, "cut off": whole[:len(whole)-5], "short": {1}, "header cut": xerialCut, "block cut": xerialLong,
		} {
			if _, err := decompress(nil, codec, src, 2, maxDecompressed); err == nil {
				t.Errorf("%s takes %s", codec, name)
			}
		}
	}
	for _, codec := range []Codec{5, 7} {
		if _, err := decompress(nil, codec, random, 2, maxDecompressed); err == nil {
			t.Errorf("%s decompresses", codec)
		}
		if _, err := compress(nil, codec, random); err == nil {
			t.Errorf("%s compresses", codec)
		}
	}
}
