//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"heliograph/internal/kafkatest"
)

// What bad input and missing clusters get.

// TestBadFileIsRefusedWhole: a bad file ends with code 1 and all its problems,
// and nothing is contacted.
func TestBadFileIsRefusedWhole(t *testing.T) {
	t.Parallel()
	address, connections := listener(t)
	file := writeFile(t,
		"clusters = A, B",
		"A.bootstrap.servers = "+address,
		"B.bootstrap.servers = "+address,
		"A.security.protocol = SASL_PLAIN",
		"A->B.enabled = ja",
		"A->B.topics = orders[",
		"replication.factor = many",
		"A->B.emit.checkpoint.enabled = false",
	)
	h := start(t, file)
	h.exit(1)
	for line, key := range map[int]string{
		4: "A.security.protocol", 5: "A->B.enabled", 6: "A->B.topics", 7: "replication.factor", 8: "emit.checkpoints.enabled",
	} {
		if place := fmt.Sprintf("%s:%d: ", file, line); !strings.Contains(lineWith(h.Log(), place), key) {
			t.Errorf("no problem about %s in line %d:\n%s", key, line, h.Log())
		}
	}
	mirrorMaker(t, file).exit(2)
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

// listener accepts and counts connections for the time of a test.
func listener(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String(), connections
}

// mirrorMaker runs the program under MirrorMaker's name.
func mirrorMaker(t *testing.T, args ...string) *heliograph {
	t.Helper()
	link := filepath.Join(t.TempDir(), "connect-mirror-maker")
	if err := os.Symlink(binary(t), link); err != nil {
		t.Fatal(err)
	}
	return launch(t, link, args...)
}

// proxied stands before a cluster as its bootstrap address. The cluster's
// answers name its own address, so the proxy is what may not be there yet.
func proxied(t *testing.T, c *kafkatest.Cluster) *kafkatest.Proxy {
	t.Helper()
	p, err := kafkatest.NewProxy(t.Context(), c.Bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestUnreachableSourceWaits: its flow waits and says so, other flows run, and
// it starts by itself when the source is there.
func TestUnreachableSourceWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := kafkatest.Shared(t, kafkatest.ReleaseOld)
	topic, elsewhere := f.topic1(), f.topic("test-topic-of-another")
	other.CreateTopic(t, elsewhere, 1, nil)
	other.Produce(t, kafkatest.Messages(elsewhere, 1, 10))
	f.produce(f.primary, topic, partitions, 100)
	proxy := proxied(t, f.primary)
	proxy.Cut()

	third := "third-" + f.name
	h := start(t, f.oneWay(
		"clusters = "+f.from+", "+f.to+", "+third,
		f.from+".bootstrap.servers = "+proxy.Addr(),
		third+".bootstrap.servers = "+other.Bootstrap(),
		third+"->"+f.to+".enabled = true",
		f.from+"->"+third+".emit.heartbeats.enabled = false",
		third+"->"+f.from+".emit.heartbeats.enabled = false",
		f.to+"->"+third+".emit.heartbeats.enabled = false",
	))
	f.backup.AwaitRecords(within(t, patience), t, third+"."+elsewhere, 10)
	h.awaitState(third+"->"+f.to, "running")
	if why := h.awaitState(f.flow(), "waiting"); !strings.Contains(why, f.from) || !strings.Contains(why, proxy.Addr()) {
		t.Errorf("the reason %q does not name the source and its address", why)
	}
	if line := h.awaitLog(f.flow(), "waiting for it"); !strings.Contains(line, f.from) {
		t.Errorf("the log does not name the source: %s", line)
	}
	if status, _ := h.get("/healthz/ready"); status != http.StatusServiceUnavailable {
		t.Errorf("ready answers %d while a source is missing", status)
	}
	proxy.Heal()
	awaitCount(within(t, patience), t, f.backup, f.remote(topic), 100)
	h.awaitState(f.flow(), "running")
	h.stop()
}

// TestUnreachableTargetUnderMirrorMakersName exits as MirrorMaker does.
func TestUnreachableTargetUnderMirrorMakersName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy := proxied(t, f.backup)
	proxy.Cut()
	h := mirrorMaker(t, f.oneWay(f.to+".bootstrap.servers = "+proxy.Addr(), "heliograph.metrics.address = off"))
	code, err := h.ExitCode(within(t, 2*patience))
	if err != nil {
		t.Fatal(err)
	}
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if !strings.Contains(h.Log(), f.to) || !strings.Contains(h.Log(), proxy.Addr()) {
		t.Error("the log does not name the target and its address")
	}
}

// TestFactorThatDoesNotFit: the refused factor is named with the one that fits.
func TestFactorThatDoesNotFit(t *testing.T) {
	t.Parallel()
	t.Run("remote topics", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.topic1()
		h := start(t, f.oneWay("replication.factor = 2"))
		why := h.awaitState(f.flow(), "degraded")
		for _, want := range []string{f.topic("test-topic-1"), "replication factor 2", "1 broker"} {
			if !strings.Contains(why, want) {
				t.Errorf("the reason %q lacks %q", why, want)
			}
		}
		h.awaitLog(f.remote(f.topic("test-topic-1")), "replication.factor", "1")
		h.stop()
	})
	t.Run("internal topics", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		h := start(t, f.oneWay("offset-syncs.topic.replication.factor = 3"))
		why := h.awaitState(f.flow(), "waiting")
		for _, want := range []string{"mm2-offset-syncs." + f.to + ".internal", "replication factor 3", "1 broker", "offset-syncs.topic.replication.factor"} {
			if !strings.Contains(why, want) {
				t.Errorf("the reason %q lacks %q", why, want)
			}
		}
		h.stop()
	})
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		h := launch(t, binary(t), "check", "--connect", f.oneWay("replication.factor = 2"))
		h.exit(3)
		h.awaitLog("replication factor of 2", "1 broker", "replication.factor = 1 would fit")
	})
}

// TestLoopsAreRefused: what would feed itself is refused before anything is written.
func TestLoopsAreRefused(t *testing.T) {
	t.Parallel()
	t.Run("identity both ways", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.identity = true
		h := start(t, f.file(f.to+"->"+f.from+".enabled = true"))
		h.exit(1)
		if !strings.Contains(h.Log(), "round for ever") || !strings.Contains(h.Log(), f.topic("test-topic-")) {
			t.Errorf("the log does not say what would go round:\n%s", h.Log())
		}
		untouched(t, f)
	})
	t.Run("one cluster, two aliases", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.topic1()
		// Two spellings of one address: only the cluster itself can tell.
		h := start(t, f.oneWay(f.to+".bootstrap.servers = "+localhost(t, f.primary.Bootstrap())))
		why := h.awaitState(f.flow(), "failed")
		for _, want := range []string{f.from, f.to, "same cluster"} {
			if !strings.Contains(why, want) {
				t.Errorf("the reason %q lacks %q", why, want)
			}
		}
		h.stop()
		untouched(t, f)
	})
}

// untouched checks that no topic of the test's flow was made on either cluster.
func untouched(t *testing.T, f *fixture) {
	t.Helper()
	for _, c := range []*kafkatest.Cluster{f.primary, f.backup} {
		for _, topic := range c.TopicNames(t) {
			if strings.Contains(topic, f.from) || strings.Contains(topic, f.to) {
				t.Errorf("cluster %s has %s", c.Name(), topic)
			}
		}
	}
}
