// Package native is heliograph's own REST API, /api/v1: everything that the command
// line and the console can do, in JSON, described by an OpenAPI 3.1 document that is
// made of the Go types here (docs/openapi.json, checked by a test).
//
// It decides nothing: [control.Control] checks and stores, the engine runs, and the
// daemon's questions to clusters are asked as the command line asks them. Here are
// only shapes: a view per resource, problems (RFC 9457) for errors, revisions as
// ETags, pages, server-sent events.
//
// Invariants:
//   - No view holds a secret; a hidden value that comes back unchanged means the one stored.
//   - Every error is a problem that names the field where there is one.
//   - What a request costs is bounded: its body, its time, its share of clusters' answers.
package native
