// Package offsets is arithmetic on offsets: when a pair of offsets is worth
// publishing, what is left to publish, and what an upstream offset is
// downstream as far as published pairs tell.
//
//	acknowledged run ─► SyncPacer ─► SyncQueue ─► offset syncs topic ─► SyncStore ─► Translation
//	                    due or not   what to send                       64 pairs a partition
//
// It is pure: no I/O, no clock, no goroutines, no locks. Nothing here is safe
// for concurrent use; whoever owns a value guards it.
//
// All of it follows MirrorMaker, so that both see the same syncs and come to
// the same checkpoints.
package offsets
