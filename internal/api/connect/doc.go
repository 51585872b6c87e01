// Package connect answers the calls of Kafka Connect's REST API by which people look
// after MirrorMaker's connectors: lists, status, configuration, pause, resume, stop,
// restart, offsets and plug-ins. Behind it there are flows.
//
// A flow A->B is up to three connectors, with Strimzi's names for them:
//
//	A->B.MirrorSourceConnector      the flow itself: without it there is none
//	A->B.MirrorCheckpointConnector  there unless emit.checkpoints.enabled is false
//	A->B.MirrorHeartbeatConnector   there unless emit.heartbeats.enabled is false
//
// A connector's configuration is the flow's settings with source.cluster.* and
// target.cluster.* in front of the clusters'. Writing it replaces the connector's own
// settings and passes over those of the two others, as MirrorMaker's connectors do; so
// each may be given the whole configuration, as people do. A cluster that is not known
// yet is registered from source.cluster.* or target.cluster.*; one that is known is
// not changed by a connector.
//
// What runs is a flow, so pause, stop and restart are the source connector's; the two
// others follow it.
//
// Invariants:
//   - Answers hold no secret; a hidden value that is sent back leaves the secret as it is.
//   - A refused configuration has changed nothing, the clusters included.
package connect
