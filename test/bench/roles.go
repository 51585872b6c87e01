//go:build bench

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// role is what this program does when it is a contender itself.
type role struct {
	name         string
	from, to     string // broker lists, or addresses
	topic, copy  string
	codec        string
	caFrom, caTo string // files; empty is plaintext
}

func (r role) run(ctx context.Context) error {
	switch r.name {
	case loop:
		return r.loop(ctx)
	case relay:
		return r.relay(ctx)
	}
	return fmt.Errorf("role %q is unknown", r.name)
}

// loop is what most replicators are: it consumes records and produces them, with
// the same codec, to the same partition, with pooled memory.
func (r role) loop(ctx context.Context) error {
	codec := map[string]kgo.CompressionCodec{"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(), "none": kgo.NoCompression()}[r.codec]
	source, err := client(r.from, r.caFrom,
		kgo.ConsumeTopics(r.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.WithPools(&pools{}))
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := client(r.to, r.caTo,
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(1<<20))
	if err != nil {
		return err
	}
	defer target.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for ctx.Err() == nil {
		fetches := source.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(in *kgo.Record) {
			out := &kgo.Record{Topic: r.copy, Partition: in.Partition, Key: in.Key, Value: in.Value, Headers: in.Headers, Timestamp: in.Timestamp}
			target.Produce(ctx, out, func(_ *kgo.Record, err error) {
				if err != nil {
					cancel(err)
				}
				in.Recycle()
			})
		})
	}
	return context.Cause(ctx)
}

func client(brokers, ca string, opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append(opts, kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DisableClientMetrics())
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", ca)
		}
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}))
	}
	return kgo.NewClient(opts...)
}

// pools keep the memory of records that were read, for the next ones.
type pools struct{ blocks, records sync.Pool }

// GetDecompressBytes is memory for a batch: four times its size, or what a larger one left.
func (p *pools) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	if b, ok := p.blocks.Get().(*[]byte); ok && cap(*b) >= len(compressed) {
		return (*b)[:0]
	}
	return make([]byte, 0, 4*len(compressed))
}

// PutDecompressBytes takes it back.
func (p *pools) PutDecompressBytes(b []byte) { p.blocks.Put(&b) }

// GetRecords is memory for n records.
func (p *pools) GetRecords(n int) []kgo.Record {
	if r, ok := p.records.Get().(*[]kgo.Record); ok && cap(*r) >= n {
		return (*r)[:0]
	}
	return make([]kgo.Record, 0, n)
}

// PutRecords takes it back.
func (p *pools) PutRecords(r []kgo.Record) { p.records.Put(&r) }

// relayBlock is how much the relay reads at once.
const relayBlock = 256 << 10

// relay copies bytes from one connection to another until they end: what moving
// them costs at the very least.
func (r role) relay(ctx context.Context) error {
	var d net.Dialer
	in, err := d.DialContext(ctx, "tcp", r.from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := d.DialContext(ctx, "tcp", r.to)
	if err != nil {
		return err
	}
	defer out.Close()
	block := make([]byte, relayBlock)
	for {
		n, err := in.Read(block)
		if _, failed := out.Write(block[:n]); failed != nil {
			return failed
		}
		if err != nil {
			break // the end
		}
	}
	// Stay until told to go: the processor time of the living is read, not of the dead.
	if err := out.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// pump feeds a relay with as many bytes as a cell has on the wire and returns when all
// have come out.
type pump struct {
	in, out net.Listener
	moved   atomic.Int64
	failed  chan error
}

func newPump(ctx context.Context, size int64) (*pump, error) {
	var lc net.ListenConfig
	in, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	out, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		in.Close()
		return nil, err
	}
	p := &pump{in: in, out: out, failed: make(chan error, 2)}
	go func() { p.failed <- p.write(size) }()
	go func() { p.failed <- p.read() }()
	return p, nil
}

func (p *pump) write(size int64) error {
	conn, err := p.in.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	block := newDocument(1).append(nil, 1<<20)
	for size > 0 && err == nil {
		var n int
		n, err = conn.Write(block[:min(size, int64(len(block)))])
		size -= int64(n)
	}
	return err
}

func (p *pump) read() error {
	conn, err := p.out.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	block := make([]byte, 1<<20)
	for {
		n, err := conn.Read(block)
		p.moved.Add(int64(n))
		if err != nil {
			return nil
		}
	}
}

// wait returns when both ends are done.
func (p *pump) wait() error { return errors.Join(<-p.failed, <-p.failed) }

func (p *pump) close() {
	p.in.Close()
	p.out.Close()
}
