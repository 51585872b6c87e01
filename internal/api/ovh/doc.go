// Package ovh answers OVHcloud's API for replication: the calls below
// /cloud/project/{serviceName}/database that its guide "How to replicate topics
// between two Kafka services" needs, with OVHcloud's paths, field names, error
// classes and request signature, so that OVHcloud's own clients work unchanged.
//
// It is a translation and keeps nothing itself:
//
//	Kafka service        a cluster of control; its id is made from the alias
//	MirrorMaker service  a name under which integrations stand: one that every
//	                     project has, and documents "ovh.service" for more
//	integration          a document "ovh.integration": a cluster and a service
//	replication          a document "ovh.replication" with two integrations, and a
//	                     flow of control, which holds all that can be changed
//	topic, user, topicAcl  what is on the cluster itself, found by ids that are made
//	                     from it
//
// A project, OVHcloud's {serviceName}, is a name in the credentials of an
// application; whose resources it shows is decided by the tenant that stands
// beside it.
//
// Invariants:
//   - A request is answered only after its signature or token has been checked,
//     except for /auth/time.
//   - What a commit refuses has changed nothing: a replication and its flow come and
//     go together, and so do the references that keep an integration in use.
//   - A tenant sees and changes topics, users and ACLs on its own clusters only.
//   - Unknown fields, wrong types and unknown ids are refused by name, never ignored.
//   - Passwords are answered once, when they are made, and are kept by nobody.
package ovh
