package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

const (
	softwareName    = "heliograph"
	softwareVersion = "1"
	// reauthAt is the part of a login's life after which a new link takes over.
	reauthAt = 0.95
)

// A link is one connection to one broker, authenticated, with the versions the
// broker speaks. It has no lock: one goroutine writes and one reads.
type link struct {
	client *Client
	nc     bulkConn
	node   int32
	addr   string

	wait *wait // for answers; nil while it is made

	fetch, produce int16 // newest usable versions, -1 where there is none
	reauth         time.Time
	ended          time.Time // when the login ends; zero for never
	deadline       time.Time // of nc, where a ProduceConn has it; under its lock
	correlation    int32
	sizeBytes      [4]byte
}

// connect opens a link to a node whose address is known or can be asked for.
func (c *Client) connect(ctx context.Context, node int32) (*link, error) {
	where, ok := c.topo.node(node)
	if !ok {
		if err := c.RefreshMetadata(ctx); err != nil {
			return nil, err
		}
		if where, ok = c.topo.node(node); !ok {
			return nil, &kafka.Error{
				Op: "connect", Cluster: c.opts.Alias, Subject: fmt.Sprintf("node %d", node),
				Class: kafka.ClassRefresh, Err: errors.New("the cluster does not list it"),
			}
		}
	}
	addr := where.addr()
	if err := c.pulse.allow(c.opts.Alias, addr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	connecting := c.pulse.watch(addr, func() { cancel(errSilent) })
	defer connecting.end()
	connecting.asked()
	nc, err := c.dial.dialBulk(ctx, addr)
	if err != nil {
		return nil, err
	}
	l := &link{client: c, nc: nc, node: node, addr: addr}
	if err := l.handshake(ctx); err != nil {
		_ = nc.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, c.fail("connect", addr, err)
	}
	l.wait = c.pulse.watch(addr, nil)
	c.stats.dials.Add(1)
	c.stats.connections.Add(1)
	return l, nil
}

func (l *link) handshake(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = l.nc.SetDeadline(longAgo()) })
	defer stop()
	if err := l.nc.SetDeadline(time.Now().Add(l.client.opts.RequestTimeout)); err != nil {
		return err
	}
	if err := l.learnVersions(); err != nil {
		return err
	}
	if err := l.login(ctx); err != nil {
		return err
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return l.nc.SetDeadline(time.Time{})
}

// longAgo is a deadline that has passed: it ends what waits on a connection.
func longAgo() time.Time { return time.Unix(1, 0) }

func (l *link) close() {
	l.wait.end()
	_ = l.nc.Close()
	l.client.stats.connections.Add(-1)
}

// learnVersions asks what the broker speaks. A broker that does not know the
// version of the question answers in version 0, which then is asked for again.
func (l *link) learnVersions() error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = softwareName, softwareVersion
	req.Version = 3
	body, err := l.roundTrip(req)
	if err != nil {
		return err
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	if len(body) >= 2 && kafka.Code(binary.BigEndian.Uint16(body)) == kafka.CodeUnsupportedVersion {
		req.Version = 0
		if body, err = l.roundTrip(req); err != nil {
			return err
		}
	}
	resp.Version = req.Version
	if err := resp.ReadFrom(body); err != nil {
		return errAnswer
	}
	if resp.ErrorCode != 0 {
		return kafka.Code(resp.ErrorCode)
	}
	l.fetch, l.produce = -1, -1
	for _, k := range resp.ApiKeys {
		switch k.ApiKey {
		case keyFetch:
			l.fetch = common(k.MinVersion, k.MaxVersion, minFetch, maxFetch)
		case keyProduce:
			l.produce = common(k.MinVersion, k.MaxVersion, minProduce, maxProduce)
		}
	}
	return nil
}

// common is the newest version in both ranges, or -1.
func common(theirMin, theirMax, ourMin, ourMax int16) int16 {
	if v := min(theirMax, ourMax); v >= max(theirMin, ourMin) {
		return v
	}
	return -1
}

// roundTrip sends one request and reads its answer, while nothing else is
// under way. It returns the answer without its header.
func (l *link) roundTrip(req kmsg.Request) ([]byte, error) {
	l.correlation++
	wire := kmsg.NewRequestFormatter(kmsg.FormatterClientID(l.client.opts.ClientID)).
		AppendRequest(nil, req, l.correlation)
	if _, err := l.nc.Write(wire); err != nil {
		return nil, err
	}
	body, err := l.readSmall(l.nc)
	if err != nil {
		return nil, err
	}
	r := reader{b: body, flexible: req.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16()}
	if got := r.int32(); got != l.correlation {
		return nil, errOrder(got, l.correlation)
	}
	r.skipTags()
	if r.bad {
		return nil, errAnswer
	}
	return r.b, nil
}

func errOrder(got, want int32) error {
	return fmt.Errorf("an answer came for request %d where %d was awaited", got, want)
}

// readSmall reads a whole answer into memory of its own.
func (l *link) readSmall(from io.Reader) ([]byte, error) {
	n, err := l.readSize(from)
	if err != nil {
		return nil, err
	}
	// A size is not to be believed before its bytes are there.
	body := make([]byte, 0, min(n, 64<<10))
	for len(body) < n {
		step := min(n-len(body), max(len(body), 64<<10))
		start := len(body)
		body = append(body, make([]byte, step)...)
		if _, err := io.ReadFull(from, body[start:]); err != nil {
			return nil, cutOff(err)
		}
	}
	return body, nil
}

// readSize reads the four bytes in front of an answer and checks them.
func (l *link) readSize(from io.Reader) (int, error) {
	if _, err := io.ReadFull(from, l.sizeBytes[:]); err != nil {
		return 0, cutOff(err)
	}
	size := binary.BigEndian.Uint32(l.sizeBytes[:])
	if size > uint32(min(l.client.opts.MaxResponseBytes, math.MaxInt32)) {
		return 0, errNotKafka(size, l.client.opts.MaxResponseBytes)
	}
	if size < 4 {
		return 0, errAnswer
	}
	return int(size), nil
}

// cutOff names an end of stream for what it is to an operator.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the broker closed the connection: %w", err)
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return fmt.Errorf("no answer in time: %w", err)
	}
	return err
}

// kbinError keeps franz-go's decoding errors out of our texts.
func kbinError(err error) error {
	if errors.Is(err, kbin.ErrNotEnoughData) {
		return errAnswer
	}
	return err
}
