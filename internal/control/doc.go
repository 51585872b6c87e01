// Package control is heliograph's control plane: the clusters and flows that a
// server runs, kept in a store, checked, changed and watched. Every API (native,
// OVHcloud's, Aiven's, Connect's), the console and the command line go through it,
// so that one set of rules holds for all of them.
//
// Words:
//
//	cluster    a Kafka cluster under its alias, with client settings in Kafka's names
//	flow       an ordered pair of clusters with settings in MirrorMaker's names
//	document   a JSON value of an adapter, which control keeps and does not read:
//	           ids and fields that only one API has (OVHcloud's services, integrations)
//	revision   a number that grows with every commit; a resource carries the
//	           revision of its last change, which makes its ETag
//	actor      who asks, taken from the context (see [WithActor])
//
// All writing is a commit of one or more [Change]s, all or nothing:
//
//	_, err := c.Commit(ctx,
//		control.PutFlow{Flow: control.Flow{Source: "A", Target: "B", Enabled: true,
//			Properties: map[string]string{"topics": "orders.*"}}, If: control.Absent},
//		control.PutDocument{Kind: "ovh.replication", ID: id, Value: raw, If: control.Absent})
//
// A commit is parsed and checked by config, compared with the policy and the
// quotas of the actor, written to the store, and then handed to the engine. Nothing
// is changed unless everything before the store's answer succeeded. What the engine
// cannot start shows in the flow's status.
//
// Adapters keep their ids in documents and the meaning in clusters and flows. A
// second flow for a pair is refused with [Conflict]. A delete of a cluster that a
// flow uses is refused with [Conflict]; both may go in one commit. Errors are
// always *[Error]: an adapter maps [Kind] to its status codes, and [Field] to its own
// names (Field.Name is a property key, or a field of the resource in lower camel
// case such as "source", "target", "alias", "labels").
//
// What a flow does is asked with Status and changed with Pause, Resume and Restart.
// What lies on a cluster (topics, ACLs, users) is done with the client of [Control.Client],
// for short; the caller closes it.
//
// Invariants:
//   - Properties of clusters and flows hold secrets. They leave this package only in
//     [Cluster.Properties] and [Flow.Properties]; whoever shows a resource uses Shown.
//   - A value that came by an API never makes the server read its own files,
//     environment or an address of a token service, unless the server's configuration
//     allows it.
//   - A commit is on the store before anything acts on it; a crash leaves the old
//     state or the new one.
package control
