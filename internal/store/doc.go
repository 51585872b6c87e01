// Package store keeps what a server was told: records by key, changed in commits
// that are all or nothing.
//
// Memory forgets; [OpenDir] keeps a journal in a local directory for one process;
// a compacted topic on a cluster serves several instances.
//
// Invariants:
//   - After a crash at any moment the store holds everything up to some commit that
//     was asked for, and every commit that was answered with success.
//   - A commit is based on a revision. If another has been made since, it changes
//     nothing and fails with [ErrStale].
//   - A store that this release cannot read is refused, not mended.
package store
