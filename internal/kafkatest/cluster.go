package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// startPatience bounds how long a cluster may take to answer.
const startPatience = 90 * time.Second

// Protocol is the security protocol of a listener, in Kafka's words.
type Protocol string

// The protocols.
const (
	Plaintext     Protocol = "PLAINTEXT"
	SSL           Protocol = "SSL"
	SASLPlaintext Protocol = "SASL_PLAINTEXT"
	SASLSSL       Protocol = "SASL_SSL"
)

// ClusterOptions says what to start. The zero value of every field but Version is usable.
type ClusterOptions struct {
	// Name is the cluster's name in logs and failures; the release by default.
	Name string
	// Version is the release: [ReleaseSource], [ReleaseTarget], [ReleaseOld] or any other.
	Version string
	// Brokers is how many, one by default. A single KRaft broker is its own
	// controller; more get a controller beside them, so that any broker may die.
	Brokers int
	// Listeners are what clients may use, [Plaintext] by default. The first one
	// is what [Cluster.Bootstrap] names.
	Listeners []Protocol
	// ClientCertificates makes TLS listeners demand one.
	ClientCertificates bool
	// Users are the names and passwords of SASL, over PLAIN and SCRAM; each has a token
	// for OAUTHBEARER as well. User
	// "admin" with password "admin-secret" is always there and is a super user.
	Users map[string]string
	// Authorizer switches ACLs on and denies what none allows. Clients without a
	// name (plaintext, TLS without certificate) are super users then.
	Authorizer bool
	// Proxied puts a [Proxy] before the first listener of every broker and
	// advertises the proxy's address instead of the broker's.
	Proxied bool
	// Racks are the racks of the brokers, in the order of their ids; none by default.
	Racks []string
	// Features are finalized at a level of their own instead of the release's default.
	Features map[string]int16
	// Properties are added to every broker's server.properties and win over the harness's.
	Properties map[string]string
	// Disk is the size in bytes of a file system of its own that each broker's data
	// lie on, so that it can be filled; 0 puts them beside everything else.
	Disk int64
	// Heap is the JVM heap of each broker, "512m" by default.
	Heap string
	// JVM replaces the flags that trade peak speed for a quick start.
	JVM []string
}

// A Cluster is running Kafka. Its methods are safe for concurrent use.
type Cluster struct {
	opts    ClusterOptions
	release release
	jars    string
	dir     string // holds everything; removed by Close unless kept
	id      string // cluster id
	certs   *Certificates
	head    *Process // ZooKeeper or the controller; nil for a single KRaft broker
	headAt  string   // its address
	brokers []*Broker

	mu struct {
		sync.Mutex
		keep   bool // leave the directory for people to read
		closed bool
	}
}

