// Package server is heliograph serve: one process that runs flows from files and from
// its APIs, keeps what it was told in a store, and answers over HTTP.
//
// It joins what is below: the store, the daemon that runs flows, control, and the APIs.
// Its own matters are the server's configuration file (docs/server.schema.json is made of
// [Config]), tokens, and the manners of an HTTP server on a network: a Host check against
// DNS rebinding, bounds of headers, bodies and times, an orderly end.
//
// Invariants:
//   - Nobody is answered without a token, on loopback neither, apart from /healthz.
//   - A configuration that cannot be taken over while running changes nothing.
package server
