package replicate

import "sync/atomic"

// Traffic is what a task has read, in bytes of record batches as the source has
// them. What was fetched and is neither delivered nor on its way was thrown away and
// had to be fetched again.
type Traffic struct {
	Fetched   int64 // in all answers
	Delivered int64 // of batches that are settled: on the target, without a record to copy, or given up
	Cut       int64 // of batches that did not fit into their answer, whose rest a broker cuts off
}

// traffic is the live form of Traffic.
type traffic struct{ fetched, delivered, cut atomic.Int64 }

// Traffic tells what has been read since the task was made.
func (t *Task) Traffic() Traffic {
	return Traffic{Fetched: t.traffic.fetched.Load(), Delivered: t.traffic.delivered.Load(), Cut: t.traffic.cut.Load()}
}
