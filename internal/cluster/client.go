package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"

	"heliograph/internal/kafka"
)

// A Client is one cluster under one alias and one set of credentials. It is
// safe for concurrent use; the connections it dials are not, see their types.
type Client struct {
	opts  Options
	creds credentials
	dial  dialer
	gate  *gate
	stats counters
	kgo   *kgo.Client
	adm   *kadm.Client
	topo  topology
	pulse pulse
	large sync.Map // topics whose records may be large

	fetchPool *pool // blocks of data, counted against Options.Budget
	smallPool *pool // blocks of answers and of bookkeeping reads, not counted

	cancel context.CancelFunc
	wg     sync.WaitGroup // the topology's and the pulse's loop and every connection's goroutines

	mu struct {
		sync.Mutex
		closed bool
		conns  map[*ProduceConn]struct{}
		// ender ends transactions by protocol 2: franz-go takes a newest version per
		// client, not per request. It is made when the first is ended.
		ender *kgo.Client
	}
}

// Open makes a client. It reads key stores and checks the mechanism, but does
// not contact the cluster: an unreachable one is found by the first request.
func Open(o Options) (*Client, error) {
	if len(o.BootstrapServers) == 0 {
		return nil, &kafka.Error{Op: "open", Cluster: o.Alias, Class: kafka.ClassOperator, Err: errors.New("no bootstrap servers")}
	}
	o = o.withDefaults()
	creds, err := o.Security.build()
	if err != nil {
		return nil, &kafka.Error{Op: "open", Cluster: o.Alias, Class: kafka.ClassOperator, Err: err}
	}
	c := &Client{opts: o, creds: creds, fetchPool: newPool(o.Budget), smallPool: newPool(nil)}
	c.gate = &gate{log: o.Log, stats: &c.stats}
	c.dial = dialer{alias: o.Alias, tls: creds.tls, timeout: o.DialTimeout, gate: c.gate, pulse: &c.pulse}
	c.pulse.init(c)
	c.mu.conns = make(map[*ProduceConn]struct{})
	if c.kgo, err = kgo.NewClient(append(c.kgoOptions(),
		// A caller's deadline counts even for a record that may have been written:
		// what we write this way is keyed and may be written twice.
		kgo.AllowIdempotentProduceCancellation())...); err != nil {
		return nil, &kafka.Error{Op: "open", Cluster: o.Alias, Class: kafka.ClassOperator, Err: err}
	}
	c.adm = kadm.NewClient(c.kgo)
	c.topo.init(c)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { c.topo.loop(ctx) })
	c.wg.Go(func() { c.pulse.loop(ctx) })
	return c, nil
}

// maxSmallResponse is the most that franz-go takes.
const maxSmallResponse = 1 << 30

// versions are the newest that franz-go may use.
func versions() *kversion.Versions {
	// Transaction requests stay at protocol 1 even where the cluster's feature
	// level is 2: the fence needs AddPartitionsToTxn and EndTxn as they were. What
	// ends by protocol 2 has a client of its own.
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.InitProducerID), 4)
	v.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3)
	v.SetMaxKeyVersion(int16(kmsg.EndTxn), 3)
	return v
}

func (c *Client) kgoOptions() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.opts.BootstrapServers...),
		kgo.ClientID(c.opts.ClientID),
		kgo.Dialer(c.dial.dialSmall),
		kgo.RequestTimeoutOverhead(c.opts.RequestTimeout),
		kgo.RetryTimeout(c.opts.RequestTimeout),
		kgo.MetadataMaxAge(c.opts.MetadataMaxAge),
		kgo.MaxVersions(versions()),
		kgo.WithLogger(newKgoLogger(c.opts.Log)),
		kgo.BrokerMaxReadBytes(min(max(c.opts.MaxResponseBytes, defaultMaxResponseBytes), maxSmallResponse)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytesFn(c.batchBytes),
	}
	if c.creds.mechanism != nil {
		opts = append(opts, kgo.SASL(watched{c.creds.mechanism, c.gate}))
	}
	return opts
}

// Alias is the cluster's name in the configuration.
func (c *Client) Alias() string { return c.opts.Alias }

// Close ends all produce connections and waits for their goroutines: every
// request that Send accepted is answered, by an error where the broker did not.
// Fetch connections have no goroutine and end with their own Close.
func (c *Client) Close() {
	c.mu.Lock()
	c.mu.closed = true
	ender := c.mu.ender
	conns := make([]*ProduceConn, 0, len(c.mu.conns))
	for p := range c.mu.conns {
		conns = append(conns, p)
	}
	c.mu.Unlock()
	for _, p := range conns {
		p.Close()
	}
	c.cancel()
	c.wg.Wait()
	c.kgo.Close()
	if ender != nil {
		ender.Close()
	}
	c.fetchPool.close()
	c.smallPool.close()
}

// watched tells the gate of logins that franz-go brought to their end. Refused
// ones show only in the error of the request that needed them.
type watched struct {
	sasl.Mechanism
	gate *gate
}

// Authenticate starts a session that reports its success.
func (w watched) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	s, first, err := w.Mechanism.Authenticate(ctx, host)
	if err != nil {
		w.gate.failed(kafka.CodeNone, err)
		return nil, nil, err
	}
	return watchedSession{s, w.gate}, first, nil
}

type watchedSession struct {
	sasl.Session
	gate *gate
}

func (s watchedSession) Challenge(resp []byte) (bool, []byte, error) {
	done, next, err := s.Session.Challenge(resp)
	if done && err == nil {
		s.gate.passed()
	}
	return done, next, err
}
