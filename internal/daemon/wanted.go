package daemon

import (
	"context"
	"log/slog"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/coord"
	"heliograph/internal/mirror"
)

// Wanted is one flow as it shall be. Everything it points to is immutable.
type Wanted struct {
	Flow           *config.Flow
	Source, Target config.Cluster // for their caps
	Paused         bool
	// Material tells versions of the files apart that the flow's clients read: key stores,
	// certificates. Another one restarts the flow with the new content.
	Material string
	// Tenant's flows share a cap; empty: none.
	Tenant               string
	TenantBytesPerSecond int64
}

// EffectKind is what a change does to a flow.
type EffectKind string

// The effects of changes.
const (
	EffectNone    EffectKind = "none"
	EffectStart   EffectKind = "start"
	EffectStop    EffectKind = "stop"
	EffectLive    EffectKind = "live"    // applied while it runs; no partition is disturbed
	EffectRestart EffectKind = "restart" // the flow stops and goes on where it was; others run on
)

// Effect is what a change does to a flow, and what of it asks for that.
type Effect struct {
	Kind EffectKind
	Why  string
}

// OpenCluster makes a client of a cluster that belongs to no flow. Nothing is contacted, but
// key stores are read.
func OpenCluster(c config.Cluster, log *slog.Logger) (*cluster.Client, error) {
	id := mirror.FlowID{Source: c.Alias, Target: c.Alias}
	return OpenSide(id, Side{Alias: c.Alias, Client: config.Client{
		Connection: c.Connection, ClientID: "heliograph", RequestTimeout: config.Opt[time.Duration]{Value: askWithin, Set: true},
	}}, nil, log)
}

// Ask learns who a cluster is. What it answers, a refusal too, is in the survey; the error is
// about the settings.
func Ask(ctx context.Context, c config.Cluster, log *slog.Logger) (ClusterSurvey, error) {
	client, err := OpenCluster(c, log)
	if err != nil {
		return ClusterSurvey{}, err
	}
	defer client.Close()
	return askCluster(ctx, c.Alias, client), nil
}

// askCluster asks within a bound.
func askCluster(ctx context.Context, alias mirror.ClusterAlias, c *cluster.Client) ClusterSurvey {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	s := ClusterSurvey{Alias: alias}
	f, err := c.Features(ctx)
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.features = f
	s.ID, s.Version, s.Brokers = f.ClusterID, f.Version, f.Brokers
	s.IncrementalAlterConfigs = f.IncrementalAlterConfigs
	s.roundTrip = roundTrip(ctx, c)
	s.RoundTripMillis = s.roundTrip.Milliseconds()
	s.Fence = string(coord.FenceLease)
	if f.Transactions {
		s.Fence = string(coord.FenceMarker)
		s.TransactionProtocol = int(coord.ProtocolOf(f.TransactionVersion))
	}
	return s
}

// AskClient learns who a cluster is by a client of it.
func AskClient(ctx context.Context, alias string, c *cluster.Client) ClusterSurvey {
	return askCluster(ctx, mirror.ClusterAlias(alias), c)
}
