package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
)

// LaneGroupOptions say which group shares out the partitions of which topic.
type LaneGroupOptions struct {
	Group string
	Topic string
	// InstanceID makes the member a static one (KIP-345): after a crash it finds
	// its partitions without waiting for the session to end. Empty for a dynamic one.
	InstanceID string
	Session    time.Duration

	// Assigned and Revoked are called one at a time. Partitions go to another
	// member only after Revoked has returned. Lost means that they are gone
	// already.
	Assigned func(partitions []int32)
	Revoked  func(partitions []int32)
	Lost     func(partitions []int32)
	// Failed hears why membership does not work at the moment; nil when it does again.
	Failed func(err error)
	// Lease is kept up while we are a member; nil for none.
	Lease *Lease
}

// LaneGroup is a member of an ordinary consumer group that reads nothing: being
// assigned a partition means owning it.
type LaneGroup struct {
	client *Client
	opts   LaneGroupOptions
	kgo    *kgo.Client
	once   sync.Once

	joined chan struct{} // partitions have just been assigned
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// JoinLaneGroup joins. The group's protocol type is "consumer", so Java
// MirrorMaker's workers of the same group and this member exclude each other.
func (c *Client) JoinLaneGroup(o LaneGroupOptions) (*LaneGroup, error) {
	g := &LaneGroup{client: c, opts: o, joined: make(chan struct{}, 1)}
	partitions := func(m map[string][]int32) []int32 { return m[o.Topic] }
	opts := append(c.kgoOptions(),
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeTopics(o.Topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(o.Session),
		kgo.HeartbeatInterval(o.Session/4),
		kgo.RebalanceTimeout(3*o.Session),
		// A coordinator that hangs must be noticed, and its successor found, before
		// the session ends.
		kgo.RequestTimeoutOverhead(o.Session/3),
		kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			o.Failed(nil)
			select {
			case g.joined <- struct{}{}:
			default:
			}
			o.Assigned(partitions(m))
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { o.Revoked(partitions(m)) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { o.Lost(partitions(m)) }),
		kgo.WithHooks(groupErrors(func(err error) { o.Failed(c.laneGroupError(o.Group, err)) })),
	)
	if o.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(o.InstanceID))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, &kafka.Error{Op: "join group", Cluster: c.opts.Alias, Subject: o.Group, Class: kafka.ClassOperator, Err: err}
	}
	client.PauseFetchTopics(o.Topic)
	g.kgo = client
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	if o.Lease != nil {
		g.wg.Go(func() { g.keepLease(ctx) })
	}
	return g, nil
}

type groupErrors func(error)

// OnGroupManageError is franz-go's hook for a group session that failed.
func (f groupErrors) OnGroupManageError(err error) { f(err) }

func (c *Client) laneGroupError(group string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	failed := c.fail("join group", group, err)
	var e *kafka.Error
	if errors.As(failed, &e) && e.Code == kafka.CodeInconsistentGroupProtocol {
		e.Hint = "MirrorMaker's own workers of this flow are alive in the group: stop them first"
	}
	return failed
}

// Leave gives all partitions up, through Revoked, and leaves the group at once,
// so that the next owner need not wait for the session to end.
func (g *LaneGroup) Leave(ctx context.Context) {
	g.once.Do(func() {
		g.cancel()
		g.wg.Wait()
		_ = g.kgo.LeaveGroupContext(ctx) // the session's end does the same, later
		if g.opts.InstanceID != "" {
			leave := kadm.LeaveGroup(g.opts.Group).Reason("stopped in order").InstanceIDs(g.opts.InstanceID)
			_, _ = g.client.adm.LeaveGroup(ctx, leave) // as above
		}
		g.kgo.Close()
	})
}
