//go:build bench

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heliograph/internal/kafkatest"
)

type options struct {
	binary, report, profiles string
	only, on                 string // contenders and cells; empty is all
	turns                    int
	quick, full              bool
	role                     role
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/heliograph", "the program to measure")
	flag.StringVar(&o.report, "report", "docs/benchmarks.md", "file to append the results to, or - to print them")
	flag.IntVar(&o.turns, "turns", 0, "turns of every contender; medians are reported (default 3, with -quick 1)")
	flag.BoolVar(&o.quick, "quick", false, "less data, no TLS")
	flag.BoolVar(&o.full, "full", false, "the whole matrix of codecs, sizes and partitions as well; hours")
	flag.StringVar(&o.only, "contenders", "", "of helio,java,tuned,loop,relay,direct, instead of all")
	flag.StringVar(&o.on, "cells", "", "of lz4-16k,lz4-64k,plain-64k,one,tls,latency, and with -full far, idle and those of the matrix, instead of all")
	flag.StringVar(&o.profiles, "profiles", "", "directory for processor profiles of heliograph")
	flag.StringVar(&o.role.name, "role", "", "be the loop or the relay (set by the bench itself, as all below)")
	flag.StringVar(&o.role.from, "from", "", "where the role reads")
	flag.StringVar(&o.role.to, "to", "", "where the role writes")
	flag.StringVar(&o.role.topic, "topic", "", "topic the loop reads")
	flag.StringVar(&o.role.copy, "copy", "", "topic the loop writes")
	flag.StringVar(&o.role.codec, "codec", "", "codec the loop writes with")
	flag.StringVar(&o.role.caFrom, "ca-from", "", "certificate authority of the source")
	flag.StringVar(&o.role.caTo, "ca-to", "", "certificate authority of the target")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	if o.role.name != "" {
		return o.role.run(ctx)
	}
	if o.turns == 0 {
		o.turns = 3
		if o.quick {
			o.turns = 1
		}
	}
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%w (run make build)", err)
	}
	o.binary = binary
	dir, err := os.MkdirTemp("", "heliograph-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{options: o, dir: dir}
	for _, c := range contenders(o) {
		if chosen(o.only, c.short) {
			b.field = append(b.field, c)
		}
	}
	return b.measure(ctx)
}

