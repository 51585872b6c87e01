package replicate

import (
	"sync"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

const (
	// mergeBytes is the size that merged batches aim for.
	mergeBytes = 64 << 10
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
	n, size := m.run(a, most)
	if n < 2 {
		return
	}
	block, _ := m.blocks.Get().(*[]byte)
	if block == nil {
		b := make([]byte, 0, mergeBytes+recordbatch.HeaderSize)
		block = &b
	}
	batches := make([][]byte, n)
	for i := range n {
		batches[i] = a.entries.at(a.cursor + i).Bytes
	}
	merged, err := recordbatch.Merge((*block)[:0], batches)
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
	m.replace(a, n, merged, buf)
}

// run counts the entries from the cursor on that may become one batch.
func (m *merger) run(a *appender, most int) (n, size int) {
	var first, b recordbatch.Batch
	for i := a.cursor; i < a.entries.len(); i++ {
		e := a.entries.at(i)
		h, err := recordbatch.ParseHeader(e.Bytes)
		if err != nil || e.Path == Rebuilt || e.settled != nil {
			break // what the target refused once is not put together again
		}
		b = recordbatch.Batch{Header: h, Bytes: e.Bytes}
		small := smallPlain
		if b.Codec() != recordbatch.CodecNone {
			small = smallCompressed
		}
		if len(e.Bytes) >= small || size+len(e.Bytes) > most {
			break
		}
		if n == 0 {
			first = b
		} else if !recordbatch.CanMerge(&first, &b) || !sameTransaction(&first, &b) {
			break
		}
		n++
		size += len(e.Bytes)
	}
	return n, size
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
