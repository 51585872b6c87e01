package daemon

import (
	"fmt"
	"log/slog"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
)

// Side is one of a flow's two clusters with the settings to reach it.
type Side struct {
	Alias  mirror.ClusterAlias
	Client config.Client
}

// Sides are the two ends of a flow as this process connects to them: the source
// with the settings of the consumer that reads records, the target with those of
// the producer that writes them. The flow's other work on a side uses the same
// login; [OtherLogins] tells where a file asks for another.
func Sides(f *config.Flow) (source, target Side) {
	return Side{f.ID.Source, f.Clients.SourceConsumer}, Side{f.ID.Target, f.Clients.RecordProducer}
}

// ClientID is the one client id of a flow's connections, so that a broker quota
// by client id fits the flow: MirrorMaker's base, "A->B", behind the user's own part.
func ClientID(id mirror.FlowID, side Side) string {
	if own := side.Client.ClientID; own != "" && own != id.String() {
		return own + "|" + id.String()
	}
	return id.String()
}

// pair are the clients of both sides of a flow.
type pair struct{ source, target *cluster.Client }

// openPair makes both, or neither.
func openPair(id mirror.FlowID, from, to Side, budget *replicate.Budget, log *slog.Logger) (pair, error) {
	source, err := OpenSide(id, from, budget, log)
	if err != nil {
		return pair{}, err
	}
	target, err := OpenSide(id, to, budget, log)
	if err != nil {
		source.Close()
		return pair{}, err
	}
	return pair{source, target}, nil
}

func (p pair) close() {
	p.source.Close()
	p.target.Close()
}

// OpenSide makes the client of one side of a flow. Nothing is contacted, but key
// stores are read: a wrong path or password is found here.
func OpenSide(id mirror.FlowID, side Side, budget *replicate.Budget, log *slog.Logger) (*cluster.Client, error) {
	c := side.Client
	s, err := security(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", side.Alias, err)
	}
	o := cluster.Options{
		Alias:            string(side.Alias),
		BootstrapServers: c.BootstrapServers,
		ClientID:         ClientID(id, side),
		Security:         s,
		Rack:             c.Rack,
		DialTimeout:      c.SetupTimeout.Or(0),
		RequestTimeout:   c.RequestTimeout.Or(0),
		MetadataMaxAge:   c.MetadataMaxAge.Or(0),
		Log:              log,
	}
	if budget != nil {
		o.Budget = budget
	}
	return cluster.Open(o)
}
