package daemon

import (
	"sync"

	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
)

// brakes are the caps that several flows share, each made when it is first needed. A flow's own
// cap is its own affair.
type brakes struct {
	process *replicate.Brake

	mu       sync.Mutex
	clusters map[mirror.ClusterAlias]*replicate.Brake
	tenants  map[string]*replicate.Brake
}

func newBrakes(bytesPerSecond int64) *brakes {
	return &brakes{
		process:  replicate.NewBrake(bytesPerSecond),
		clusters: map[mirror.ClusterAlias]*replicate.Brake{}, tenants: map[string]*replicate.Brake{},
	}
}

// of are the shared caps of a flow, set to what it says of them.
func (b *brakes) of(w *Wanted) []*replicate.Brake {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := []*replicate.Brake{
		b.process,
		set(b.clusters, w.Flow.ID.Source, w.Source.BytesPerSecond),
		set(b.clusters, w.Flow.ID.Target, w.Target.BytesPerSecond),
	}
	if w.Tenant != "" {
		all = append(all, set(b.tenants, w.Tenant, w.TenantBytesPerSecond))
	}
	return all
}

func set[K comparable](brakes map[K]*replicate.Brake, key K, bytesPerSecond int64) *replicate.Brake {
	b := brakes[key]
	if b == nil {
		b = replicate.NewBrake(bytesPerSecond)
		brakes[key] = b
	}
	if b.Rate() != bytesPerSecond {
		b.SetRate(bytesPerSecond)
	}
	return b
}
