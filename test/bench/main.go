//go:build bench

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const (
	sourceTopic = "bulk"
	partitions  = 8
	recordSize  = 1024
	// turnPatience bounds one turn of one contender.
	turnPatience = 10 * time.Minute
)

type options struct {
	binary, report string
	turns, records int
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/heliograph", "the program to measure")
	flag.StringVar(&o.report, "report", "docs/benchmarks.md", "file to append the results to")
	flag.IntVar(&o.turns, "turns", 3, "turns of every contender; medians are reported")
	flag.IntVar(&o.records, "records", 3_000_000, "records of 1 KiB to copy")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "heliograph-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%w (run make build)", err)
	}
	// Brokers at their full speed: the quick-start flags of tests would slow all contenders.
	full := []string{"-XX:+UseG1GC"}
	a, err := kafkatest.Launch(ctx, kafkatest.ClusterOptions{Name: "A", Version: kafkatest.ReleaseSource, Heap: "1g", JVM: full})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := kafkatest.Launch(ctx, kafkatest.ClusterOptions{Name: "B", Version: kafkatest.ReleaseTarget, Heap: "1g", JVM: full})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := fill(ctx, a, o.records); err != nil {
		return err
	}
	results := map[string][]result{}
	field := contenders(binary)
	// In turns, so that a slow minute of the machine meets everybody.
	for turn := range o.turns {
		for _, c := range field {
			at := stage{dir: dir, source: a, target: b, alias: fmt.Sprintf("%s%d", c.short, turn+1), records: o.records}
			r, err := at.measure(ctx, c)
			if err != nil {
				return fmt.Errorf("%s, turn %d: %w", c.name, turn+1, err)
			}
			fmt.Printf("%-28s %s\n", c.name, r)
			results[c.name] = append(results[c.name], r)
		}
	}
	return appendReport(ctx, o, field, results)
}

// fill writes the source topic: records of 1 KiB that do not compress, in batches
// as large as a busy producer makes them.
func fill(ctx context.Context, a *kafkatest.Cluster, records int) error {
	if err := a.MakeTopic(ctx, sourceTopic, partitions, nil); err != nil {
		return err
	}
	cl, err := a.Open(kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(64<<10), kgo.ProducerLinger(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	pool := make([]byte, 1<<20)
	for i := range pool {
		pool[i] = byte(rng.Uint32())
	}
	var failed error
	for i := range records {
		at := rng.IntN(len(pool) - recordSize)
		cl.Produce(ctx, &kgo.Record{Topic: sourceTopic, Partition: int32(i % partitions), Value: pool[at : at+recordSize]}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	return failed
}

// stage is one turn: an alias of its own makes every contender start from nothing.
type stage struct {
	dir            string
	source, target *kafkatest.Cluster
	alias          string
	records        int
}

func (s stage) measure(ctx context.Context, c contender) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	cl, err := s.target.Open()
	if err != nil {
		return r, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	file := filepath.Join(s.dir, s.alias+".properties")
	if err := os.WriteFile(file, c.file(s), 0o600); err != nil {
		return r, err
	}
	begin := time.Now()
	p, err := c.start(ctx, s, file)
	if err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, p.Kill())
		// The next turn needs the disk.
		_, deleteErr := adm.DeleteTopic(ctx, s.remoteTopic())
		err = errors.Join(err, deleteErr)
	}()
	if err := s.await(ctx, adm, p, 1); err != nil {
		return r, err
	}
	r.first, r.startCPU = time.Since(begin), p.CPU()
	if err := s.await(ctx, adm, p, int64(s.records)); err != nil {
		return r, err
	}
	r.copy = time.Since(begin) - r.first
	r.copyCPU = p.CPU() - r.startCPU
	r.memory = p.PeakMemory()
	return r, nil
}

func (s stage) remoteTopic() string { return s.alias + "." + sourceTopic }

// await returns once so many records have arrived.
func (s stage) await(ctx context.Context, adm *kadm.Client, p *kafkatest.Process, want int64) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		var have int64
		// An error is the topic that does not exist yet.
		if ends, err := adm.ListEndOffsets(ctx, s.remoteTopic()); err == nil && ends.Error() == nil {
			ends.Each(func(o kadm.ListedOffset) { have += o.Offset })
		}
		if have >= want {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("it ended by itself after %d of %d records: %s", have, want, p.Tail(20))
		case <-ctx.Done():
			return fmt.Errorf("%d of %d records: %w: %s", have, want, context.Cause(ctx), p.Tail(20))
		case <-poll.C:
		}
	}
}
