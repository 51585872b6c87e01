package store

import (
	"io"
	"os"
	"syscall"
)

// files is what a [Dir] needs of a file system. Tests let every step fail.
type files interface {
	MkdirAll(path string) error
	Lock(path string) (file, error)
	ReadFile(path string) ([]byte, error)
	Create(path string) (file, error)
	Append(path string) (file, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(path string) error
}

type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// osFiles is the real one. What it makes is for the owner only.
type osFiles struct{}

func (osFiles) MkdirAll(path string) error           { return os.MkdirAll(path, 0o700) }
func (osFiles) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }
func (osFiles) Rename(from, to string) error         { return os.Rename(from, to) }
func (osFiles) Remove(path string) error             { return os.Remove(path) }

func (osFiles) Create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (osFiles) Append(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
}

// Lock takes a lock that the operating system gives back when the process ends.
func (osFiles) Lock(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// SyncDir makes a rename durable.
func (osFiles) SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// broken is a journal that could not be opened after it was replaced.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
func (b broken) Sync() error               { return b.err }
func (b broken) Truncate(int64) error      { return b.err }
func (b broken) Close() error              { return nil }