func chosen(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// bench is one run with what it has measured so far.
type bench struct {
	options
	dir     string
	field   []contender
	source  *kafkatest.Cluster
	copies  []copied
	latency []timed
	// failures are turns that did not end well; they fail the run once its report is written.
	failures []error
}

// copied are the results of one cell, by contender.
type copied struct {
	cell
	wire    int64 // bytes of the topic in the source's log
	results map[string][]result
	failed  map[string]string // what went wrong, by contender
}

// setting is the clusters that a cell needs.
type setting struct{ secured, far bool }

// measure runs all cells: first those to one broker, then those to three, then those
// from a source that is far away.
func (b *bench) measure(ctx context.Context) (err error) {
	b.source, err = launch(ctx, "A", kafkatest.ReleaseSource, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.source.Close()) }()
	for _, at := range []setting{{}, {secured: true}, {far: true}} {
		var run []cell
		for _, c := range cells(b.quick, b.full) {
			if c.secured == at.secured && c.far == at.far && chosen(b.on, c.name) {
				run = append(run, c)
			}
		}
		timing := at == setting{} && chosen(b.on, latencyTopic)
		if len(run) == 0 && !timing {
			continue
		}
		if err := b.at(ctx, at, run, timing); err != nil {
			b.failures = append(b.failures, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.Join(append(b.failures, b.write(ctx))...)
}

// farTrip is the round trip to a source that is far away. A proxy makes it, so that
// effects of socket buffers are not in it.
const farTrip = 150 * time.Millisecond

// at runs cells in their setting.
func (b *bench) at(ctx context.Context, at setting, run []cell, timing bool) (err error) {
	if !at.far {
		return b.against(ctx, at.secured, run, timing)
	}
	far, err := kafkatest.Launch(ctx, settings("far", kafkatest.ReleaseSource, 1, true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, far.Close()) }()
	for _, broker := range far.Brokers() {
		broker.Proxy().Delay(farTrip / 2)
	}
	defer func(near *kafkatest.Cluster) { b.source = near }(b.source)
	b.source = far
	return b.against(ctx, false, run, timing)
}

// against starts a target, one broker or three, and runs cells on it.
func (b *bench) against(ctx context.Context, secured bool, run []cell, timing bool) (err error) {
	brokers := 1
	if secured {
		brokers = 3
	}
	target, err := launch(ctx, "B", kafkatest.ReleaseTarget, brokers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	for i, c := range run {
		fmt.Printf("%s: %d records of %d B\n", c.title, c.records, c.size)
		done, err := b.runCell(ctx, target, c, i == 0)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Printf("  the cell failed: %v\n", err)
			b.failures = append(b.failures, fmt.Errorf("%s: %w", c.name, err))
		}
		b.copies = append(b.copies, done)
	}
	if timing {
		return b.time(ctx, target)
	}
	return nil
}

// runCell has every contender copy a cell, in turns, so that a slow minute of the
// machine meets everybody. Brokers that have done nothing yet are warmed up by a
// turn that counts for nobody: until their code is compiled they are several times
// slower, and the first contender would pay for that.
func (b *bench) runCell(ctx context.Context, target *kafkatest.Cluster, c cell, cold bool) (copied, error) {
	done := copied{cell: c, results: map[string][]result{}, failed: map[string]string{}}
	if err := c.fill(ctx, b.source); err != nil {
		return done, err
	}
	var err error
	if done.wire, err = logSize(ctx, b.source, c.name); err != nil {
		return done, err
	}
	if cold {
		if err := b.warmUp(ctx, b.turn(target, &done, 0, helio)); err != nil {
			return done, err
		}
	}
	for turn := range b.turns {
		for _, who := range b.field {
			if c.far && who.short == relay {
				continue // it has no way that is long
			}
			r, err := b.turn(target, &done, turn+1, who.short).copy(ctx, who)
			if ctx.Err() != nil {
				return done, context.Cause(ctx)
			}
			if err != nil { // the others go on: half an hour is not to be lost to one
				fmt.Printf("  %-24s failed: %v\n", who.name, err)
				done.failed[who.short] = fmt.Sprintf("turn %d: %v", turn+1, err)
				b.failures = append(b.failures, fmt.Errorf("%s, %s, turn %d: %w", c.name, who.name, turn+1, err))
				continue
			}
			fmt.Printf("  %-24s %s\n", who.name, r)
			done.results[who.short] = append(done.results[who.short], r)
		}
	}
	for _, name := range c.idleTopics() {
		if err := dropTopic(ctx, b.source, name); err != nil {
			return done, err
		}
	}
	return done, dropTopic(ctx, b.source, c.name)
}

// turn is the stage for a contender's turn.
func (b *bench) turn(target *kafkatest.Cluster, c *copied, turn int, short string) stage {
	return stage{
		dir: b.dir, source: b.source, target: target, secured: c.secured, topic: c.name, codec: c.loop,
		records: c.records, size: c.size, parts: c.parts, idle: c.idleTopics(),
		alias: fmt.Sprintf("%s%d%s", short, turn, c.name), profiles: b.profiles, wire: c.wire,
	}
}

// warmUp has heliograph copy the cell once, and throws the result away.
func (b *bench) warmUp(ctx context.Context, s stage) error {
	s.profiles = ""
	for _, c := range contenders(options{binary: b.binary}) {
		if c.short == helio {
			r, err := s.copy(ctx, c)
			if err != nil {
				return fmt.Errorf("warm up: %w", err)
			}
			fmt.Printf("  %-24s %s\n", "(warming up)", r)
		}
	}
	return nil
}

// launch starts a cluster at full speed: the quick-start flags of tests would
// slow all contenders. What was deleted leaves the disk at once.
func launch(ctx context.Context, name, version string, brokers int) (*kafkatest.Cluster, error) {
	return kafkatest.Launch(ctx, settings(name, version, brokers, false))
}

// settings are those of a cluster. One that is far away has a proxy before its
// plaintext listener, and leaves the size of its socket buffers to the kernel.
func settings(name, version string, brokers int, far bool) kafkatest.ClusterOptions {
	o := kafkatest.ClusterOptions{
		Name: name, Version: version, Brokers: brokers, Heap: "1g", JVM: []string{"-XX:+UseG1GC"},
		Listeners:  []kafkatest.Protocol{kafkatest.Plaintext, kafkatest.SSL},
		Properties: map[string]string{"log.segment.delete.delay.ms": "1000"},
	}
	if far {
		o.Proxied = true
		o.Properties["socket.send.buffer.bytes"], o.Properties["socket.receive.buffer.bytes"] = "-1", "-1"
	}
	return o
}
