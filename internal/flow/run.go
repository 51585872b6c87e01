package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
	"heliograph/internal/replicate"
	"heliograph/internal/syncer"
)

// jobLane is the lane whose owner does the jobs that exist once.
const jobLane = 0

// replicate runs both planes of an enabled flow until ctx ends.
func (f *Flow) replicate(ctx context.Context, source, target kafka.Features) error {
	lanes, err := f.partitions(ctx, f.spec.Positions.Topic)
	if err != nil {
		return err
	}
	runs, err := f.partitions(ctx, mirror.OffsetRunsTopic(f.spec.ID.Source))
	if err != nil {
		return err
	}
	p := f.build(source, target, lanes, runs)
	f.setParts(*p)
	f.setState(Running, "")

	jobs, stopJobs := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { f.runLoops(jobs, p.loops) })
	for _, run := range p.background {
		wg.Go(func() { run(jobs) })
	}
	if p.syncs != nil {
		wg.Go(func() { p.syncs.Run(jobs) })
	}
	group, err := f.join(ctx, p)
	if err == nil {
		err = f.watchBooks(ctx, lanes, runs)
	}
	f.setState(Waiting, "stopping")

	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
	defer cancel()
	if group != nil {
		group.Leave(bound)
	}
	left := p.keeper.Close(bound)
	stopJobs()
	wg.Wait()
	if p.syncs != nil {
		if lost := p.syncs.Flush(bound); lost != nil {
			// The next run's first record of each partition makes up for them.
			f.deps.Log.Warn("the last offset syncs were not written", "err", lost)
		}
	}
	p.task.Close()
	return errors.Join(err, left)
}

// watchBooks waits until ctx ends. It looks now and then at the topics whose
// partitions are the lanes: where they were made again with another number of
// them, nothing of what this run knows holds. A topic that is gone is made again
// by the job of internal topics, and written anew by its lanes.
func (f *Flow) watchBooks(ctx context.Context, lanes, runs int32) error {
	books := map[string]int32{f.spec.Positions.Topic: lanes, mirror.OffsetRunsTopic(f.spec.ID.Source): runs}
	for sleep(ctx, internalTopicsEvery) {
		if f.target.RefreshMetadata(ctx, slices.Collect(maps.Keys(books))...) != nil {
			continue
		}
		for topic, began := range books {
			if n := f.target.Partitions(topic); n != 0 && n != began {
				return &kafka.Error{
					Op: "use internal topic", Cluster: string(f.spec.ID.Target), Subject: topic, Class: kafka.ClassRetry,
					Err: fmt.Errorf("it has %d partitions now and had %d: it was grown, or deleted and made again", n, began),
				}
			}
		}
	}
	return nil
}

// partitions asks how many partitions a bookkeeping topic has: it may have been
// made by MirrorMaker, or with other settings.
func (f *Flow) partitions(ctx context.Context, topic string) (int32, error) {
	for {
		if err := f.target.RefreshMetadata(ctx, topic); err == nil {
			topics, err := f.target.Topics(ctx)
			if err == nil {
				for _, t := range topics {
					if t.Name == topic && len(t.Partitions) > 0 {
						return int32(len(t.Partitions)), nil
					}
				}
			}
		}
		f.setState(Waiting, "the topic "+topic+" is not ready")
		if !sleep(ctx, 100*time.Millisecond) {
			return 0, context.Cause(ctx)
		}
	}
}

// build makes the flow's parts.
func (f *Flow) build(source, target kafka.Features, lanes, runs int32) *parts {
	p := &parts{lease: &cluster.Lease{}}
	s := f.spec
	if s.OffsetSyncs.Enabled {
		on, topic := f.syncsTopic()
		p.syncs = syncer.NewSyncWriter(on, topic, time.Now, f.deps.Log)
	}
	p.ledger = newLedger(s, f.target, f.targetBudget, f.deps.Log)
	deps := replicate.Deps{
		Ledger: p.ledger,
		CountRecords: func(ctx context.Context, tp kafka.TopicPartition, from, to mirror.DownstreamOffset) (int64, error) {
			return coord.CountRecords(ctx, f.target, tp, from, to)
		},
		Source: f.source, Target: f.target, Budget: f.deps.Budget, Log: f.deps.Log,
		Brakes: append([]*replicate.Brake{f.brake}, f.deps.Brakes...),
	}
	if p.syncs != nil {
		deps.Syncs = p.syncs
	}
	p.task = replicate.New(deps, replicate.Options{
		Flow: s.ID, SourceClusterID: source.ClusterID, TargetClusterID: target.ClusterID,
		Isolation: s.Data.Isolation, FetchMaxBytes: s.Data.FetchMaxBytes, PartitionMaxBytes: s.Data.PartitionMaxBytes,
		FetchMaxWait: s.Data.FetchMaxWait, MaxRequestBytes: s.Data.MaxRequestBytes, RequestTimeout: s.Data.RequestTimeout,
		Connections: targetConnections, CommitEvery: s.Positions.CommitEvery, OffsetLagMax: s.OffsetSyncs.LagMax,
		Codec: codec(s.Data.Codec),
	})
	p.keeper = coord.NewKeeper(coord.Options{
		Flow: s.ID, GroupID: s.Positions.GroupID, PositionsTopic: s.Positions.Topic, Lanes: lanes,
		RunsTopic: mirror.OffsetRunsTopic(s.ID.Source), RunsPartitions: runs,
		SourceClusterID: source.ClusterID, TargetClusterID: target.ClusterID,
		Isolation: s.Data.Isolation, Reset: s.Data.Reset(),
		ExactlyOnce: s.Data.ExactlyOnce, Leased: p.lease.Held,
		Settle: s.settle, Syncs: f.anchors(), JavaTasks: s.Positions.JavaTasks,
	}, f.source, f.target, p.task, p.ledger, f.deps.Log)

	owner := func(ctx context.Context) bool {
		for p.keeper.Owns(jobLane) {
			if p.lease.Held() {
				return true
			}
			if !sleep(ctx, leaseLook) {
				break
			}
		}
		return false
	}
	f.addTopics(p)
	f.addConfigs(p, owner)
	f.addACLs(p, owner)
	f.addGroups(p, owner)
	f.addHeartbeats(p, owner)
	f.addInternalTopics(p)
	f.addPromotion(p)
	f.addProgress(p)
	f.addExpirations(p)
	f.addTransactionVersion(p, target)
	return p
}

