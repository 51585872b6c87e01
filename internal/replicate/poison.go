package replicate

import (
	"fmt"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// refusedLocked sends a batch that the target refused down the next slower
// path, and at the end of the paths to the policy.
func (tr *Track) refusedLocked(f failure) {
	i, e := tr.app.firstFailed()
	parts, err := slowerPath(e, f, tr.spec.Demands)
	if err != nil || len(parts) == 0 {
		why := f.text()
		if wayOut := whatItTakes(e, f.code, &tr.spec, time.Now()); wayOut != "" {
			why += "; " + wayOut
		}
		if err != nil {
			why = fmt.Sprintf("%s (%v)", why, err)
		}
		tr.giveUpLocked(e, why)
		return
	}
	for j := range parts {
		parts[j].old = e.old
		parts[j].copied = len(parts[j].Bytes)
		tr.task.budget.Force(parts[j].copied)
	}
	parts[len(parts)-1].Taken = e.Taken
	removed, ok := tr.app.replace(i, parts)
	if !ok {
		tr.lane.reopen("a later batch was stored before a refused one")
		return
	}
	removed.release(tr.task.budget)
	tr.stats.rewritten++
	tr.resumeLocked()
}

// slowerPath rewrites a refused batch. No entries mean that there is no slower
// path left.
func slowerPath(e *Entry, f failure, demands recordbatch.Target) ([]Entry, error) {
	h, err := recordbatch.ParseHeader(e.Bytes)
	if err != nil {
		return nil, err
	}
	b := recordbatch.Batch{Header: h, Bytes: e.Bytes}
	limit := demands.MaxMessageBytes
	if f.code == kafka.CodeMessageTooLarge || f.code == kafka.CodeRecordListTooLarge {
		if h.Count == 1 {
			return nil, nil
		}
		limit = splitLimit(limit, int32(len(e.Bytes)))
	} else if e.Path >= Rebuilt {
		// Written anew and refused again: it is about some of the records. They
		// are found by halves.
		if h.Count == 1 {
			return nil, nil
		}
		limit = splitLimit(0, int32(len(e.Bytes)))
	}
	parts, err := recordbatch.Rewrite(&b, recordbatch.RewriteOptions{MaxBytes: limit})
	if err != nil {
		return nil, err
	}
	out := entriesOf(parts, 0, e.Next, Rebuilt)
	mapRuns(out, e)
	return out, nil
}

// whatItTakes says which setting of the copy stands in the way of a batch and
// what the batch is, where the code tells. Brokers name neither.
func whatItTakes(e *Entry, code kafka.Code, spec *TrackSpec, now time.Time) string {
	h, err := recordbatch.ParseHeader(e.Bytes)
	if err != nil {
		return ""
	}
	var what, key string
	var limit int64
	switch code {
	case kafka.CodeInvalidTimestamp:
		at := time.UnixMilli(h.MaxTimestamp).UTC()
		what = "its time is " + at.Format(time.RFC3339)
		key, limit = "message.timestamp.before.max.ms", spec.Demands.TimestampBeforeMax
		if at.After(now) {
			key, limit = "message.timestamp.after.max.ms", spec.Demands.TimestampAfterMax
		}
	case kafka.CodeMessageTooLarge, kafka.CodeRecordListTooLarge:
		what = fmt.Sprintf("it has %d bytes", len(e.Bytes))
		key, limit = "max.message.bytes", int64(spec.Demands.MaxMessageBytes)
	default:
		return ""
	}
	if limit > 0 {
		key = fmt.Sprintf("%s = %d", key, limit)
	}
	return fmt.Sprintf("%s, which %s of topic %s forbids: raise it there and restart, or choose another heliograph.poison", what, key, spec.Target.Topic)
}

// splitLimit is the size to split to: the topic's limit where it is known and
// smaller than the refused batch, else half of the batch.
func splitLimit(limit, size int32) int32 {
	if limit > 0 && limit < size {
		return limit
	}
	return max(size/2, 1)
}

// mapRuns turns runs that count from the refused entry's record 0 into source
// offsets, through the refused entry's own runs.
func mapRuns(out []Entry, e *Entry) {
	for i := range out {
		var runs []recordbatch.Run
		for _, r := range out[i].Runs {
			runs = append(runs, e.sourceRuns(int32(r.Source), r.Index, r.Count)...)
		}
		out[i].Runs = runs
		if len(runs) > 0 {
			out[i].From = mirror.UpstreamOffset(runs[0].Source)
		}
		if i > 0 {
			out[i-1].Next = out[i].From
		}
	}
}

// sourceRuns says where count records from record `record` of the entry lie at
// the source, numbered from index on.
func (e *Entry) sourceRuns(record, index, count int32) []recordbatch.Run {
	if e.Runs == nil {
		return []recordbatch.Run{{Source: int64(e.From) + int64(record), Index: index, Count: count}}
	}
	var out []recordbatch.Run
	for _, r := range e.Runs {
		from, to := max(r.Index, record), min(r.Index+r.Count, record+count)
		if from < to {
			out = append(out, recordbatch.Run{Source: r.Source + int64(from-r.Index), Index: index + from - record, Count: to - from})
		}
	}
	return out
}

// giveUpLocked applies the policy to a batch that no path makes acceptable: one
// record, unless its batch cannot be taken apart.
func (tr *Track) giveUpLocked(e *Entry, why string) {
	if tr.stopsForPoison() {
		tr.parkLocked(fmt.Sprintf("the target refuses the batch at source offset %d (%s): %s", e.From, countOf(e.Count), why))
		return
	}
	tr.passPoisonLocked(losses.Entry{
		Kind: losses.Refused, From: e.From, To: e.Next, Records: int64(e.Count), Reason: "refused by the target: " + why,
	}, e.Bytes, tr.skipRefused)
}

func countOf(records int32) string {
	if records == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", records)
}

// skipRefused goes on behind the refused batch that the ledger has.
func (tr *Track) skipRefused() {
	i, e := tr.app.firstFailed()
	if e == nil {
		return
	}
	next := e.Next
	removed, ok := tr.app.replace(i, nil)
	if !ok {
		tr.lane.reopen("a later batch was stored before a refused one")
		return
	}
	tr.stats.skipped += int64(removed.Count)
	tr.task.traffic.delivered.Add(int64(removed.Taken))
	removed.release(tr.task.budget)
	if i > 0 {
		tr.app.entries.at(i - 1).Next = next
	} else {
		tr.position, tr.dirty = next, true
	}
	tr.runLocked()
	tr.resumeLocked()
	tr.kickLocked()
}

// poisonLocked applies the policy to a batch that cannot be decoded.
func (tr *Track) poisonLocked(from, next mirror.UpstreamOffset, why string, batch []byte) {
	if tr.stopsForPoison() {
		tr.parkLocked(fmt.Sprintf("the batch at source offset %d %s", from, why))
		return
	}
	size := len(batch)
	tr.passPoisonLocked(losses.Entry{Kind: losses.Undecodable, From: from, To: next, Records: int64(next - from), Reason: why}, batch, func() {
		tr.stats.skipped += int64(next - from)
		tr.task.traffic.delivered.Add(int64(size))
		tr.passLocked(next)
		tr.runLocked()
	})
}

func (tr *Track) stopsForPoison() bool {
	return tr.spec.Policy.Poison != losses.PoisonSkip && tr.spec.Policy.Poison != losses.PoisonDeadLetter
}

// passPoisonLocked goes on behind poison once it is written down.
func (tr *Track) passPoisonLocked(e losses.Entry, batch []byte, then func()) {
	e.Action = losses.Continued
	l := loss{then: then}
	if tr.spec.Policy.Poison == losses.PoisonDeadLetter {
		e.Action = losses.DeadLettered
		letter := letterOf(e.From, batch)
		l.letter = &letter
	}
	l.entry = e
	tr.recordLocked(l)
}

// letterOf is poison as the dead-letter topic gets it, in bytes of its own.
func letterOf(from mirror.UpstreamOffset, batch []byte) losses.Letter {
	own := slices.Clone(batch)
	if b, err := recordbatch.Parse(own); err == nil && b.Count == 1 {
		if records, err := recordbatch.Records(&b); err == nil && len(records) == 1 {
			return losses.Letter{Offset: from, Record: records[0]}
		}
	}
	return losses.Letter{Offset: from, Record: kafka.Record{Value: own}, Batch: true}
}

// resumeLocked sends again after a halt, and fetches again what was shed.
func (tr *Track) resumeLocked() {
	tr.app.resume()
	if tr.from != nil {
		tr.from.touch(tr)
	}
}
