package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// A Lease tells whether the membership of a lane group is surely valid: until a
// session after the newest heartbeat was sent that the coordinator has answered
// well. A process that was frozen, or cut off, for longer must think itself
// replaced, whatever it has been told so far. The zero Lease is not held.
//
// Its clock is the monotonic one: it runs while a process is stopped.
type Lease struct{ until atomic.Pointer[time.Time] }

// Held reports whether the lease holds now.
func (l *Lease) Held() bool {
	until := l.until.Load()
	return until != nil && time.Now().Before(*until)
}

func (l *Lease) extend(until time.Time) { l.until.Store(&until) }

func (l *Lease) end() { l.until.Store(nil) }

// keepLease asks the coordinator, beside franz-go's own heartbeats, whose answers
// it does not show, whether we are a member still.
func (g *LaneGroup) keepLease(ctx context.Context) {
	ticker := time.NewTicker(g.opts.Session / 4)
	defer ticker.Stop()
	for {
		g.askLease(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-g.joined:
		}
	}
}

func (g *LaneGroup) askLease(ctx context.Context) {
	member, generation := g.kgo.GroupMetadata()
	if member == "" || generation < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.opts.Session)
	defer cancel()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = g.opts.Group, member, generation
	if g.opts.InstanceID != "" {
		req.InstanceID = new(g.opts.InstanceID)
	}
	sent := time.Now()
	resp, err := req.RequestWith(ctx, g.kgo)
	if err != nil {
		return
	}
	switch kafka.Code(resp.ErrorCode) {
	case kafka.CodeNone, kafka.CodeRebalanceInProgress: // a member that is asked to join again
		g.opts.Lease.extend(sent.Add(g.opts.Session))
	case kafka.CodeUnknownMemberID, kafka.CodeFencedInstanceID:
		g.opts.Lease.end()
	}
}
