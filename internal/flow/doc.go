// Package flow is one replication flow, alive: it joins the data plane
// (replicate), the metadata plane (syncer) and the lane group (coord) of one
// ordered pair of clusters to that pair's clients, supervises them, and
// publishes their status.
//
// It knows nothing of configuration files: the daemon gives it a [Spec]. What a
// flow asks of its target is told by [Spec.Books] and [Spec.Desired], for a run and
// for a preview.
//
// The walk of a run:
//
//	connect    wait for both clusters; one and the same cluster is refused
//	prepare    make the bookkeeping topics; find the lanes' coordinator meanwhile
//	build      data plane, keeper of lanes, loss ledger, jobs
//	join       the lane group; its callbacks take lanes over and give them up
//	           the jobs that exist once run with the owner of lane 0
//	stop       leave the group, drain the lanes, write the last offset syncs
//
// Invariants:
//   - Nothing is written to a cluster before the pair is known to be two
//     different clusters.
//   - One loss is one entry in the ledger, however often a lane is taken over.
//   - One partition's trouble stays with that partition; one flow's with that flow.
//   - Run returns only after everything it started has ended.
package flow
