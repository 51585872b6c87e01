package flow

import (
	"fmt"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
	"heliograph/internal/syncer"
)

// State is where a flow stands, as an operator sees it.
type State string

// The states of a flow.
const (
	Starting State = "starting"
	Waiting  State = "waiting" // for a named reason: a cluster that cannot be reached, an owner that is alive
	Running  State = "running"
	Degraded State = "degraded" // running with parked partitions or a failing job
	Failed   State = "failed"   // needs a person
	Stopped  State = "stopped"
	Paused   State = "paused" // by a person; it goes on where it was when it is resumed
)

// waitsLong is how long a partition may wait before its flow counts as degraded.
const waitsLong = 30 * time.Second

// Status is a flow at one moment. It is a value: reading it costs the flow
// nothing afterwards.
type Status struct {
	ID     mirror.FlowID
	State  State
	Reason string    // why it is not simply running; empty otherwise
	Since  time.Time // when State began

	Lanes      int // lanes owned here
	Fence      string
	Topics     int
	Partitions []PartitionStatus
	Jobs       []JobStatus
	Groups     []GroupStatus
	// GroupLatency is how long groups took from the source to the target.
	GroupLatency syncer.GroupLatency

	// Progress is whether how far the flow has copied is committed as a group on the source.
	Progress bool
	// HeartbeatAt is when the last heartbeat of this pair was written.
	HeartbeatAt time.Time
	// Losses are the entries this process wrote to the loss ledger, LostRecords
	// the records in them that copying went on without.
	Losses, LostRecords int64
	// Traffic is what was read from the source since the flow started.
	Traffic replicate.Traffic
	// ThrottledFor is how long the brokers made this flow wait since it started.
	ThrottledFor time.Duration
}

// PartitionStatus is one partition of a flow.
type PartitionStatus struct {
	Source  kafka.TopicPartition
	Target  kafka.TopicPartition
	Lane    int32
	State   string // "waiting", "running", "parked"
	Reason  string // why it waits or is parked
	Since   time.Time
	Next    mirror.UpstreamOffset
	Written mirror.DownstreamOffset // next target offset we expect to write
	// SourceEnd is the source's high watermark at the last fetch, SourceStart its log start.
	SourceEnd   mirror.UpstreamOffset
	SourceStart mirror.UpstreamOffset
	LagRecords  int64
	// LagSeconds is the age of the oldest record not yet on the target; zero without lag.
	LagSeconds float64

	Records, Bytes, Batches int64 // acknowledged by the target since start
	Rewritten, Dropped      int64 // batches
	// ForeignOffsets are target offsets that others wrote between ours.
	ForeignOffsets int64
	SkippedRecords int64 // given up by policy, or lost at the source
	// LatencyMillis is the last acknowledged batch's age at its acknowledgement.
	LatencyMillis    int64
	LatencyMin       int64
	LatencyMax       int64
	LatencyAvg       float64
	RecordAgeMillis  int64
	RecordAgeMin     int64
	RecordAgeMax     int64
	RecordAgeAvg     float64
	LastAckedAt      time.Time
	OffsetSyncs      int64
	OffsetSyncReason map[string]int64
}

// JobStatus is one of a flow's periodic jobs.
type JobStatus struct {
	Name    string
	Every   time.Duration
	LastRun time.Time
	NextRun time.Time
	// Err is why the last run failed, or why the job is inactive; empty when all is well.
	Err string
}

// GroupStatus is one consumer group of the source as the flow sees it.
type GroupStatus struct {
	Group string
	// Synced is how many partitions' offsets stand on the target as translated.
	Synced int
	// Reason is why the group, or part of it, is not synced; empty otherwise.
	Reason string
	// Withheld are the reasons for which something of it was not written.
	Withheld []plan.Reason
}

// Lag sums the records not yet on the target, and gives the largest age.
func (s *Status) Lag() (records int64, seconds float64) {
	for i := range s.Partitions {
		records += s.Partitions[i].LagRecords
		seconds = max(seconds, s.Partitions[i].LagSeconds)
	}
	return records, seconds
}

// Parked counts the partitions that need a person.
func (s *Status) Parked() int {
	n := 0
	for i := range s.Partitions {
		if s.Partitions[i].State == "parked" {
			n++
		}
	}
	return n
}

// first is the first partition that is so, or nil.
func (s *Status) first(so func(*PartitionStatus) bool) *PartitionStatus {
	for i := range s.Partitions {
		if so(&s.Partitions[i]) {
			return &s.Partitions[i]
		}
	}
	return nil
}

