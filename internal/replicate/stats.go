package replicate

import (
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// trackStats is what a track counts. Its track's lock guards it.
type trackStats struct {
	records, bytes, batches     int64 // acknowledged
	rewritten, dropped, skipped int64
	foreign                     int64                 // target offsets that others wrote between ours
	end, start                  mirror.UpstreamOffset // of the source log, at the last fetch
	latency                     span
	age                         span
	ackedAt                     time.Time
	ackedStamp                  int64 // timestamp of the newest acknowledged record
	syncs                       [offsets.DownstreamRewind + 1]int64
}

// span is a last value with its extremes and mean since the start.
type span struct {
	Last, Min, Max int64
	sum            float64
	n              int64
}

func (s *span) add(v int64) {
	if s.n == 0 || v < s.Min {
		s.Min = v
	}
	if s.n == 0 || v > s.Max {
		s.Max = v
	}
	s.Last = v
	s.sum += float64(v)
	s.n++
}

// Avg is the mean, zero without values.
func (s *span) Avg() float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n)
}

func (s *trackStats) seen(p *kafka.FetchedPartition) {
	s.end, s.start = mirror.UpstreamOffset(p.HighWatermark), mirror.UpstreamOffset(p.LogStartOffset)
}

func (s *trackStats) fetched(maxTimestamp int64, now time.Time) {
	if maxTimestamp >= 0 {
		s.age.add(now.UnixMilli() - maxTimestamp)
	}
}

func (s *trackStats) acked(e *Entry, now time.Time) {
	s.records += int64(e.Count)
	s.bytes += int64(len(e.Bytes))
	s.batches++
	s.ackedAt = now
	if e.MaxTimestamp >= 0 {
		s.ackedStamp = e.MaxTimestamp
		s.latency.add(now.UnixMilli() - e.MaxTimestamp)
	}
}

func (s *trackStats) synced(reason offsets.SyncReason) { s.syncs[reason]++ }

// TrackStatus is one track at one moment.
type TrackStatus struct {
	Replica
	Lane                        int32
	State                       TrackState
	Reason                      string
	Since                       time.Time
	Position                    mirror.UpstreamOffset
	Write                       mirror.DownstreamOffset
	End, Start                  mirror.UpstreamOffset
	LagRecords                  int64
	LagSeconds                  float64
	Records, Bytes, Batches     int64
	Rewritten, Dropped, Skipped int64
	Foreign                     int64
	LatencyMillis               span // age of batches when the target acknowledged them
	RecordAge                   span // age of batches when they were fetched, milliseconds
	AckedAt                     time.Time
	Syncs                       map[string]int64
}

// Snapshot tells how every track is.
func (t *Task) Snapshot() []TrackStatus {
	now := time.Now()
	tracks := t.tracks()
	out := make([]TrackStatus, len(tracks))
	for i, tr := range tracks {
		out[i] = tr.status(now)
	}
	return out
}

func (tr *Track) status(now time.Time) TrackStatus {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	s := TrackStatus{
		Replica: tr.spec.Replica, Lane: tr.lane.spec.Index,
		State: tr.state, Reason: tr.reason, Since: tr.since,
		Position: tr.position, Write: tr.write, End: tr.stats.end, Start: tr.stats.start,
		LagRecords: max(0, int64(tr.stats.end-tr.position)),
		Records:    tr.stats.records, Bytes: tr.stats.bytes, Batches: tr.stats.batches,
		Rewritten: tr.stats.rewritten, Dropped: tr.stats.dropped, Skipped: tr.stats.skipped, Foreign: tr.stats.foreign,
		LatencyMillis: tr.stats.latency, RecordAge: tr.stats.age, AckedAt: tr.stats.ackedAt,
	}
	for reason, n := range tr.stats.syncs {
		if n > 0 {
			if s.Syncs == nil {
				s.Syncs = map[string]int64{}
			}
			s.Syncs[offsets.SyncReason(reason).String()] = n
		}
	}
	if tr.lane.transactional() {
		s.Position, s.LagRecords = tr.visible, max(0, int64(tr.stats.end-tr.visible))
	}
	if s.LagRecords > 0 {
		// The oldest waiting record's time, or the newest copied one's as a bound.
		stamp := tr.stats.ackedStamp
		if tr.app.entries.len() > 0 && tr.app.entries.at(0).MaxTimestamp >= 0 {
			stamp = tr.app.entries.at(0).MaxTimestamp
		}
		if stamp > 0 {
			s.LagSeconds = max(0, float64(now.UnixMilli()-stamp)/1000)
		}
	}
	return s
}
