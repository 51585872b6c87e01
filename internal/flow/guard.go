package flow

import (
	"context"
	"errors"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/kafka"
)

// leaseLook is how often a job that waits for the lease looks again.
const leaseLook = 20 * time.Millisecond

// errNoLease is why a change was not made.
var errNoLease = errors.New("not done: the lane group may have replaced this instance, and its successor does this job now")

// guarded is the target as the jobs see it that exist once: every change looks at
// the lease immediately before. A job that was frozen in the middle of its round
// and replaced meanwhile changes nothing when it wakes up.
//
// A flow that only writes heartbeats has no lease, and no successor.
type guarded struct {
	side
	lease *cluster.Lease
}

func (g guarded) check() error {
	if g.lease == nil || g.lease.Held() {
		return nil
	}
	return &kafka.Error{Op: "change", Cluster: g.Alias(), Class: kafka.ClassRetry, Err: errNoLease}
}

// AlterTopicConfigs changes settings.
func (g guarded) AlterTopicConfigs(ctx context.Context, changes map[string][]kafka.ConfigChange) map[string]error {
	if err := g.check(); err != nil {
		out := make(map[string]error, len(changes))
		for topic := range changes {
			out[topic] = err
		}
		return out
	}
	return g.side.AlterTopicConfigs(ctx, changes)
}

// CreateACLs grants.
func (g guarded) CreateACLs(ctx context.Context, acls []kafka.ACL) []error {
	if err := g.check(); err != nil {
		out := make([]error, len(acls))
		for i := range out {
			out[i] = err
		}
		return out
	}
	return g.side.CreateACLs(ctx, acls)
}

// CommitGroupOffsets moves a group.
func (g guarded) CommitGroupOffsets(ctx context.Context, group string, offsets []kafka.GroupOffset) (map[kafka.TopicPartition]error, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return g.side.CommitGroupOffsets(ctx, group, offsets)
}

// WriteRecords writes checkpoints and heartbeats.
func (g guarded) WriteRecords(ctx context.Context, tp kafka.TopicPartition, records []kafka.Record) (int64, error) {
	if err := g.check(); err != nil {
		return -1, err
	}
	return g.side.WriteRecords(ctx, tp, records)
}
