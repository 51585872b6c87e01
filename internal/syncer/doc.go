// Package syncer is a flow's metadata plane: the periodic jobs that keep the
// target's topics, settings, ACLs and group offsets in step with the source,
// and the records that other MirrorMaker tools read (heartbeats, offset syncs,
// checkpoints).
//
// It decides nothing: package plan computes what is to be done, the jobs here
// observe, carry out and report. It knows clusters only by the small ports of
// ports.go.
//
// The walk:
//
//	Internal.RunOnce      makes the topics MirrorMaker keeps its books in, again after each deletion
//	TopicSync.RunOnce     discovers, creates, grows; publishes the list of Replicas to the data plane
//	ConfigSync.RunOnce    settings of existing copies; holds what could delete records
//	ACLSync.RunOnce       topic ACLs, never removed
//	GroupSync.Discover    which groups of the source are followed
//	GroupSync.Emit        offsets of these groups -> translation -> checkpoints
//	GroupSync.Commit      checkpoints -> offsets of the target's groups
//	Heartbeats.RunOnce    one heartbeat
//	SyncTail.Run          offset syncs, read as they come -> translation
//	SyncWriter            offset syncs of the data plane -> their topic
//
// A RunOnce does one round at the given time and returns what kept the whole
// round from being done; what concerns one topic or group is kept with it, said
// once, and shown by the Report methods. A [Loop] runs a round again and again.
//
// Invariants:
//   - One topic's or group's trouble never keeps others from being served.
//   - A trouble is one log line when it begins, a reminder now and then, and one
//     line when it is over.
//   - Rounds of one job never overlap; goroutines are started by [Loop] users
//     and [SyncWriter] only, and whoever starts one waits for it.
//   - Admin requests are batched and pass a [Budget].
package syncer
