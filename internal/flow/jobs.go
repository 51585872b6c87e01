package flow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/replicate"
	"heliograph/internal/syncer"
)

// settingsAge is how old the known settings of target topics may be.
const settingsAge = time.Minute

func (f *Flow) addTopics(p *parts) {
	s := f.spec
	p.topics = syncer.NewTopicSync(f.source, f.target, syncer.TopicOptions{
		Desired: s.Desired(), SettingsAge: settingsAge, LookOnly: s.settle, SourceBudget: f.sourceBudget, TargetBudget: f.targetBudget,
		Publish: func(list []syncer.Replica) { publish(p, s.Losses, list) },
		Created: func(topic string, configs map[string]string) {
			if p.configs != nil {
				p.configs.Created(topic, configs)
			}
		},
		Log: f.deps.Log,
	})
	every := s.Topics.RefreshEvery
	if every <= 0 { // refresh.topics.enabled=false: look once
		every = time.Duration(1<<62 - 1)
	}
	p.loops = append(p.loops, f.loop("topics", every, p.topics.RunOnce))
}

func (f *Flow) addConfigs(p *parts, owner owning) {
	if f.spec.Topics.SyncConfigsEvery <= 0 {
		return
	}
	p.configs = syncer.NewConfigSync(f.source, guarded{f.target, p.lease}, syncer.ConfigOptions{
		Flow: f.spec.ID, Rules: f.spec.Desired().Configs, HoldFor: f.spec.Topics.HoldDeletions, Pairs: p.topics.Pairs, Observe: p.topics.Observe,
		Refused: f.deps.Refused, SourceBudget: f.sourceBudget, TargetBudget: f.targetBudget, Log: f.deps.Log,
	})
	p.loops = append(p.loops, f.loop("configs", f.spec.Topics.SyncConfigsEvery, once(owner, p.configs.RunOnce)))
}

func (f *Flow) addACLs(p *parts, owner owning) {
	if f.spec.Topics.SyncACLsEvery <= 0 {
		return
	}
	p.acls = syncer.NewACLSync(f.source, guarded{f.target, p.lease}, syncer.ACLOptions{
		Flow: f.spec.ID, Selection: f.spec.Selection,
		SourceBudget: f.sourceBudget, TargetBudget: f.targetBudget, Log: f.deps.Log,
	})
	p.loops = append(p.loops, f.loop("acls", f.spec.Topics.SyncACLsEvery, once(owner, p.acls.RunOnce)))
}

func (f *Flow) addHeartbeats(p *parts, owner owning) {
	if f.spec.Heartbeats.Every <= 0 {
		return
	}
	p.heartbeats = syncer.NewHeartbeats(f.spec.ID, f.spec.Policy, guarded{f.target, p.lease})
	p.loops = append(p.loops, f.loop("heartbeats", f.spec.Heartbeats.Every, once(owner, p.heartbeats.RunOnce)))
}

func (f *Flow) addInternalTopics(p *parts) {
	p.loops = append(p.loops, f.loop("internal topics", internalTopicsEvery, f.internalTopics))
}

// addProgress tells lag tools on the source how far we have copied.
func (f *Flow) addProgress(p *parts) {
	group := f.spec.Positions.ProgressGroup
	if group == "" {
		f.deps.Log.Info("progress is not committed on the source", "why", "heliograph.progress.group is off, as it is where offset syncs do not lie on the source",
			"hint", fmt.Sprintf("heliograph.progress.group = %s has lag tools on cluster %s show the replication's lag; it needs READ on that group", mirror.ProgressGroup(f.spec.ID), f.spec.ID.Source))
		return
	}
	p.progress = syncer.NewProgress(f.source, f.spec.ID, group, func() map[kafka.TopicPartition]mirror.UpstreamOffset {
		places := map[kafka.TopicPartition]mirror.UpstreamOffset{}
		for _, t := range p.task.Snapshot() {
			places[t.Source] = t.Position
		}
		return places
	}, f.deps.Log)
	p.loops = append(p.loops, f.loop(progressJob, progressEvery, p.progress.RunOnce))
}

const (
	progressJob   = "progress group"
	progressEvery = 5 * time.Second
)

// addPromotion publishes the syncs of quiet partitions with each commit of positions.
func (f *Flow) addPromotion(p *parts) {
	if p.syncs == nil {
		return
	}
	p.loops = append(p.loops, f.loop("offset syncs", f.spec.Positions.CommitEvery, func(context.Context, time.Time) error {
		p.syncs.Promote()
		return nil
	}))
}

// addGroups makes the three jobs that follow groups, and the tail that they
// translate by.
func (f *Flow) addGroups(p *parts, owner owning) {
	s := f.spec
	if s.Checkpoints.EmitEvery <= 0 || !s.OffsetSyncs.Enabled {
		return
	}
	on, topic := f.syncsTopic()
	c := s.Checkpoints
	if c.SyncGroupsEvery > 0 { // a group's place on the target is as fresh as its last checkpoint
		c.EmitEvery = min(c.EmitEvery, c.SyncGroupsEvery)
	}
	tail := syncer.NewSyncTail(on, topic, time.Now, f.deps.Log)
	sharpened := func() {
		p.groups.Sharpened()
		p.emit.Kick()
	}
	between := newExact(f, translator{p.task, tail}, p.keeper, sharpened)
	p.groups = syncer.NewGroupSync(f.source, guarded{f.target, p.lease}, guarded{f.target, p.lease}, syncer.GroupOptions{
		Flow: s.ID, Policy: s.Policy, Topics: s.Selection.Filter, Groups: s.Groups,
		Own:        map[string]bool{s.Positions.GroupID: true, s.Positions.ProgressGroup: true},
		Translator: between, TargetPartitions: p.topics.TargetPartitions,
		Followed: func() { p.emit.Kick() },
		Emitted: func() {
			if p.commit != nil {
				p.commit.Kick()
			}
		},
		Random: rand.Float64, EmitEvery: c.EmitEvery, CommitEvery: c.SyncGroupsEvery, Deletions: c.SyncDeletions,
		SourceBudget: f.sourceBudget, TargetBudget: f.targetBudget, Now: time.Now, Log: f.deps.Log,
	})
	discover := f.loop("groups", c.RefreshGroupsEvery, once(owner, p.groups.Discover))
	p.emit = f.loop("checkpoints", min(c.EmitEvery, syncer.LookAgain), once(owner, p.groups.Emit))
	p.loops = append(p.loops, discover, p.emit)
	if c.SyncGroupsEvery > 0 {
		p.commit = f.loop("group offsets", c.SyncGroupsEvery, once(owner, p.groups.Commit))
		p.loops = append(p.loops, p.commit)
	}
	p.background = append(p.background, between.run, between.follow, func(ctx context.Context) {
		complete := p.groups.Load(ctx)
		tail.Run(ctx, !complete)
	}, func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-tail.Loaded():
			sharpened()
		}
	})
}

// translator answers exactly where the data plane knows, and as MirrorMaker does
// by offset syncs where it does not: records copied before the map was begun,
// partitions that another instance copies.
type translator struct {
	task *replicate.Task
	tail *syncer.SyncTail
}

// Translate tells where on the target a reader goes on.
func (t translator) Translate(source kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	if exact := t.task.Translate(source, u); exact.Known() {
		return exact
	}
	return t.tail.Translate(source, u)
}
