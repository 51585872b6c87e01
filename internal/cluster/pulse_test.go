package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// What is owed for long is no proof: only a broker that does not answer a fresh
// question either is silent. Then waits that may be cut are, others are left
// alone, and no connection is made to it until it answers.
func TestSilentBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare()
		var lives atomic.Bool
		lives.Store(true)
		c.pulse.ask = func(context.Context, string) error {
			if !lives.Load() {
				return os.ErrDeadlineExceeded
			}
			return errors.New("connection refused") // an answer as well
		}
		ctx, stop := context.WithCancel(t.Context())
		go c.pulse.loop(ctx)
		defer func() { stop(); synctest.Wait() }()
		var cut, kept atomic.Int32
		small := c.pulse.watch("here:1", func() { cut.Add(1) })
		data := c.pulse.watch("here:1", nil)
		idle := c.pulse.watch("here:1", func() { kept.Add(1) })
		small.asked()
		data.asked()
		silent := func(want bool) {
			t.Helper()
			synctest.Wait()
			if got := c.pulse.allow("west", "here:1") != nil; got != want {
				t.Fatalf("silent: %v, want %v", got, want)
			}
		}
		time.Sleep(2 * silentAfter)
		silent(false) // slow, but it lives
		lives.Store(false)
		time.Sleep(2 * silentAfter)
		silent(true)
		if cut.Load() == 0 || kept.Load() > 0 {
			t.Errorf("cut %d times, of those that wait for nothing %d", cut.Load(), kept.Load())
		}
		if err := c.pulse.allow("west", "there:1"); err != nil {
			t.Errorf("another broker: %v", err)
		}
		if op, ok := errors.AsType[*net.OpError](c.pulse.allow("west", "here:1")); !ok || op.Op != "dial" || kafka.ClassOf(c.pulse.allow("west", "here:1")) != kafka.ClassRetry {
			t.Errorf("franz-go would not ask who coordinates: %v", c.pulse.allow("west", "here:1"))
		}
		lives.Store(true)
		time.Sleep(2 * pulseEvery)
		silent(false)
		small.end()
		data.heard(true)
		data.heard(false)
		data.end()
		idle.end()
		if n := len(c.pulse.mu.brokers); n != 0 {
			t.Errorf("%d brokers are remembered for nothing", n)
		}
	})
}

// Metadata, which any broker has, is had from one that lives while another hangs.
func TestMetadataPastABrokerThatHangs(t *testing.T) {
	k, c := fake(t, func(o *Options) { o.RequestTimeout = time.Minute }, kfake.SeedTopics(1, "orders"), kfake.NumBrokers(2))
	if err := c.RefreshMetadata(deadline(t), "orders"); err != nil {
		t.Fatal(err)
	}
	const hung = 0
	k.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if k.CurrentNode() == hung {
			k.SleepControl(func() { <-t.Context().Done() })
		}
		return nil, nil, false
	})
	for range 4 { // in turn: one of them is the hung broker's
		if err := c.RefreshMetadata(deadline(t), "orders"); err != nil {
			t.Fatal(err)
		}
	}
	if !c.Silent(hung) || c.Silent(1-hung) {
		t.Errorf("silent: broker 0 %v, broker 1 %v", c.Silent(0), c.Silent(1))
	}
}
