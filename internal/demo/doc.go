// Package demo is two embedded Kafka clusters in this process with traffic on
// the first, for people who want to see heliograph work before they have Kafka.
//
// The clusters are franz-go's kfake: they speak Kafka's protocol on real ports,
// so that any Kafka tool can look at them, and forget everything at the end.
// They are more lenient than Kafka and prove nothing about it.
//
// The demo only makes the surroundings. Replication is done by the same daemon
// that runs a real file, from the text that [Demo.File] returns.
package demo
