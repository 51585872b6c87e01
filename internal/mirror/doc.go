// Package mirror holds what other MirrorMaker tools can see of us: the names of
// topics, the filters that choose them, and the records of the bookkeeping
// topics, byte for byte. What no other tool could observe lives elsewhere.
//
// It is pure: no I/O, no clock, no goroutines, except that a backtracking
// pattern is watched by regexp2's own timer while it works. Everything here is a
// value and safe for concurrent use once made.
//
// # Names
//
// A [ReplicationPolicy] maps a topic of the source to its name on the target
// and back. [TopicSelection.Replicates] decides whether a topic is copied, and
// says why where it is not:
//
//	copied = (filter accepts it, or it is a heartbeats topic)
//	         and it is not internal
//	         and no hop in its name is the target
//
// # Records
//
// All are big-endian; STRING is an int16 byte length and UTF-8 bytes. Trailing
// bytes are ignored on reading.
//
//	heartbeat    key    source STRING, target STRING
//	             value  version int16 (0), timestamp int64 in ms
//	checkpoint   key    group STRING, target topic STRING, partition int32
//	             value  version int16 (0), upstream int64, downstream int64, metadata STRING
//	offset sync  key    source topic STRING, partition int32
//	             value  upstream int64, downstream int64          (no version)
//	position     key    ["<connector>",{"cluster":"<S>","partition":<n>,"topic":"<t>"}]
//	             value  {"offset":<last replicated upstream offset>}
//	             header heliograph: our own facts, see [PositionFacts]
//
// Offsets of the two sides have different types, [UpstreamOffset] and
// [DownstreamOffset]: a swap would be silent loss, so it does not compile.
package mirror
