// Package telemetry is what an operator sees of a running process: one logger,
// one list of attribute keys, one metric registry, series written as text, the
// build's own description, and the admin HTTP server that serves metrics and health.
//
// It knows nothing of Kafka or of flows. Who has something to show hands over a
// function that writes to an [Exposition], or one that answers with a [Health].
//
// The log's rules: INFO is a change of state, WARN will heal, ERROR needs a
// person. Messages are constant; what varies is an attribute with a key of
// attrs.go. The same line again within a minute is counted, not written.
package telemetry
