// Package replicate is the data plane: it moves record batches of one flow from
// source partitions to target partitions as bytes, in order, under the producer
// identity of the lane that owns them, and keeps each partition's position.
//
// The walk of a batch:
//
//	source   one goroutine per source broker fetches the tracks that have room
//	intake   judges each batch by its header: forward, rewrite, decode, drop
//	track    queues entries; its outlet binds sequences and keeps the order
//	sink     one goroutine per target connection gathers at most one batch per
//	         outlet into a request and writes it without joining the bytes
//	settle   the answer moves the position, releases the buffer, feeds the pacer
//	lane     writes changed positions every few seconds and at a clean stop
//
// Words: a track is one source partition on its way; an outlet is the ordered
// way into one target partition, with its few unanswered batches; an entry is a
// batch in an outlet together with the source range it stands for; a lane is a
// partition of the flow's position topic and owns the producer identity of its
// tracks; a brake is a cap on bytes per second.
//
// It may know kafka, recordbatch, mirror, offsets and telemetry. It never
// decides where a partition starts: coord does, and hands over a [TrackSpec].
//
// Invariants:
//   - A position never passes a record that the target has not acknowledged,
//     or that a policy has not given up in writing.
//   - Batches of a partition reach the target in source order: at most five
//     unanswered, one until a leader's first success, and after any failure all
//     are answered before the first is sent again, with the same sequence.
//   - The position record that names a producer id is acknowledged before that
//     id's first data batch is sent.
//   - Memory held for record data never exceeds the budget by more than the
//     copies of batches whose fate is unknown.
//   - A track's trouble is its own: it waits or is parked by name, others run.
//
// Lock order: Task.mu, then source.mu or sink.mu alone; Track's outlet lock
// before sink.mu or source.mu. Nothing blocks under a lock.
package replicate
