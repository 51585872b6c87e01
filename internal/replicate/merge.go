package replicate

import (
	"sync"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

const (
	// mergeBytes is the size that merged batches aim for.
	mergeBytes = 256 << 10
	// smallPlain and smallCompressed are the sizes below which a batch is worth
	// merging: one produce request carries one batch per partition, so that small
	// batches cost the target a request each. A compressed batch has to be
	// compressed again, which pays only where it is tiny.
	smallPlain      = 16 << 10
	smallCompressed = 4 << 10
)

// merger turns small batches that wait in one outlet into one. It never waits
// for more: a lone batch goes at once, as it is.
type merger struct {
	budget *Budget
	blocks sync.Pool // *[]byte
	runs   sync.Pool // *[]recordbatch.Batch
}

// merge joins the next entry with those behind it, as far as they are small and
// alike. It is called before the next entry is bound to a sequence.
func (m *merger) merge(a *appender, limit int32) {
	if a.cursor >= a.entries.len() || a.entries.at(a.cursor).sequence != noSequence {
		return
	}
	most := mergeBytes
	if limit > 0 {
		most = min(most, int(limit))
	}
	run, _ := m.runs.Get().(*[]recordbatch.Batch)
	if run == nil {
		run = new([]recordbatch.Batch)
	}
	var size int
	*run, size = m.run((*run)[:0], a, most)
	if len(*run) > 1 {
		m.join(a, *run, size, limit)
	}
	clear(*run) // hold on to no batch
	m.runs.Put(run)
}

// join puts one batch in the place of a run of them.
func (m *merger) join(a *appender, run []recordbatch.Batch, size int, limit int32) {
	block, _ := m.blocks.Get().(*[]byte)
	if block == nil {
		b := make([]byte, 0, mergeBytes+recordbatch.HeaderSize)
		block = &b
	}
	// Their checksums were verified when they arrived.
	merged, err := recordbatch.MergeVerified((*block)[:0], run)
	if err != nil || (limit > 0 && len(merged) > int(limit)) {
		m.blocks.Put(block) // they go as they are, and a broken one meets the target's own check
		return
	}
	*block = merged
	m.budget.Force(size)
	buf := kafka.NewBuffer(merged, func(*kafka.Buffer) {
		m.budget.Release(size)
		m.blocks.Put(block)
	})
	m.replace(a, len(run), merged, buf)
}

// run appends to dst the entries from the cursor on that may become one batch.
func (m *merger) run(dst []recordbatch.Batch, a *appender, most int) (run []recordbatch.Batch, size int) {
	for i := a.cursor; i < a.entries.len(); i++ {
		e := a.entries.at(i)
		if len(e.Bytes) >= smallPlain || size+len(e.Bytes) > most || e.Path == Rebuilt || e.settled != nil {
			break // large, or refused by the target once: that is not put together again
		}
		h, err := recordbatch.ParseHeader(e.Bytes)
		if err != nil || h.Codec() != recordbatch.CodecNone && len(e.Bytes) >= smallCompressed {
			break
		}
		dst = append(dst, recordbatch.Batch{Header: h, Bytes: e.Bytes})
		first, last := &dst[0], &dst[len(dst)-1]
		if !recordbatch.CanMerge(first, last) || !sameTransaction(first, last) {
			dst = dst[:len(dst)-1]
			break
		}
		size += len(e.Bytes)
	}
	return dst, size
}

// sameTransaction reports whether two batches may lie in one transaction of the
// source, or in none: a merged batch never holds records of two.
func sameTransaction(a, b *recordbatch.Batch) bool {
	return a.Transactional() == b.Transactional() &&
		(!a.Transactional() || a.ProducerID == b.ProducerID && a.ProducerEpoch == b.ProducerEpoch)
}

// replace puts one entry in the place of n.
func (m *merger) replace(a *appender, n int, merged []byte, buf *kafka.Buffer) {
	out := Entry{Bytes: merged, Buffer: buf, Path: Rewritten, From: a.entries.at(a.cursor).From, sequence: noSequence}
	for i := range n {
		e := a.entries.at(a.cursor + i)
		for _, r := range e.sourceRuns(0, out.Count, e.Count) {
			out.Runs = appendRun(out.Runs, r)
		}
		out.Count += e.Count
		out.Taken += e.Taken
		out.Next = e.Next
		out.MaxTimestamp = max(out.MaxTimestamp, e.MaxTimestamp)
		out.old = out.old || e.old
		a.queued -= e.bytes()
		e.release(m.budget)
	}
	a.queued += out.bytes()
	a.entries.splice(a.cursor, n, out)
}

// appendRun adds a run, joined to the last where it goes on.
func appendRun(runs []recordbatch.Run, r recordbatch.Run) []recordbatch.Run {
	if n := len(runs); n > 0 {
		last := &runs[n-1]
		if last.Source+int64(last.Count) == r.Source && last.Index+last.Count == r.Index {
			last.Count += r.Count
			return runs
		}
	}
	return append(runs, r)
}
