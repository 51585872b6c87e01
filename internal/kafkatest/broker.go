package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// pollEvery is the pace at which the harness asks a foreign process whether it is ready.
const pollEvery = 50 * time.Millisecond

// A Broker is one broker of a cluster: its ports and data outlive its process.
type Broker struct {
	cluster   *Cluster
	id        int32
	internal  int              // port of the internal listener
	control   int              // port of the controller listener; 0 where another process controls
	ports     map[Protocol]int // ports of the client listeners
	proxy     *Proxy           // before the first listener; nil unless asked for
	propsPath string
	dataDir   string
	mounted   bool    // dataDir is a small file system
	release   release // which may be newer than the cluster was started with
	jars      string

	mu struct {
		sync.Mutex
		process *Process
	}
}

func (c *Cluster) newBroker(ctx context.Context, id int32) (*Broker, error) {
	b := &Broker{
		cluster:   c,
		id:        id,
		ports:     map[Protocol]int{},
		propsPath: filepath.Join(c.dir, fmt.Sprintf("broker-%d.properties", id)),
		dataDir:   filepath.Join(c.dir, fmt.Sprintf("data-%d", id)),
		release:   c.release,
		jars:      c.jars,
	}
	var err error
	if b.internal, err = freePort(ctx); err != nil {
		return nil, err
	}
	if c.release.kraft() && c.opts.Brokers == 1 {
		if b.control, err = freePort(ctx); err != nil {
			return nil, err
		}
	}
	for _, p := range c.opts.Listeners {
		if b.ports[p], err = freePort(ctx); err != nil {
			return nil, err
		}
	}
	if c.opts.Proxied {
		if b.proxy, err = NewProxy(ctx, b.Listening()); err != nil {
			return nil, err
		}
	}
	return b, b.mount(ctx)
}

// ID is the node id.
func (b *Broker) ID() int32 { return b.id }

// Addr is the address clients of a listener use: the proxy's where one stands before it.
func (b *Broker) Addr(p Protocol) string {
	if b.proxy != nil && p == b.cluster.opts.Listeners[0] {
		return b.proxy.Addr()
	}
	return loopback(b.ports[p])
}

// Proxy stands before the first listener; nil unless the cluster is proxied.
func (b *Broker) Proxy() *Proxy { return b.proxy }

// Listening is where the broker itself listens for the cluster's first protocol,
// behind its proxy if it has one.
func (b *Broker) Listening() string { return loopback(b.ports[b.cluster.opts.Listeners[0]]) }

// DataDir holds the broker's log directories, one per partition ("topic-0").
func (b *Broker) DataDir() string { return b.dataDir }

// Process is the broker's current process; nil before its first start.
func (b *Broker) Process() *Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.process
}

// start formats the data directory when it is new and starts the process.
func (b *Broker) start(ctx context.Context) error {
	c := b.cluster
	if _, err := os.Stat(b.propsPath); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(b.propsPath, b.properties(), 0o600); err != nil {
			return err
		}
		if err := c.format(ctx, b.propsPath); err != nil {
			return err
		}
	}
	jvm := append([]string{"-Xms128m", "-Xmx" + c.opts.Heap}, c.opts.JVM...)
	p, err := StartProcess(ProcessSpec{
		Name: fmt.Sprintf("%s-broker-%d", c.opts.Name, b.id),
		Dir:  c.dir,
		Path: "java",
		Args: javaArgs(b.jars, jvm, "kafka.Kafka", b.propsPath),
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.mu.process = p
	b.mu.Unlock()
	return nil
}

// Kill ends the broker as a power cut would.
func (b *Broker) Kill() error { return b.Process().Kill() }

// Stop lets the broker shut down in order.
func (b *Broker) Stop() error { return b.Process().Stop() }

// Pause freezes the broker: its connections stay open, nothing is answered.
func (b *Broker) Pause() error { return b.Process().Pause() }

// Resume ends a pause.
func (b *Broker) Resume() error { return b.Process().Resume() }

// Restart starts a stopped or killed broker on the same ports and data and waits
// until it serves. A running one is stopped first.
func (b *Broker) Restart(ctx context.Context) error {
	if b.Process().Running() {
		if err := b.Stop(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if err := b.start(ctx); err != nil {
			return fmt.Errorf("restart broker %d of cluster %s: %w", b.id, b.cluster.opts.Name, err)
		}
		err := b.waitServing(ctx, 1)
		// ZooKeeper keeps a killed broker's registration until its session ends,
		// and a broker that finds its own id taken ends itself.
		if err == nil || b.cluster.release.kraft() || b.Process().Running() {
			return err
		}
	}
}

// waitServing returns once the broker's client ports accept and its own metadata
// lists itself among at least so many brokers.
func (b *Broker) waitServing(ctx context.Context, brokers int) error {
	p := b.Process()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var last error
	for {
		if last = b.serving(ctx, brokers); last == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("broker %d does not serve: %w", b.id, last)
		case <-poll.C:
		}
	}
}

func (b *Broker) serving(ctx context.Context, brokers int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var d net.Dialer
	for _, port := range append([]int{b.internal}, b.clientPorts()...) {
		conn, err := d.DialContext(ctx, "tcp", loopback(port))
		if err != nil {
			return err
		}
		conn.Close()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(loopback(b.internal)), kgo.DisableClientMetrics(), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	// No topics: only the cluster is asked for.
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := req.RequestWith(ctx, cl.SeedBrokers()[0])
	if err != nil {
		return err
	}
	self := false
	for _, node := range resp.Brokers {
		self = self || node.NodeID == b.id
	}
	if !self || len(resp.Brokers) < brokers {
		return fmt.Errorf("metadata lists %d of %d brokers", len(resp.Brokers), brokers)
	}
	return nil
}

func (b *Broker) clientPorts() []int {
	var out []int
	for _, port := range b.ports {
		out = append(out, port)
	}
	return out
}

func (b *Broker) close() error {
	var err error
	if p := b.Process(); p != nil {
		err = p.Kill()
	}
	if b.proxy != nil {
		err = errors.Join(err, b.proxy.Close())
	}
	return errors.Join(err, b.unmount())
}
