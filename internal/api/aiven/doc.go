// Package aiven answers Aiven's calls for the replication flows of a MirrorMaker
// service, with Aiven's paths, field names, envelopes and errors, so that its clients
// work unchanged:
//
//	/v1/project/{project}/service/{service_name}/mirrormaker/replication-flows
//
// A replication flow is a flow of control and nothing else: its fields are settings
// of MirrorMaker under other names. A project is the tenant of the token, and any
// name for a token without one; the service's name is free, since a server is one
// MirrorMaker.
//
// Invariants:
//   - A field that cannot be honoured is refused with what to do instead, never
//     ignored.
//   - An update changes the fields that it names and no others, or nothing.
package aiven
