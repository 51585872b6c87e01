// Package losses is the loss ledger's records: which source records are not, or
// may not be, on the target, why, and since when. They lie in the compacted
// topic mm2-losses.internal on the target, one unique key an entry, so that
// compaction takes none away.
//
// It is pure: it encodes and decodes. The data plane decides what is a loss and
// waits until the entry is written before a position passes it.
//
// Invariants:
//   - Every entry has a key of its own: flow, partition, range, kind and time.
//   - Unknown fields and kinds of later releases are kept out of decisions, not
//     refused: an old reader shows what it knows.
package losses
