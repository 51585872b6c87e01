package replicate

import (
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// corruptTries is how often a batch that fails its checksum is fetched again
// before its partition is given to the poison policy.
const corruptTries = 3

// deliver takes one partition's part of a fetch answer. It is called by the
// source's goroutine.
func (tr *Track) deliver(p *kafka.FetchedPartition, buf *kafka.Buffer, trip time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed || tr.asked != tr.next || !tr.readsLocked() {
		return // the answer to a question that no longer stands
	}
	tr.allowedLocked()
	tr.asked, tr.tries = -1, 0
	tr.window.fetched(len(p.Records), trip)
	tr.stats.seen(p)
	tr.aborts.Reset(p.Aborted)
	sc := recordbatch.NewScanner(p.Records)
	var b recordbatch.Batch
	now := time.Now()
	batches, whole, largest := 0, 0, 0
	for sc.Next(&b) {
		batches++
		whole += len(b.Bytes)
		largest = max(largest, len(b.Bytes))
		tr.stats.fetched(b.MaxTimestamp, now)
		if !tr.admit(&b, buf, now) {
			whole = len(p.Records)
			break
		}
	}
	err := sc.Err()
	if cut := len(p.Records) - whole; err == nil && batches > 0 && cut > 0 {
		tr.task.traffic.cut.Add(int64(cut))
		tr.window.cut(cut, len(p.Records))
	}
	tr.window.piece = int32(largest)
	if err == nil && batches == 0 && len(p.Records) > 0 {
		err = fmt.Errorf("%d bytes at source offset %d hold no whole batch", len(p.Records), tr.next)
	}
	if err != nil && tr.state == TrackRunning && tr.corruptLocked(err) {
		tr.parkLocked("the source serves a damaged batch: " + err.Error())
	}
	tr.kickLocked()
}

// admit judges one batch and queues what becomes of it. It reports false where
// the rest of the answer must not be used.
func (tr *Track) admit(b *recordbatch.Batch, buf *kafka.Buffer, now time.Time) bool {
	aborted := tr.aborts.Aborted(b)
	next := mirror.UpstreamOffset(b.NextOffset())
	if next <= tr.next {
		return true // wholly before what we want: the broker sends whole batches
	}
	if err := b.VerifyChecksum(); err != nil {
		if tr.corruptLocked(fmt.Errorf("batch at source offset %d: %w", b.BaseOffset, err)) {
			tr.damagedLocked(b, next, err)
		}
		return false
	}
	tr.corrupted = 0
	if b.Magic == 2 {
		tr.epoch = kafka.LeaderEpoch(b.LeaderEpoch)
	}
	if aborted || b.Control() {
		tr.passBatchLocked(b, next)
		return true
	}
	verdict, _ := recordbatch.Judge(b, int64(tr.next), tr.spec.Demands)
	if codec := tr.task.opts.Codec; verdict == recordbatch.Forward && codec != nil && b.Codec() != *codec {
		verdict = recordbatch.Recode
	}
	switch verdict {
	case recordbatch.Forward:
		buf.Retain()
		tr.enqueueLocked(Entry{
			Bytes: b.Bytes, Buffer: buf, Count: b.Count, Path: Forwarded,
			From: mirror.UpstreamOffset(b.BaseOffset), Next: next, MaxTimestamp: b.MaxTimestamp, Taken: len(b.Bytes),
		}, now)
	case recordbatch.Drop:
		tr.passBatchLocked(b, next)
	default:
		path := Rewritten
		if verdict == recordbatch.Decode {
			path = Rebuilt
		}
		return tr.rewriteLocked(b, next, path, now)
	}
	return true
}

// rewriteLocked queues a batch that cannot travel as it is.
func (tr *Track) rewriteLocked(b *recordbatch.Batch, next mirror.UpstreamOffset, path Path, now time.Time) bool {
	options := recordbatch.RewriteFor(b, int64(tr.next), tr.spec.Demands)
	options.Codec = tr.task.opts.Codec
	parts, err := recordbatch.Rewrite(b, options)
	if err != nil {
		tr.poisonLocked(mirror.UpstreamOffset(b.BaseOffset), next, fmt.Sprintf("cannot be decoded: %v", err), b.Bytes)
		return tr.state == TrackRunning
	}
	tr.stats.rewritten++
	if len(parts) == 0 {
		tr.passBatchLocked(b, next)
		return true
	}
	entries := entriesOf(parts, 0, next, path)
	entries[len(entries)-1].Taken = len(b.Bytes)
	for _, e := range entries {
		e.copied = len(e.Bytes)
		tr.task.budget.Force(e.copied)
		tr.enqueueLocked(e, now)
	}
	return true
}

// entriesOf makes entries of rewritten batches. Each part's position ends where
// the next part's first record begins; the last one's is next. The runs'
// source offsets are raised by shift.
func entriesOf(parts []recordbatch.Rewritten, shift int64, next mirror.UpstreamOffset, path Path) []Entry {
	entries := make([]Entry, len(parts))
	for i, p := range parts {
		runs := make([]recordbatch.Run, len(p.Runs))
		for j, r := range p.Runs {
			runs[j] = recordbatch.Run{Source: r.Source + shift, Index: r.Index, Count: r.Count}
		}
		h, _ := recordbatch.ParseHeader(p.Bytes)
		entries[i] = Entry{
			Bytes: p.Bytes, Count: p.Count, Path: path, Runs: runs, Next: next, MaxTimestamp: h.MaxTimestamp,
		}
		if len(runs) > 0 {
			entries[i].From = mirror.UpstreamOffset(runs[0].Source)
		}
		if i > 0 {
			entries[i-1].Next = entries[i].From
		}
	}
	return entries
}

func (tr *Track) enqueueLocked(e Entry, now time.Time) {
	e.old = tr.oldLocked(e.MaxTimestamp, now)
	tr.app.push(e)
	tr.next = e.Next
	if !tr.announced {
		tr.announced = true
		tr.lane.announce(tr)
	}
}

// passBatchLocked moves over a batch that has no record to copy.
func (tr *Track) passBatchLocked(b *recordbatch.Batch, next mirror.UpstreamOffset) {
	tr.task.traffic.delivered.Add(int64(len(b.Bytes)))
	tr.passLocked(next)
}

// passLocked moves over source offsets that have no record to copy: control
// batches, aborted data, batches emptied by compaction.
func (tr *Track) passLocked(next mirror.UpstreamOffset) {
	tr.stats.dropped++
	tr.next = next
	if last := tr.app.tail(); last != nil {
		last.Next = next
		return
	}
	tr.position = next
	tr.dirty = tr.dirty || tr.announced || tr.spec.Known
}

// corruptLocked fetches what is damaged again. It reports true once that has not
// helped.
func (tr *Track) corruptLocked(err error) (forGood bool) {
	tr.corrupted++
	if tr.corrupted >= corruptTries {
		return true
	}
	tr.waitLocked("source: " + err.Error())
	tr.task.steward.watch(tr, ailSource)
	return false
}

// damagedLocked gives a batch whose checksum fails again and again to the policy.
// Its header may be damaged too: where its end is beyond belief there is nothing
// to go on behind.
func (tr *Track) damagedLocked(b *recordbatch.Batch, next mirror.UpstreamOffset, err error) {
	if next <= tr.next || next > tr.stats.end {
		tr.parkLocked("the source serves a damaged batch: " + err.Error())
		return
	}
	tr.corrupted = 0
	tr.poisonLocked(mirror.UpstreamOffset(b.BaseOffset), next, "is damaged: "+err.Error(), b.Bytes)
}