// syncsTopic is where the flow's offset syncs lie.
func (f *Flow) syncsTopic() (side, string) {
	if f.spec.OffsetSyncs.OnSource {
		return f.source, f.spec.Policy.OffsetSyncsTopic(f.spec.ID.Target)
	}
	return f.target, f.spec.Policy.OffsetSyncsTopic(f.spec.ID.Source)
}

// anchors reads the offset syncs that tell where MirrorMaker's copies stood; nil
// where the flow has none.
func (f *Flow) anchors() func(context.Context) (func(kafka.TopicPartition) []mirror.OffsetSync, error) {
	if !f.spec.OffsetSyncs.Enabled {
		return nil
	}
	on, topic := f.syncsTopic()
	return func(ctx context.Context) (func(kafka.TopicPartition) []mirror.OffsetSync, error) {
		return syncer.NewestSyncs(ctx, on, topic)
	}
}

// codec is the codec by Kafka's name, nil for none asked for.
func codec(name string) *recordbatch.Codec {
	for _, c := range []recordbatch.Codec{
		recordbatch.CodecNone, recordbatch.CodecGzip, recordbatch.CodecSnappy, recordbatch.CodecLz4, recordbatch.CodecZstd,
	} {
		if c.String() == name {
			return &c
		}
	}
	return nil
}

// targetConnections is how many connections go to each target broker. A broker
// works on one request per connection at a time, so that one is a cap.
const targetConnections = 2

// join enters the lane group. Its callbacks take lanes over and give them up. What
// lanes leave when ctx has ended, the keeper tells when it is closed.
func (f *Flow) join(ctx context.Context, p *parts) (*cluster.LaneGroup, error) {
	return f.deps.Target.JoinLaneGroup(cluster.LaneGroupOptions{
		Group: f.spec.Positions.GroupID, Topic: f.spec.Positions.Topic,
		InstanceID: f.deps.Host, Session: coord.SessionTimeout,
		Assigned: func(lanes []int32) {
			p.keeper.Assigned(lanes)
			if p.groups != nil && slices.Contains(lanes, jobLane) {
				p.groups.Load(context.Background()) // another owner may have written checkpoints since
			}
			for _, l := range p.loops {
				l.Kick()
			}
		},
		Revoked: func(lanes []int32) {
			bound, cancel := context.WithTimeout(context.Background(), drainWithin)
			defer cancel()
			if err := p.keeper.Revoked(bound, lanes); err != nil && ctx.Err() == nil {
				f.deps.Log.Warn("lanes were handed over in haste", "err", err)
			}
		},
		Lost:   p.keeper.Lost,
		Lease:  p.lease,
		Failed: f.noteGroup,
	})
}

// noteGroup notes why the lane group does not work, and logs each change once.
func (f *Flow) noteGroup(err error) {
	f.mu.Lock()
	was := f.mu.parts.groupErr
	f.mu.parts.groupErr = err
	f.mu.Unlock()
	switch {
	case err != nil && (was == nil || was.Error() != err.Error()):
		f.deps.Log.Warn("the lane group does not work", "group", f.spec.Positions.GroupID, "err", err)
	case err == nil && was != nil:
		f.deps.Log.Info("the lane group works again", "group", f.spec.Positions.GroupID)
	}
}

// publish hands the partitions to copy to the lanes.
func publish(p *parts, policies LossSpec, list []syncer.Replica) {
	replicas := make([]coord.Replica, len(list))
	plain := make([]replicate.Replica, len(list))
	for i, r := range list {
		policy := policies.For(r.Source.Topic)
		plain[i] = replicate.Replica{
			Policy: policy.Policy,
			Source: r.Source, SourceID: r.SourceID, Target: r.Target, TargetID: r.TargetID,
			Demands: recordbatch.Target{
				MaxMessageBytes: r.Settings.MaxMessageBytes, LogAppendTime: r.Settings.LogAppendTime, Compacted: r.Settings.Compacted,
				TimestampBeforeMax: r.Settings.TimestampBeforeMax, TimestampAfterMax: r.Settings.TimestampAfterMax,
			},
		}
		replicas[i] = coord.Replica{Replica: plain[i], Born: r.Born, Missing: policy.Missing}
	}
	p.keeper.SetReplicas(replicas)
	p.task.Update(plain)
}

func (f *Flow) loop(name string, every time.Duration, run func(context.Context, time.Time) error) *syncer.Loop {
	return syncer.NewLoop(syncer.Job{Name: name, Every: every, Run: run},
		syncer.LoopOptions{Log: f.deps.Log, Now: time.Now, Random: rand.Float64})
}

// owning reports whether this process does the jobs that exist once. An owner
// whose lease has run out waits until it is known which.
type owning func(context.Context) bool

// once runs a job's rounds only while this process owns the jobs' lane.
func once(owner owning, run func(context.Context, time.Time) error) func(context.Context, time.Time) error {
	return func(ctx context.Context, now time.Time) error {
		if !owner(ctx) {
			return nil
		}
		return run(ctx, now)
	}
}
