package offsets

import (
	"math"

	"heliograph/internal/mirror"
)

// SyncReason says why a pair of offsets is to be published at once.
type SyncReason uint8

// The reasons, in the order they are tested. NotDue is no reason: the pair can wait.
const (
	NotDue SyncReason = iota
	// FirstRecord is the first record since the pacer was made.
	FirstRecord
	// DistanceReached means that the last published pair lies too far back.
	DistanceReached
	// UpstreamGap means that the record does not follow its predecessor at the
	// source: compaction, transaction markers, a rewind.
	UpstreamGap
	// DownstreamRewind means that the target was truncated or made again.
	DownstreamRewind
)

var syncReasons = [...]string{"not_due", "first", "distance", "upstream_gap", "downstream_rewind"}

// String is the reason as a metric label.
func (r SyncReason) String() string {
	if int(r) < len(syncReasons) {
		return syncReasons[r]
	}
	return "unknown"
}

// SyncPacer decides for one source partition which acknowledged records are
// worth an offset sync. It makes MirrorMaker's decisions record by record, also
// where records come in runs.
//
// The partition's track owns it; it starts fresh in every life.
type SyncPacer struct {
	maxLag int64

	started  bool
	prevUp   mirror.UpstreamOffset
	prevDown mirror.DownstreamOffset
	lastSync mirror.DownstreamOffset // of the last pair that was due
}

// NewSyncPacer makes a pacer that calls a pair due at the latest when maxLag
// records lie between it and the last one (offset.lag.max). With 0 every record
// is due.
func NewSyncPacer(maxLag int64) *SyncPacer {
	// One below the largest number, so that the distance between two due pairs fits.
	return &SyncPacer{maxLag: min(max(maxLag, 0), math.MaxInt64-1)}
}

// Advance takes the next acknowledged record and says whether its pair is due.
func (p *SyncPacer) Advance(up mirror.UpstreamOffset, down mirror.DownstreamOffset) SyncReason {
	reason := NotDue
	switch {
	case !p.started:
		reason = FirstRecord
	case int64(down)-(int64(p.lastSync)+1) >= p.maxLag:
		reason = DistanceReached
	case up-p.prevUp != 1:
		reason = UpstreamGap
	case down < p.prevDown:
		reason = DownstreamRewind
	}
	if reason != NotDue {
		p.lastSync = down
	}
	p.started, p.prevUp, p.prevDown = true, up, down
	return reason
}

// AdvanceRun takes count acknowledged records that follow each other on both
// sides, from the pair (up, down) on, and calls due for each pair that is. It
// does what count calls of Advance would do, at the cost of the pairs that are
// due. count below 1 changes nothing.
func (p *SyncPacer) AdvanceRun(up mirror.UpstreamOffset, down mirror.DownstreamOffset, count int64,
	due func(SyncReason, mirror.UpstreamOffset, mirror.DownstreamOffset),
) {
	if count < 1 {
		return
	}
	if reason := p.Advance(up, down); reason != NotDue {
		due(reason, up, down)
	}
	last := count - 1
	// Inside a run only the distance can make a pair due.
	step := p.maxLag + 1
	for at := step - int64(down-p.lastSync); at <= last; at += step {
		p.lastSync = down + mirror.DownstreamOffset(at)
		due(DistanceReached, up+mirror.UpstreamOffset(at), p.lastSync)
		if step > last-at {
			break // also where the next step would overflow
		}
	}
	p.prevUp = up + mirror.UpstreamOffset(last)
	p.prevDown = down + mirror.DownstreamOffset(last)
}
