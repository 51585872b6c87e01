// Package offsets is arithmetic on offsets: when a pair of offsets is worth
// publishing, what is left to publish, and what an offset of one side is on the
// other.
//
//	acknowledged run ─┬► RunMap ─► chunks in the books ─► RunMap          exact, as far back as it reaches
//	                  └► SyncPacer ─► SyncQueue ─► offset syncs topic ─► SyncStore    64 pairs a partition
//	                     due or not   what to send
//
// Both ends answer with a [Translation]; the map also translates back, with an
// [Origin]. Pacer, queue and store follow MirrorMaker, so that both see the same
// syncs and come to the same checkpoints; the map is ours.
//
// It is pure: no I/O, no clock, no goroutines, no locks. Nothing here is safe
// for concurrent use; whoever owns a value guards it.
//
// Invariants:
//   - No answer is ahead of the truth: a reader that goes on at it reads records
//     again rather than missing one.
//   - Runs of a map rise on both sides. Chunks that are ahead of a position are
//     cut back to it when they are loaded.
package offsets
