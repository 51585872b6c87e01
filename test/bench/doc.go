//go:build bench

// Command bench measures heliograph beside Java MirrorMaker 2, in turns, on the
// same two real clusters, and appends the medians to docs/benchmarks.md:
//
//	make bench                               3 turns of 3 GB each
//	make bench BENCHFLAGS='-turns 1 -records 300000'
//
// Each turn starts a contender on a full source topic of eight partitions and an
// empty target and watches it until the last record has arrived: the time to the
// first record, the time and the processor seconds for all of them, and the peak
// of resident memory. It needs what the e2e tests need, and 10 GB of disk.
package main
