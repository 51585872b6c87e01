package daemon

import (
	"heliograph/internal/config"
	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
)

// brakes are the caps that several flows share. A flow's own cap is its own affair.
type brakes struct {
	process  *replicate.Brake
	clusters map[mirror.ClusterAlias]*replicate.Brake
}

func newBrakes(dep *config.Deployment) brakes {
	b := brakes{
		process:  replicate.NewBrake(dep.Process.BytesPerSecond),
		clusters: map[mirror.ClusterAlias]*replicate.Brake{},
	}
	for alias, c := range dep.Clusters {
		b.clusters[alias] = replicate.NewBrake(c.BytesPerSecond)
	}
	return b
}

func (b brakes) of(id mirror.FlowID) []*replicate.Brake {
	return []*replicate.Brake{b.process, b.clusters[id.Source], b.clusters[id.Target]}
}
