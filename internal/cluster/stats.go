package cluster

import (
	"sync/atomic"
	"time"
)

// Stats are totals since the client was opened. They only grow, except for
// Connections.
type Stats struct {
	Connections       int64         // data connections open now
	Dials             int64         // data connections ever opened
	LoginFailures     int64         // refused logins; more than a few means a wrong credential
	SessionRestarts   int64         // fetch sessions a broker forgot; many mean too small a session cache there
	Reauthentications int64         // data connections replaced because their login ended
	MetadataRefreshes int64         // metadata requests of the topology
	FetchedBytes      int64         // bytes of fetch answers
	ProducedBytes     int64         // bytes of produce requests
	FetchThrottle     time.Duration // time brokers asked fetch connections to pause (quota)
	ProduceThrottle   time.Duration // time brokers asked produce connections to pause (quota)
}

// counters is the live form of Stats.
type counters struct {
	connections       atomic.Int64
	dials             atomic.Int64
	loginFailures     atomic.Int64
	sessionRestarts   atomic.Int64
	reauthentications atomic.Int64
	metadataRefreshes atomic.Int64
	fetchedBytes      atomic.Int64
	producedBytes     atomic.Int64
	fetchThrottle     atomic.Int64
	produceThrottle   atomic.Int64
}

// Stats reads the totals. It is cheap enough for every scrape.
func (c *Client) Stats() Stats {
	s := &c.stats
	return Stats{
		Connections:       s.connections.Load(),
		Dials:             s.dials.Load(),
		LoginFailures:     s.loginFailures.Load(),
		SessionRestarts:   s.sessionRestarts.Load(),
		Reauthentications: s.reauthentications.Load(),
		MetadataRefreshes: s.metadataRefreshes.Load(),
		FetchedBytes:      s.fetchedBytes.Load(),
		ProducedBytes:     s.producedBytes.Load(),
		FetchThrottle:     time.Duration(s.fetchThrottle.Load()),
		ProduceThrottle:   time.Duration(s.produceThrottle.Load()),
	}
}
