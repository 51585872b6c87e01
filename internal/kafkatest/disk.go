package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// mount puts a small file system under the broker's data, where one was asked for.
func (b *Broker) mount(ctx context.Context) error {
	if b.cluster.opts.Disk == 0 {
		return nil
	}
	if err := os.MkdirAll(b.dataDir, 0o755); err != nil {
		return err
	}
	size := fmt.Sprintf("size=%d", b.cluster.opts.Disk)
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", size, "tmpfs", b.dataDir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", ErrNoMount, err, strings.TrimSpace(string(out)))
	}
	b.mounted = true
	return nil
}

// ErrNoMount says that this user may not mount file systems, which takes root.
var ErrNoMount = errors.New("a small file system cannot be mounted")

func (b *Broker) unmount() error {
	if !b.mounted {
		return nil
	}
	b.mounted = false
	if out, err := exec.Command("umount", b.dataDir).CombinedOutput(); err != nil {
		return fmt.Errorf("unmount the disk of broker %d: %w: %s", b.id, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// FillDisk leaves no space on the broker's disk, by making the disk as small as
// what lies on it.
func (b *Broker) FillDisk() error {
	if !b.mounted {
		return fmt.Errorf("%w: the broker has no disk of its own to fill", ErrNoMount)
	}
	const attempts = 50 // what lies on it grows meanwhile
	var err error
	for range attempts {
		var at syscall.Statfs_t
		if err = syscall.Statfs(b.dataDir, &at); err != nil {
			return err
		}
		//nolint:unconvert // 32 bits wide elsewhere
		if err = b.resize(int64(at.Blocks-at.Bfree) * int64(at.Bsize)); err == nil {
			return nil
		}
	}
	return err
}

// FreeDisk gives the space back.
func (b *Broker) FreeDisk() error { return b.resize(b.cluster.opts.Disk) }

func (b *Broker) resize(size int64) error {
	out, err := exec.Command("mount", "-o", fmt.Sprintf("remount,size=%d", size), b.dataDir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("give the disk of broker %d %d bytes: %w: %s", b.id, size, err, strings.TrimSpace(string(out)))
	}
	return nil
}
