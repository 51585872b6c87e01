// Package daemon is the composition root: it turns a validated configuration
// into clients and flows, runs the flows side by side, answers for their health
// and metrics, and stops them in order.
//
// It is the only package that knows both the configuration and the engines, so
// that a key of a file never leaks into them. It replicates nothing itself and
// prints nothing.
//
// The walk:
//
//	New  deployment -> a client per flow and side, a brake per cap, a flow.Spec per flow
//	Run  all flows at once, each supervised on its own: a flow that ends is
//	     started again after a pause, and the others do not notice
//	     context ends -> every flow drains -> clients close -> Run returns
//
// Invariants:
//   - Nothing is contacted before Run.
//   - One flow's error never stops another, unless Options.FirstErrorStops asks
//     for MirrorMaker's behaviour.
//   - Run returns within Options.StopWithin after its context has ended.
package daemon
