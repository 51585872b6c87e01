// Package e2e holds the tests that need real brokers (build tag e2e). They share
// the two clusters of [heliograph/internal/kafkatest.Pair]; what breaks a broker
// on purpose starts a cluster of its own.
//
//	make e2e                                   all of it
//	make e2e E2EFLAGS='-run BrokerFacts'       some of it
package e2e
