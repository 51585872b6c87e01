// Package kafkatest starts real Kafka for tests: brokers of any release Maven
// can fetch, with any listeners, that can be killed, paused and restarted; Java
// MirrorMaker 2; Kafka's own command-line tools; and a TCP proxy that misbehaves
// on request. It is test support and must not be imported by shipped code.
//
// The walk:
//
//	jars := Jars(release)                       fetched once per machine, kept in a cache
//	cluster := Start(t, ClusterOptions{…})      processes of the test binary, gone with it
//	cluster.CreateTopic, Produce, ReadTopic     Go-side conveniences over franz-go
//	Compare(ctx, source, target)                the independent checker
//	Pair(t)                                     two clusters shared by a test binary
//
// Three words: a release is a Kafka version ("3.9.2"); a cluster is its
// processes; the internal listener is a plaintext listener every broker has
// beside the ones a test asks for, over which brokers and the harness itself talk.
//
// Invariants:
//   - No process outlives the test binary, however it ends: the kernel kills them.
//   - The checker counts records and never looks at offsets: offsets differ
//     between source and target by nature.
//   - The harness imports none of the code under test except the nouns of
//     package kafka.
package kafkatest