// Start starts a cluster for one test and stops it at the test's end. When the
// test failed, the ends of the brokers' logs are shown and their directory is kept.
func Start(tb testing.TB, opts ClusterOptions) *Cluster {
	tb.Helper()
	requireJava(tb)
	c, err := Launch(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.ShowOnFailure(tb)
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Launch starts a cluster outside a test. The caller closes it.
func Launch(ctx context.Context, opts ClusterOptions) (*Cluster, error) {
	r, err := parseRelease(opts.Version)
	if err != nil {
		return nil, err
	}
	jars, err := Jars(ctx, opts.Version)
	if err != nil {
		return nil, err
	}
	opts = withDefaults(opts)
	dir, err := os.MkdirTemp("", "heliograph-kafka-"+opts.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", opts.Name, err)
	}
	c := &Cluster{opts: opts, release: r, jars: jars, dir: dir, id: newClusterID()}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := c.up(ctx); err != nil {
		c.mu.keep = true
		err = errors.Join(fmt.Errorf("start cluster %s: %w\n%s", opts.Name, err, c.Tails(25)), c.Close())
		return nil, err
	}
	return c, nil
}

func withDefaults(o ClusterOptions) ClusterOptions {
	if o.Name == "" {
		o.Name = o.Version
	}
	if o.Brokers == 0 {
		o.Brokers = 1
	}
	if len(o.Listeners) == 0 {
		o.Listeners = []Protocol{Plaintext}
	}
	if o.Heap == "" {
		o.Heap = "512m"
	}
	if o.JVM == nil {
		o.JVM = quickJVM
	}
	users := map[string]string{adminUser: adminPassword}
	maps.Copy(users, o.Users)
	o.Users = users
	return o
}

// up prepares and starts all processes and waits until every broker serves.
func (c *Cluster) up(ctx context.Context) error {
	if c.wantsTLS() {
		certs, err := NewCertificates(ctx, filepath.Join(c.dir, "tls"))
		if err != nil {
			return err
		}
		c.certs = certs
	}
	if err := c.writeTokens(); err != nil {
		return err
	}
	for id := 1; id <= c.opts.Brokers; id++ {
		b, err := c.newBroker(ctx, int32(id))
		if err != nil {
			return err
		}
		c.brokers = append(c.brokers, b)
	}
	if err := c.startHead(ctx); err != nil {
		return err
	}
	var group errgroup.Group
	for _, b := range c.brokers {
		group.Go(func() error { return b.start(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, b := range c.brokers {
		if err := b.waitServing(ctx, c.opts.Brokers); err != nil {
			return err
		}
	}
	return c.createScramUsers(ctx)
}

func (c *Cluster) wantsTLS() bool {
	for _, p := range c.opts.Listeners {
		if p.tls() {
			return true
		}
	}
	return false
}

// Name is the cluster's name in logs.
func (c *Cluster) Name() string { return c.opts.Name }

// Version is the cluster's release.
func (c *Cluster) Version() string { return c.opts.Version }

// Dir holds the cluster's files.
func (c *Cluster) Dir() string { return c.dir }

// Brokers are the broker handles, in the order of their ids, which start at 1.
func (c *Cluster) Brokers() []*Broker { return c.brokers }

// Broker is the broker with an id.
func (c *Cluster) Broker(id int32) *Broker { return c.brokers[id-1] }

// Bootstrap is the address list of the first listener, as bootstrap.servers takes it.
func (c *Cluster) Bootstrap() string { return c.BootstrapOf(c.opts.Listeners[0]) }

// BootstrapOf is the address list of the listener with a protocol.
func (c *Cluster) BootstrapOf(p Protocol) string {
	list := make([]string, len(c.brokers))
	for i, b := range c.brokers {
		list[i] = b.Addr(p)
	}
	return strings.Join(list, ",")
}

// Internal is the address list of the listener that the harness itself uses. It
// needs no credentials and no proxy stands before it.
func (c *Cluster) Internal() []string {
	list := make([]string, len(c.brokers))
	for i, b := range c.brokers {
		list[i] = loopback(b.internal)
	}
	return list
}

// Certificates are the key material of the TLS listeners; nil without any.
func (c *Cluster) Certificates() *Certificates { return c.certs }

// Tails is the end of every process's log.
func (c *Cluster) Tails(lines int) string {
	var out []string
	if c.head != nil {
		out = append(out, c.head.Tail(lines))
	}
	for _, b := range c.brokers {
		if p := b.Process(); p != nil {
			out = append(out, p.Tail(lines))
		}
	}
	return strings.Join(out, "\n")
}

// ShowOnFailure logs the ends of the brokers' logs when tb has failed, and keeps
// the cluster's directory.
func (c *Cluster) ShowOnFailure(tb testing.TB) {
	tb.Helper()
	if !tb.Failed() {
		return
	}
	c.mu.Lock()
	c.mu.keep = true
	c.mu.Unlock()
	tb.Logf("cluster %s, kept in %s\n%s", c.opts.Name, c.dir, c.Tails(40))
}

// Close ends every process at once and removes the cluster's files. It can be called twice.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil
	}
	c.mu.closed = true
	var errs []error
	for _, b := range c.brokers {
		errs = append(errs, b.close())
	}
	if c.head != nil {
		errs = append(errs, c.head.Kill())
	}
	if !c.mu.keep {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}
