package flow

import (
	"context"

	"heliograph/internal/cluster"
	"heliograph/internal/replicate"
)

// side is a cluster's client in the shape of the planes' ports. Only the methods
// whose types differ are here; the rest is the client's own.
type side struct{ *cluster.Client }

// DialFetch opens a connection to a broker for reading.
func (s side) DialFetch(ctx context.Context, node int32) (replicate.Fetcher, error) {
	c, err := s.Client.DialFetch(ctx, node)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialProduce opens a connection to a broker for writing.
func (s side) DialProduce(ctx context.Context, node int32) (replicate.Producer, error) {
	c, err := s.Client.DialProduce(ctx, node)
	if err != nil {
		return nil, err
	}
	return c, nil
}
