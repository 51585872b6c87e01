//go:build bench

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafkatest"
)

const (
	// patience bounds one turn of one contender.
	patience = 10 * time.Minute
	// profileAddress is where heliograph serves its profiles, for profileSeconds.
	profileAddress = "127.0.0.1:19464"
	profileSeconds = 5
)

// stage is one turn: an alias of its own makes every contender start from nothing.
type stage struct {
	dir            string
	source, target *kafkatest.Cluster
	secured        bool
	alias, topic   string
	codec          string
	records        int
	size, parts    int // of a record; of the topic
	wire           int64
	profiles       string
	idle           []string // topics beside it, to which nothing is written
}

func (s stage) remoteTopic() string { return s.alias + "." + s.topic }

func (s stage) protocol() kafkatest.Protocol {
	if s.secured {
		return kafkatest.SSL
	}
	return kafkatest.Plaintext
}

// result is what one turn showed. The copy begins with the first record that was
// seen on the target, so that a program's start is not part of it.
type result struct {
	first    time.Duration // from the start of the program to the first record on the target
	startCPU time.Duration // processor time until then
	records  int64         // that arrived after that
	copy     time.Duration // until the last one
	copyCPU  time.Duration // processor time for that
	memory   int64         // peak resident bytes
	size     int           // bytes of a record
	others   time.Duration // the 99th percentile of another client's writes meanwhile
	idling   float64       // part of a core that is used when all is copied; negative is not measured
}

// String is one line for the person who waits.
func (r result) String() string {
	mb := float64(r.records) * float64(r.size) / 1e6
	return fmt.Sprintf("first record %.2f s, then %.0f MB in %.1f s with %.2f CPU s (%.0f MB a CPU second), peak %d MB, others wait %.1f ms (p99)",
		r.first.Seconds(), mb, r.copy.Seconds(), r.copyCPU.Seconds(), mb/seconds(r.copyCPU), r.memory>>20, millis(r.others))
}

// seconds is never zero: the kernel counts in hundredths.
func seconds(d time.Duration) float64 { return max(d.Seconds(), 0.005) }

// copy has a contender copy the whole topic.
func (s stage) copy(ctx context.Context, c contender) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.short == relay {
		return s.relay(ctx)
	}
	cl, err := s.target.Open()
	if err != nil {
		return r, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	begin := time.Now()
	p, err := s.start(ctx, c)
	if err != nil {
		return r, err
	}
	r.size = s.size
	defer func() {
		err = errors.Join(err, p.Kill(), dropTopic(ctx, s.target, s.remoteTopic()))
		for _, name := range s.idle {
			err = errors.Join(err, dropTopic(ctx, s.target, s.alias+"."+name))
		}
	}()
	have, err := s.await(ctx, adm, p, 1)
	if err != nil {
		return r, err
	}
	r.first, r.startCPU, r.records = time.Since(begin), p.CPU(), int64(s.records)-have
	other, err := standBy(ctx, s.target)
	if err != nil {
		return r, err
	}
	profile := make(chan error, 1)
	if s.profiles != "" && c.short == helio {
		go func() { profile <- s.profile(ctx) }()
	} else {
		profile <- nil
	}
	_, err = s.await(ctx, adm, p, int64(s.records))
	r.copy = time.Since(begin) - r.first
	r.copyCPU = p.CPU() - r.startCPU
	r.memory = p.PeakMemory()
	var late error
	r.others, late = other.p99()
	r.idling = -1
	if err == nil && len(s.idle) > 0 {
		r.idling, err = idling(ctx, p)
		r.memory = p.PeakMemory()
	}
	return r, errors.Join(err, late, <-profile)
}

// idleFor is how long a program that has copied all is looked at.
const idleFor = 30 * time.Second

// idling is the part of a core that a program uses that has nothing to copy.
func idling(ctx context.Context, p *kafkatest.Process) (float64, error) {
	before := p.CPU()
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(idleFor):
	}
	return (p.CPU() - before).Seconds() / idleFor.Seconds(), nil
}

func (s stage) start(ctx context.Context, c contender) (*kafkatest.Process, error) {
	file := filepath.Join(s.dir, s.alias+".properties")
	if err := os.WriteFile(file, c.file(s), 0o600); err != nil {
		return nil, err
	}
	return c.start(ctx, s, file)
}

// relay moves as many bytes as the topic has through the relay.
func (s stage) relay(ctx context.Context) (r result, err error) {
	pump, err := newPump(ctx, s.wire)
	if err != nil {
		return r, err
	}
	defer pump.close()
	begin := time.Now()
	p, err := s.startRole("-role", relay, "-from", pump.in.Addr().String(), "-to", pump.out.Addr().String())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	if err := pump.wait(); err != nil {
		return r, fmt.Errorf("%w: %s", err, p.Tail(5))
	}
	return result{records: int64(s.records), size: s.size, copy: time.Since(begin), copyCPU: p.CPU(), memory: p.PeakMemory()}, nil
}

// await returns once so many records have arrived, and how many there are.
func (s stage) await(ctx context.Context, adm *kadm.Client, p *kafkatest.Process, want int64) (int64, error) {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		var have int64
		// An error is the topic that does not exist yet.
		if ends, err := adm.ListEndOffsets(ctx, s.remoteTopic()); err == nil && ends.Error() == nil {
			ends.Each(func(o kadm.ListedOffset) { have += o.Offset })
		}
		if have >= want {
			return have, nil
		}
		select {
		case <-p.Done():
			return have, fmt.Errorf("it ended by itself after %d of %d records: %s", have, want, p.Tail(20))
		case <-ctx.Done():
			return have, fmt.Errorf("%d of %d records: %w: %s", have, want, context.Cause(ctx), p.Tail(20))
		case <-poll.C:
		}
	}
}

// profile keeps a processor profile of the copy under the alias's name.
func (s stage) profile(ctx context.Context) error {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", profileAddress, profileSeconds)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := os.MkdirAll(s.profiles, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(s.profiles, s.alias+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// logSize is how many bytes a topic has in a cluster's log.
func logSize(ctx context.Context, c *kafkatest.Cluster, topic string) (int64, error) {
	cl, err := c.Open()
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	dirs, err := kadm.NewClient(cl).DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return 0, err
	}
	var size int64
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == topic {
				size += p.Size
			}
		})
	})
	return size, nil
}

// dropWithin bounds the deletion of a topic.
const dropWithin = 30 * time.Second

// dropTopic makes room for the next turn, also behind one whose time is up.
func dropTopic(ctx context.Context, c *kafkatest.Cluster, topic string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWithin)
	defer cancel()
	cl, err := c.Open()
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = kadm.NewClient(cl).DeleteTopic(ctx, topic)
	return err
}
