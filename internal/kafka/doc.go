// Package kafka holds Kafka's own nouns as plain values: topic-partitions,
// topic ids, leader epochs, error codes and their classes, what a fetch and a
// produce carry, and the shapes of topics, configs, ACLs and groups.
//
// It is the vocabulary that all planes share, so that a plane can state what it
// needs of a cluster without importing a client. It does no I/O, reads no clock
// and knows nothing of MirrorMaker.
//
// Invariants:
//   - Absence is a type or a documented sentinel constant, never a bare -1 in code.
//   - A [Buffer] is owned by whoever holds a reference; the last release returns
//     it to its pool and its bytes must not be read afterwards.
package kafka
