package daemon

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

const (
	// farTrip is the round trip from which on a cluster is far: below it no limit of
	// the path is reached.
	farTrip = 50 * time.Millisecond
	// tripTries is how often the way to a cluster is measured; the shortest counts.
	tripTries = 5
	// openBatches is how many batches of a partition a broker takes unanswered from one
	// producer and still keeps in order.
	openBatches = 5
	sendBuffer  = "socket.send.buffer.bytes"
	kernelSized = -1
)

// roundTrip measures the way to a cluster and back over a connection that is open;
// zero where it does not answer.
func roundTrip(ctx context.Context, c *cluster.Client) time.Duration {
	var least time.Duration
	for range tripTries {
		began := time.Now()
		if _, err := c.Brokers(ctx); err != nil {
			return 0
		}
		if took := time.Since(began); least == 0 || took < least {
			least = took
		}
	}
	return least
}

// findDistances reports what the path's length will limit, and whose setting it is.
func (s *Survey) findDistances(ctx context.Context, v *visitor, f *config.Flow) {
	source, target := v.answers[f.ID.Source], v.answers[f.ID.Target]
	if !f.Enabled || !v.reached(f.ID) {
		return
	}
	if source.roundTrip >= farTrip {
		s.findNarrowBuffers(ctx, v, f.ID.Source, v.sides[f.ID].source)
	}
	if target.roundTrip >= farTrip {
		s.add(config.Warning, v.dep.Clusters[f.ID.Target].Origin,
			fmt.Sprintf("the round trip to cluster %s takes %s: a partition is written at most %d batches a round trip, %s with batches of 64 KiB",
				f.ID.Target, target.roundTrip.Round(time.Millisecond), openBatches, perSecond(openBatches*64<<10, target.roundTrip)),
			"run heliograph near the target: reading over a long path has no such limit")
	}
}

// findNarrowBuffers reports brokers that send no more in a round trip than a fixed
// buffer holds.
func (s *Survey) findNarrowBuffers(ctx context.Context, v *visitor, alias mirror.ClusterAlias, c *cluster.Client) {
	trip, at := v.answers[alias].roundTrip, v.dep.Clusters[alias].Origin
	found, err := c.BrokerConfigs(ctx, sendBuffer)
	if err != nil {
		s.add(config.Info, at, fmt.Sprintf("the round trip to cluster %s takes %s, and %s of its brokers cannot be read: %v", alias, trip.Round(time.Millisecond), sendBuffer, err),
			"on a long path it should be -1")
		return
	}
	for _, text := range found[sendBuffer] {
		size, err := strconv.Atoi(text)
		if err != nil || size == kernelSized {
			continue
		}
		s.add(config.Warning, at, fmt.Sprintf("the round trip to cluster %s takes %s and its brokers have %s = %d: a broker sends us at most about %s",
			alias, trip.Round(time.Millisecond), sendBuffer, size, perSecond(size, trip)),
			fmt.Sprintf("set %s = -1 on the brokers of %s and restart them, so that the kernel sizes the buffers", sendBuffer, alias))
	}
}

// perSecond is so many bytes a round trip, as a rate.
func perSecond(bytes int, trip time.Duration) string {
	return fmt.Sprintf("%.1f MB/s", float64(bytes)/1e6/trip.Seconds())
}
