package recordbatch

import (
	"fmt"
	"strings"
	"testing"

	"heliograph/internal/kafka"
)

// batchOf is a batch of about size bytes before compression, of JSON-like text.
func batchOf(b *testing.B, size, recordSize int, codec Codec) []byte {
	b.Helper()
	var records []kafka.Record
	for i := range max(1, size/recordSize) {
		text := fmt.Sprintf(`{"id":%d,"host":"web-%02d","path":"/a/%x","took":%d},`, i, i%17, uint32(i)*2654435761, i%977)
		value := strings.Repeat(text, recordSize/len(text)+1)[:recordSize]
		records = append(records, kafka.Record{Key: fmt.Append(nil, i), Value: []byte(value), Timestamp: someTime + int64(i)})
	}
	batch, err := Build(records, BuildOptions{Codec: codec})
	if err != nil {
		b.Fatal(err)
	}
	return batch
}

var benchSizes = []int{4 << 10, 16 << 10, 64 << 10, 1 << 20}

func sizeName(n int) string { return fmt.Sprintf("%dKiB", n>>10) }

func BenchmarkScanAndJudge(b *testing.B) {
	for _, size := range benchSizes {
		answer := batchOf(b, size, 1<<10, CodecNone)
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := NewScanner(answer)
				var batch Batch
				for s.Next(&batch) {
					Judge(&batch, 0, Target{MaxMessageBytes: 2 << 20})
				}
			}
		})
	}
}

func BenchmarkVerifyChecksum(b *testing.B) {
	for _, size := range benchSizes {
		batch, err := Parse(batchOf(b, size, 1<<10, CodecNone))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(sizeName(size), func(b *testing.B) {
			b.SetBytes(int64(len(batch.Bytes)))
			b.ReportAllocs()
			for b.Loop() {
				if err := batch.VerifyChecksum(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, size := range benchSizes {
		batch := batchOf(b, size, 1<<10, CodecNone)
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			var sequence int32
			for b.Loop() {
				sequence++
				Seal(batch, Stamp{ProducerID: 4000, Epoch: 1, Sequence: sequence})
			}
		})
	}
}

func BenchmarkRewrite(b *testing.B) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		for _, recordSize := range []int{100, 1 << 10, 10 << 10} {
			plain := batchOf(b, 64<<10, recordSize, CodecNone)
			batch, err := Parse(batchOf(b, 64<<10, recordSize, codec))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%dB", codec, recordSize), func(b *testing.B) {
				b.SetBytes(int64(len(plain)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Rewrite(&batch, RewriteOptions{From: 1}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	for _, codec := range []Codec{CodecNone, CodecLz4, CodecZstd} {
		for _, recordSize := range []int{100, 1 << 10} {
			one := batchOf(b, recordSize, recordSize, codec)
			batches := make([][]byte, 64<<10/recordSize)
			for i := range batches {
				batches[i] = one
			}
			var dst []byte
			b.Run(fmt.Sprintf("%s/%dB", codec, recordSize), func(b *testing.B) {
				b.SetBytes(64 << 10)
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if dst, err = Merge(dst[:0], batches); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		batch, err := Parse(batchOf(b, 64<<10, 1<<10, codec))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(codec.String(), func(b *testing.B) {
			b.SetBytes(64 << 10)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Records(&batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
