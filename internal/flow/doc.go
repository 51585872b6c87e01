// Package flow is one replication flow, alive: it joins the data plane
// (replicate), the metadata plane (syncer) and the lane group (coord) of one
// ordered pair of clusters to that pair's clients, supervises them, and
// publishes their status.
//
// It knows nothing of configuration files: the daemon gives it a [Spec].
//
// Invariants:
//   - Nothing is written to a cluster before the pair is known to be two
//     different clusters.
//   - One partition's trouble stays with that partition; one flow's with that flow.
//   - Run returns only after everything it started has ended.
package flow
