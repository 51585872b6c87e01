package control

import (
	"maps"
	"slices"
	"sync"
)

// outsideFiles are the files of the server that values of the API have named, by permission of
// the policy. They are watched, so that logins and certificates in them rotate.
type outsideFiles struct {
	mu    sync.Mutex
	names map[string]bool
}

func (f *outsideFiles) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = map[string]bool{}
	}
	f.names[name] = true
}

// Files are those that the values of clusters and flows were read from, or name for their clients.
// One that nothing names any more stays among them until the server ends.
func (c *Control) Files() []string {
	c.reached.mu.Lock()
	defer c.reached.mu.Unlock()
	return slices.Sorted(maps.Keys(c.reached.names))
}
