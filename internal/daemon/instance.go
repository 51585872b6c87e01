package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"heliograph/internal/config"
)

// maxInstances bounds the processes of one deployment on one machine.
const maxInstances = 64

// Instance is this process's place among those of the same deployment on the
// same machine. A process that starts again soon takes the same place, so that
// it finds what it owned without waiting for a dead member's session to end.
type Instance struct {
	Name string
	lock *os.File
}

// TakeInstance finds the first free place. The place is held by a lock on a file
// in dir, which the operating system gives back when the process ends, however it ends.
func TakeInstance(dep *config.Deployment, host, dir string) (*Instance, error) {
	id := deploymentHash(dep)
	for n := range maxInstances {
		name := filepath.Join(dir, fmt.Sprintf("heliograph-%s-%d.lock", id, n))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			if os.IsPermission(err) {
				continue // another user's process is in this place
			}
			return nil, fmt.Errorf("instance lock: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return &Instance{Name: fmt.Sprintf("%s-%s-%d", host, id, n), lock: f}, nil
		}
		_ = f.Close() // nothing was written
	}
	return nil, fmt.Errorf("instance lock: all %d places in %s are taken", maxInstances, dir)
}

// Release gives the place back. The file stays: removing it would race with a
// process that has just opened it.
func (i *Instance) Release() { _ = i.lock.Close() }

// deploymentHash tells deployments apart by what they connect, not by how they
// are tuned: an edited interval must not cost a member its place.
func deploymentHash(dep *config.Deployment) string {
	h := sha256.New()
	for i := range dep.Flows {
		_, _ = fmt.Fprintln(h, dep.Flows[i].ID, dep.Flows[i].Positions.GroupID)
	}
	for _, alias := range dep.Aliases {
		_, _ = fmt.Fprintln(h, alias, strings.Join(dep.Clusters[alias].BootstrapServers, ","))
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}