// Status tells how the flow is now.
func (f *Flow) Status() Status {
	f.mu.Lock()
	s := Status{ID: f.spec.ID, State: f.mu.state, Reason: f.mu.reason, Since: f.mu.since}
	p := f.mu.parts
	f.mu.Unlock()
	for _, l := range p.loops {
		s.Jobs = append(s.Jobs, JobStatus(l.Status()))
	}
	if p.heartbeats != nil {
		s.HeartbeatAt = p.heartbeats.Last()
	}
	if p.acls != nil {
		s.jobInactive("acls", p.acls.Report().Inactive)
	}
	if p.progress != nil {
		denied := p.progress.Denied()
		s.Progress = denied == ""
		s.jobInactive(progressJob, denied)
	}
	if p.task == nil {
		return s
	}
	s.Lanes, s.Fence = len(p.keeper.Owned()), string(p.keeper.Fence())
	s.Topics = len(p.topics.Report().Topics)
	s.Traffic = p.task.Traffic()
	tracks := p.task.Snapshot()
	s.Partitions = make([]PartitionStatus, 0, len(tracks))
	for _, t := range tracks {
		s.Partitions = append(s.Partitions, partitionStatus(t))
	}
	slices.SortFunc(s.Partitions, func(a, b PartitionStatus) int { return a.Source.Compare(b.Source) })
	if p.groups != nil {
		s.GroupLatency = p.groups.Latency()
		for _, g := range p.groups.Report() {
			s.Groups = append(s.Groups, GroupStatus{Group: g.Group, Synced: g.Synced, Reason: g.Why(), Withheld: g.Reasons()})
		}
	}
	s.Losses, s.LostRecords = p.ledger.counts()
	s.ThrottledFor = f.source.Stats().FetchThrottle + f.target.Stats().ProduceThrottle
	if s.State == Running {
		s.State, s.Reason = f.health(&s, p)
	}
	return s
}

// jobInactive notes why a job does nothing.
func (s *Status) jobInactive(name, why string) {
	for i := range s.Jobs {
		if s.Jobs[i].Name == name && s.Jobs[i].Err == "" {
			s.Jobs[i].Err = why
		}
	}
}

// health tells a flow that runs from one that runs with trouble.
func (f *Flow) health(s *Status, p parts) (State, string) {
	if p.groupErr != nil && s.Lanes == 0 {
		return Waiting, "lane group: " + p.groupErr.Error()
	}
	if n := s.Parked(); n > 0 {
		first := s.first(func(p *PartitionStatus) bool { return p.State == "parked" })
		return Degraded, fmt.Sprintf("%d of %d partitions are parked, first %s: %s", n, len(s.Partitions), first.Source, first.Reason)
	}
	stuck := func(p *PartitionStatus) bool { return p.State == "waiting" && time.Since(p.Since) > waitsLong }
	if first := s.first(stuck); first != nil {
		return Degraded, fmt.Sprintf("partition %s waits: %s", first.Source, first.Reason)
	}
	for _, t := range p.topics.Report().Topics {
		if t.State == syncer.TopicParked {
			return Degraded, fmt.Sprintf("topic %s is parked: %s", t.Source, t.Reason)
		}
	}
	return Running, ""
}

func partitionStatus(t replicate.TrackStatus) PartitionStatus {
	return PartitionStatus{
		Source: t.Source, Target: t.Target, Lane: t.Lane, State: string(t.State), Reason: t.Reason, Since: t.Since,
		Next: t.Position, Written: t.Write, SourceEnd: t.End, SourceStart: t.Start,
		LagRecords: t.LagRecords, LagSeconds: t.LagSeconds,
		Records: t.Records, Bytes: t.Bytes, Batches: t.Batches, Rewritten: t.Rewritten, Dropped: t.Dropped,
		ForeignOffsets: t.Foreign, SkippedRecords: t.Skipped,
		LatencyMillis: t.LatencyMillis.Last, LatencyMin: t.LatencyMillis.Min, LatencyMax: t.LatencyMillis.Max, LatencyAvg: t.LatencyMillis.Avg(),
		RecordAgeMillis: t.RecordAge.Last, RecordAgeMin: t.RecordAge.Min, RecordAgeMax: t.RecordAge.Max, RecordAgeAvg: t.RecordAge.Avg(),
		LastAckedAt: t.AckedAt, OffsetSyncReason: t.Syncs, OffsetSyncs: sum(t.Syncs),
	}
}

func sum(counts map[string]int64) int64 {
	var n int64
	for _, c := range counts {
		n += c
	}
	return n
}
