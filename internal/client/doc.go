// Package client asks a heliograph server over its API: where the server is, who
// asks, requests and problems, pages, and the stream of events.
//
// It knows HTTP and the API's manners, not its resources: what a path returns is
// the caller's to say, so that the verbs of the command line need no second model
// of the server.
//
// A token comes from a file or the environment, never from a command line, where
// every process of the machine could read it. It is sent to the server that was
// named and to no other.
package client
