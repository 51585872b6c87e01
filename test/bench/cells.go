//go:build bench

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const (
	partitions = 8
	recordSize = 1024 // payload of a record of the copy cells
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
	secured bool // TLS on both sides, to three brokers
}

func (c cell) payload(records int64) float64 { return float64(records) * recordSize / 1e6 }

// cells are the copies, in the order they run. The one of the backlog is the largest.
func cells(quick bool) []cell {
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
	return all
}

// fill writes the cell's topic: distinct records with fresh timestamps, in
// batches of just the cell's size.
func (c cell) fill(ctx context.Context, a *kafkatest.Cluster) error {
	if err := a.MakeTopic(ctx, c.name, partitions, nil); err != nil {
		return err
	}
	cl, err := a.Open(
		kgo.ProducerBatchCompression(c.codec), kgo.ProducerBatchMaxBytes(int32(c.batch*(recordSize+recordFrame)+batchFrame)),
		kgo.ProducerLinger(100*time.Millisecond), kgo.MaxBufferedRecords(50_000),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	var failed atomic.Pointer[error]
	text := newDocument(uint64(len(c.name)))
	for i := range c.records {
		r := &kgo.Record{Topic: c.name, Partition: int32(i % partitions), Value: text.append(nil, recordSize)}
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
