//go:build bench

// Command bench measures heliograph beside its peers, in turns, on the same real
// clusters, and appends the medians to docs/benchmarks.md:
//
//	make bench                                             about half an hour
//	make bench BENCHFLAGS=-quick                           about eight minutes, smaller, without TLS
//	make bench FULL=1                                      hours: every codec, size and number of partitions
//	make bench BENCHFLAGS='-contenders helio -cells one -report -'
//
// The walk: fill a source topic per [cell]; then, turn by turn, start every
// [contender] on a full source and an empty target and watch it until the last
// record has arrived ([stage]); then send records at a steady rate and time their
// way ([pace]); then write the tables and hold them against the bars (report.go).
//
// While a copy runs, a [bystander] writes to the target and keeps how long that takes:
// what a catch-up costs others. A contender or a cell that fails, a pace that is not kept
// included, is noted in the table, and the others go on; the run then ends with an error.
//
// The loop and the relay are this program itself in another [role], each in a
// process of its own: every figure of processor time is what the kernel counted
// for one contender's process, never the brokers' or the harness's.
//
// It needs what the e2e tests need, and 20 GB of disk.
package main
