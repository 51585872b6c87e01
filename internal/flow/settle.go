package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Settled is what [Flow.Settle] wrote down.
type Settled struct {
	// Partitions are those whose position is exact now.
	Partitions []PartitionStatus
	// Unsettled are those whose place only a person can tell, with the reason.
	Unsettled []PartitionStatus
}

// settleLook is the pace of looking whether all places are found.
const settleLook = 200 * time.Millisecond

// Settle takes all lanes over, finds where every partition stands, writes the
// positions as after a clean stop, outside of transactions, and gives the lanes
// up. No record is copied and no topic made. It is for what comes after a crash
// when heliograph is not to go on itself: Java MirrorMaker knows neither fences
// nor scans, and takes an aborted position for true.
func (f *Flow) Settle(ctx context.Context) (Settled, error) {
	f.spec.settle = true
	source, target, err := f.connect(ctx)
	if err != nil {
		return Settled{}, err
	}
	lanes, runs, err := f.existingBooks(ctx)
	if err != nil {
		return Settled{}, err
	}
	p := f.build(source, target, lanes, runs)
	f.setParts(*p)
	defer p.task.Close()
	if err := p.topics.RunOnce(ctx, time.Now()); err != nil {
		return Settled{}, err
	}
	p.loops, p.groups = nil, nil // only lanes are taken over here
	group, err := f.join(ctx, p)
	if err != nil {
		return Settled{}, err
	}
	out, err := f.awaitPlaces(ctx, p)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
	defer cancel()
	group.Leave(bound)
	left := p.keeper.Close(bound)
	return out, errors.Join(err, left, bound.Err())
}

// existingBooks tells the partitions of the flow's bookkeeping topics. A flow
// that has none was never run.
func (f *Flow) existingBooks(ctx context.Context) (lanes, runs int32, err error) {
	topics, err := f.target.Topics(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, t := range topics {
		switch t.Name {
		case f.spec.Positions.Topic:
			lanes = int32(len(t.Partitions))
		case mirror.OffsetRunsTopic(f.spec.ID.Source):
			runs = int32(len(t.Partitions))
		}
	}
	if lanes == 0 || runs == 0 {
		return 0, 0, &kafka.Error{
			Op: "hand back", Cluster: string(f.spec.ID.Target), Subject: f.spec.ID.String(), Class: kafka.ClassOperator,
			Err: fmt.Errorf("heliograph has not run this flow: there is no topic %s", cmp.Or(
				missing(lanes, f.spec.Positions.Topic), mirror.OffsetRunsTopic(f.spec.ID.Source))),
		}
	}
	return lanes, runs, nil
}

func missing(partitions int32, topic string) string {
	if partitions == 0 {
		return topic
	}
	return ""
}

// awaitPlaces waits until every partition has its place, or waits for a person.
func (f *Flow) awaitPlaces(ctx context.Context, p *parts) (Settled, error) {
	for {
		var out Settled
		tracks := p.task.Snapshot()
		for _, t := range tracks {
			s := partitionStatus(t)
			if s.Reason == coord.Held {
				out.Partitions = append(out.Partitions, s)
			} else {
				out.Unsettled = append(out.Unsettled, s)
			}
		}
		if len(p.keeper.Owned()) > 0 && len(tracks) == p.keeper.Replicas() {
			return out, nil
		}
		if !sleep(ctx, settleLook) {
			return out, errors.Join(fmt.Errorf("%d of %d partitions have their place: %w", len(tracks), p.keeper.Replicas(), context.Cause(ctx)), f.now().groupErr)
		}
	}
}
