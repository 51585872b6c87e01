// Package coord owns lanes: it turns "the lane group assigned lane n to us" into
// running tracks, and takes them down again.
//
// A lane is a partition of the flow's position topic; source partitions belong
// to the lane that their position record hashes to. Taking a lane over:
//
//	identify  InitProducerId under the lane's transactional id raises the epoch
//	read      the lane's books: positions (for missing keys in all lanes) and map
//	place     plan.Place decides for each partition: fresh, resume, scan, park
//	fence     an abort marker in each partition with unfinished writing
//	scan      read both logs from the position to the marker, match by record,
//	          and enter into the loss ledger what is gone
//	run       hand the places to the data plane
//
// Words: the fence ladder is how sure we are that the last owner is silent. A
// marker is the control batch of an aborted transaction: behind it the broker
// refuses the last owner's epoch. Where the target gives none, the rung below
// is lease, wait and scan: we own the lane by the group, wait until the last
// owner's session must have ended, and scan to the end of the log.
//
// It may know kafka, losses, mirror, offsets, plan, recordbatch and replicate. It
// speaks to clusters through small ports.
//
// Invariants (rules of the delivery design in docs/architecture.md):
//   - A marker counts only when read in the partition's log, below the high
//     watermark; the end of its transaction proves nothing.
//   - Data records are counted and compared by content, never by offset.
//   - Without a position nothing is copied to a target that holds data.
//   - A lane without partitions takes no producer id.
package coord
