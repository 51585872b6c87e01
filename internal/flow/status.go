package flow

import (
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
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
)

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

	// HeartbeatAt is when the last heartbeat of this pair was written.
	HeartbeatAt time.Time
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
	SkippedRecords          int64 // given up by policy, or lost at the source
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
