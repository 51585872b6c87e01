//go:build bench

package main

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const (
	partitions = 8    // of most topics
	recordSize = 1024 // payload of a record of most cells
	// recordFrame is more than what a record of that size needs around its payload,
	// and less than would let one more into a batch.
	recordFrame = 16
	batchFrame  = 80
)

// cell is one load: a full topic to copy.
type cell struct {
	name    string // of the topic and for -cells
	title   string
	codec   kgo.CompressionCodec
	loop    string // the codec, as the loop is told
	batch   int    // records in a batch
	records int
	size    int  // bytes of a record
	parts   int  // partitions
	secured bool // TLS on both sides, to three brokers
	far     bool // the source is farTrip away
	idle    int  // partitions beside the topic's that nothing is written to
	extra   bool // of the matrix: no bar is held against it
}

func (c cell) payload(records int64) float64 { return float64(records) * float64(c.size) / 1e6 }

// usual gives a cell the usual records and partitions, where it names no others.
func (c cell) usual() cell {
	c.size, c.parts = cmp.Or(c.size, recordSize), cmp.Or(c.parts, partitions)
	return c
}

// cells are the copies, in the order they run. The one of the backlog is the largest.
func cells(quick, full bool) []cell {
	million := 1_000_000
	if quick {
		million = 150_000
	}
	lz4, none := kgo.Lz4Compression(), kgo.NoCompression()
	all := []cell{
		{name: "lz4-16k", title: "lz4, 16 KiB batches", codec: lz4, loop: "lz4", batch: 16, records: 2 * million},
		{name: "lz4-64k", title: "lz4, 64 KiB batches", codec: lz4, loop: "lz4", batch: 64, records: 2 * million},
		{name: "plain-64k", title: "uncompressed, 64 KiB batches", codec: none, loop: "none", batch: 64, records: 3 * million},
		{name: "one", title: "uncompressed, one record a batch", codec: none, loop: "none", batch: 1, records: million / 2},
	}
	if !quick {
		all = append(all, cell{
			name: "tls", title: "lz4, 16 KiB batches, TLS on both sides, three brokers, replication factor 3",
			codec: lz4, loop: "lz4", batch: 16, records: million, secured: true,
		})
	}
	if full {
		all = append(all, matrix()...)
	}
	for i := range all {
		all[i] = all[i].usual()
	}
	return all
}

const (
	// matrixBytes is the payload of a cell of the matrix.
	matrixBytes = 256 << 20
	// largestBatch is what brokers take by default, less what the batch itself needs.
	largestBatch = 1_000_000
)

// matrix is every codec with every size of record and batch, and the usual load
// over few and many partitions.
func matrix() (all []cell) {
	codecs := []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"none", kgo.NoCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}}
	for _, codec := range codecs {
		for _, size := range []int{100, 1 << 10, 10 << 10} {
			for _, batch := range []int{0, 4 << 10, 16 << 10, 64 << 10, 1000 << 10} {
				c := cell{
					name:  fmt.Sprintf("%s-%d-%d", codec.name, size, batch),
					title: fmt.Sprintf("matrix: %s, %d B records, batches of %d KiB", codec.name, size, batch>>10),
					codec: codec.codec, loop: codec.name, size: size, batch: max(1, min(batch/size, largestBatch/(size+recordFrame))), records: matrixBytes / size,
				}
				if batch == 0 {
					c.title = fmt.Sprintf("matrix: %s, %d B records, one a batch", codec.name, size)
					c.records /= 8 // the brokers need a request for each
				}
				if batch == 0 || batch >= 2*size { // else it is the cell of one record
					all = append(all, c)
				}
			}
		}
	}
	all = append(all, cell{
		name: "far", title: fmt.Sprintf("uncompressed, 64 KiB batches, one partition read over a round trip of %d ms", farTrip.Milliseconds()),
		codec: kgo.NoCompression(), loop: "none", batch: 64, records: 512_000, parts: 1, far: true,
	}, cell{
		name: "idle", title: "lz4, 16 KiB batches, among 10,000 idle partitions",
		codec: kgo.Lz4Compression(), loop: "lz4", batch: 16, records: 512_000, idle: 10_000,
	})
	for _, n := range []int{1, 200, 1000} {
		all = append(all, cell{
			name: fmt.Sprintf("parts-%d", n), title: fmt.Sprintf("lz4, 16 KiB batches, %d partitions", n),
			codec: kgo.Lz4Compression(), loop: "lz4", batch: 16, records: 512_000, parts: n,
		})
	}
	for i := range all {
		all[i].extra = true
	}
	return all
}

// idleTopic is how many partitions a topic of idle ones has.
const idleTopic = 100

// idleTopics are the names of the topics that stay empty.
func (c cell) idleTopics() []string {
	var names []string
	for i := range c.idle / idleTopic {
		names = append(names, fmt.Sprintf("%s-%d", c.name, i))
	}
	return names
}

// fill writes the cell's topic: distinct records with fresh timestamps, in
// batches of just the cell's size.
func (c cell) fill(ctx context.Context, a *kafkatest.Cluster) error {
	for _, name := range c.idleTopics() {
		if err := a.MakeTopic(ctx, name, idleTopic, nil); err != nil {
			return err
		}
	}
	if err := a.MakeTopic(ctx, c.name, int32(c.parts), nil); err != nil {
		return err
	}
	cl, err := a.Open(
		kgo.ProducerBatchCompression(c.codec), kgo.ProducerBatchMaxBytes(int32(c.batch*(c.size+recordFrame)+batchFrame)),
		kgo.ProducerLinger(100*time.Millisecond), kgo.MaxBufferedRecords(50_000),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	var failed atomic.Pointer[error]
	text := newDocument(uint64(len(c.name)))
	// A partition's records come in runs of a batch, so that with many partitions a
	// batch is full before its linger ends.
	for i := range c.records {
		r := &kgo.Record{Topic: c.name, Partition: int32(i / c.batch % c.parts), Value: c.value(text)}
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("fill %s: %w", c.name, *err)
	}
	return nil
}

// leastDocument is what a document needs for its names.
const leastDocument = 400

// value is a record's payload: a document, or a piece of one.
func (c cell) value(text *document) []byte {
	return text.append(nil, max(c.size, leastDocument))[:c.size]
}
