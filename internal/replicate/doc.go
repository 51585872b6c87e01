// Package replicate is the data plane: it moves record batches of one flow from
// source partitions to target partitions as bytes, in order, under the producer
// identity of the lane that owns them, and keeps each partition's position.
//
// The walk of a batch:
//
//	source   one goroutine per source broker fetches the tracks that have room
//	intake   judges each batch by its header: forward, rewrite, decode, drop
//	track    queues entries; its outlet binds sequences and keeps the order
//	merger   joins small entries that wait in one outlet; it never waits for more
//	sink     gathers at most one batch per outlet into a request of its target
//	         connection and writes it without joining the bytes; whoever brings
//	         an answer sends the next one, a goroutine only the first
//	settle   the answer moves the position, adds a run to the offset map,
//	         releases the buffer, feeds the pacer
//	books    every few seconds and at a clean stop the lane writes what changed:
//	         chunks of the map first, and when these are acknowledged the positions
//
// A lane that delivers exactly once does the same inside transactions: tracks
// join before their first batch, the books go into the transaction of the
// data they stand for, and what others see of a track (its position, the map,
// offset syncs) moves with the commit. How they join, and whether the identity of
// the next transaction is another, is a matter of the protocol, which each
// transaction asks for when it begins.
//
// What goes wrong: the steward looks for leaders and log bounds for all tracks
// that need one at once, connections to brokers that hang are cut where their
// partitions have moved; a refused batch goes down to the next slower way and in
// the end parks its track or is left out; what is left out is in the loss ledger
// before the position passes it.
//
// Words: a track is one source partition on its way; an outlet is the ordered
// way into one target partition, with its few unanswered batches; an entry is a
// batch in an outlet together with the source range it stands for; a lane is a
// partition of the flow's position topic and owns the producer identity of its
// tracks; a book is one of a lane's own partitions, its positions or its part of
// the offset map; a window is how much of a track, or of an answer, is asked for at once; a brake
// is a cap on bytes per second.
//
// It may know kafka, recordbatch, mirror, offsets, losses and telemetry. It never
// decides where a partition starts: coord does, and hands over a [TrackSpec].
//
// Invariants:
//   - A position never passes a record that the target has not acknowledged,
//     or that a policy has not given up with an entry in the ledger.
//   - A position is written after the chunks of the map that it covers.
//   - Batches of a partition reach the target in source order: at most five
//     unanswered, one until a leader's first success, and after any failure all
//     are answered before the first is sent again, with the same sequence.
//   - The position record that names a producer id is acknowledged before that
//     id's first data batch is sent.
//   - Memory held for record data never exceeds the budget by more than the
//     copies of batches whose fate is unknown.
//   - A track's trouble is its own: it waits or is parked by name, others run.
//
// Lock order: a lane's transaction, then a track's or a book's outlet lock, then
// one of Task.mu, source.mu, sink.mu, steward.mu and Lane.set alone. Nothing blocks
// under a lock but the transaction's, which keeps sends and commits apart.
package replicate
