package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"heliograph/internal/config"
	"heliograph/internal/telemetry"
)

// maxInstances bounds the processes of one deployment on one machine.
const maxInstances = 64

// Instance is this process's place among those of the same deployment on the
// same machine. A process that starts again soon takes the same place, so that
// it finds what it owned without waiting for a dead member's session to end.
type Instance struct {
	Name string
	lock *os.File // nil where there is no file to lock
}

// TakeInstance finds the first free place. The place is held by a lock on a file
// in dir, which the operating system gives back when the process ends, however
// it ends. Without a file (a read-only disk, say) the place is one that nobody
// takes again, and what that costs is logged.
func TakeInstance(dep *config.Deployment, host, dir string, log *slog.Logger) *Instance {
	id := deploymentHash(dep)
	n, lock, err := takePlace(dir, id)
	if err != nil {
		log.Warn("no lock for a place on this machine: after a crash the next start waits for the old session to end",
			telemetry.KeyError, err)
		return &Instance{Name: fmt.Sprintf("%s-%s-pid%d", host, id, os.Getpid())}
	}
	return &Instance{Name: fmt.Sprintf("%s-%s-%d", host, id, n), lock: lock}
}

func takePlace(dir, id string) (n int, lock *os.File, err error) {
	for n = range maxInstances {
		name := filepath.Join(dir, fmt.Sprintf("heliograph-%s-%d.lock", id, n))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			if _, exists := os.Stat(name); os.IsPermission(err) && exists == nil {
				continue // another user's process is in this place
			}
			return 0, nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return n, f, nil
		}
		_ = f.Close() // nothing was written
	}
	return 0, nil, fmt.Errorf("all %d places in %s are taken", maxInstances, dir)
}

// Release gives the place back. The file stays: removing it would race with a
// process that has just opened it.
func (i *Instance) Release() {
	if i.lock != nil {
		_ = i.lock.Close() // nothing was written
	}
}

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
