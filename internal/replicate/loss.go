package replicate

import (
	"context"
	"time"

	"heliograph/internal/losses"
	"heliograph/internal/mirror"
)

// loss is an entry for the ledger and what the track does once it is durable.
type loss struct {
	entry losses.Entry
	// letter is what the dead-letter topic gets first; nil for nothing.
	letter *losses.Letter
	then   func() // with the track's lock held; nil for a partition that parks
}

// loseLocked has a range written to the ledger by the steward; the track waits
// until then.
func (tr *Track) loseLocked(kind losses.Kind, from, to mirror.UpstreamOffset, records int64, reason string, then func()) {
	action := losses.Continued
	if then == nil {
		action = losses.Parked
	}
	tr.recordLocked(loss{entry: losses.Entry{
		From: from, To: to, Records: records, Kind: kind, Action: action, Reason: reason,
	}, then: then})
}

// recordLocked has a loss written down by the steward.
func (tr *Track) recordLocked(l loss) {
	l.entry.Flow, l.entry.Source, l.entry.Target, l.entry.At = tr.task.opts.Flow, tr.spec.Source, tr.spec.Target, time.Now()
	tr.lost = append(tr.lost, l)
	if l.then != nil {
		tr.waitLocked("the loss ledger is being written: " + l.entry.Reason)
	}
	tr.task.steward.watch(tr, ailLoss)
}

// losing reports whether the track waits for the ledger before it goes on.
func (tr *Track) losing() bool {
	for _, l := range tr.lost {
		if l.then != nil {
			return true
		}
	}
	return false
}

// parkLostLocked parks a track for what happened to its records, and has that
// written to the ledger.
func (tr *Track) parkLostLocked(kind losses.Kind, from, to mirror.UpstreamOffset, reason string) {
	if tr.state == TrackParked {
		return
	}
	tr.parkLocked(reason)
	tr.loseLocked(kind, from, to, int64(max(0, to-from)), reason, nil)
}

// replacedLocked ends a track whose topic was deleted and made again, on either
// side. Where it is to start over it waits: it will be placed anew once the new
// topic is among those to copy.
func (tr *Track) replacedLocked(restart bool, kind losses.Kind, from, to mirror.UpstreamOffset, reason string) {
	if !restart {
		tr.parkLostLocked(kind, from, to, reason)
		return
	}
	if tr.parked {
		return
	}
	tr.parked = true // nothing more is sent
	reason += ": starting over"
	tr.loseLocked(kind, from, to, int64(max(0, to-from)), reason, func() { tr.waitLocked(reason) })
}

// visitLosses writes what tracks wait for, in order, and lets them go on.
func (w *steward) visitLosses(ctx context.Context, sick []*Track) {
	for _, tr := range sick {
		tr.mu.Lock()
		waiting := tr.lost
		tr.mu.Unlock()
		for _, l := range waiting {
			if err := w.task.ledger.Write(ctx, l.entry, l.letter); err != nil {
				tr.mu.Lock()
				if !tr.closed {
					tr.waitLocked("the loss ledger cannot be written: " + err.Error())
					w.watch(tr, ailLoss)
				}
				tr.mu.Unlock()
				break
			}
			tr.mu.Lock()
			tr.lost = tr.lost[1:]
			if l.then != nil && !tr.closed {
				l.then()
			}
			tr.mu.Unlock()
		}
	}
}
