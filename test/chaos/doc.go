// Package chaos breaks a running flow again and again, in ways and at moments
// drawn from a seed, and then asks a checker that knows nothing of the program
// whether every record is on the target, once and in its place.
//
//	make chaos SEED=7 MINUTES=3       the program in ./cmd; appends to docs/reliability.md
//	make chaos CHAOSFLAGS="-only zombie,second"   some kinds of faults only
//
// The walk:
//
//	Draw(seed, length)    the schedule: set-up and faults; pure, the same for the same seed
//	Run(ctx, options)     clusters, load, the built program, fault after fault, the verdict
//	Result.Append(path)   the dated table
//
// The set-up: a source of one or two brokers, a target of three with replication
// factor 3 and min.insync.replicas 2, a proxy before every broker, the program
// with a properties file, three topics under load, one of them written in
// transactions of which some abort.
//
// Two readers judge, neither uses code of the program. The tail reads the target
// all the while and counts records, which gives recovery times and tells under
// which fault a record was doubled or left out. The checker of package kafkatest
// compares both clusters at the end, and its word is the verdict.
//
// The seed gives the order, kinds, places and durations of the faults. What the
// machine adds (how long a broker takes to start) it cannot replay.
package chaos
