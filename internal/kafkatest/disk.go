package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// ballast is the file that fills a disk.
func (b *Broker) ballast() string { return filepath.Join(b.dataDir, "ballast") }

// FillDisk takes all space that is left on the broker's disk.
func (b *Broker) FillDisk() error {
	if !b.mounted {
		return errors.New("the broker has no disk of its own to fill")
	}
	f, err := os.OpenFile(b.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close() // full, as it should be
	return nil
}

// FreeDisk gives the space back.
func (b *Broker) FreeDisk() error { return os.Remove(b.ballast()) }
