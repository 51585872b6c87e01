package store

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// ErrStale is the error of a commit whose base is not the last commit.
var ErrStale = errors.New("the store has changed since it was read")

// Record is one key's new value in a commit; nil deletes the key.
type Record struct {
	Key   string `json:"k"`
	Value []byte `json:"v,omitempty"`
}

// State is everything in a store at one revision. It is shared: nobody changes it.
type State struct {
	Revision int64
	Values   map[string][]byte
}

// with is the state after a commit.
func (s State) with(revision int64, records []Record) State {
	next := State{Revision: revision, Values: maps.Clone(s.Values)}
	if next.Values == nil {
		next.Values = map[string][]byte{}
	}
	for _, r := range records {
		if r.Value == nil {
			delete(next.Values, r.Key)
		} else {
			next.Values[r.Key] = r.Value
		}
	}
	return next
}

// Store is a place for records. Its methods may be called at the same time.
type Store interface {
	// Read returns everything as of the last commit that is known.
	Read(ctx context.Context) (State, error)
	// Commit makes revision base+1 of the records, or changes nothing.
	Commit(ctx context.Context, base int64, records []Record) error
	// Changed delivers a word after commits of other instances, never after own ones; nil
	// where there are no others.
	Changed() <-chan struct{}
	Close() error
}

// Memory is a store that forgets at the end of the process.
type Memory struct {
	mu    sync.Mutex
	state State
}

// Read returns everything.
func (m *Memory) Read(context.Context) (State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, nil
}

// Commit changes records.
func (m *Memory) Commit(_ context.Context, base int64, records []Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if base != m.state.Revision {
		return ErrStale
	}
	m.state = m.state.with(base+1, records)
	return nil
}

// Changed is nil: there are no other instances.
func (m *Memory) Changed() <-chan struct{} { return nil }

// Close does nothing.
func (m *Memory) Close() error { return nil }
