package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

const (
	firstRestart = 5 * time.Second
	lastRestart  = time.Minute
	// settled is how long a flow must have run for its next restart to be quick again.
	settled = 10 * time.Minute
)

// errEnded is the error of a flow that returned without being asked to.
var errEnded = errors.New("the flow ended by itself")

// runner is a flow as the daemon sees it.
type runner interface {
	Run(ctx context.Context) error
	Status() flow.Status
	Update(spec flow.Spec)
}

// slot is the place of one flow. A flow that broke is replaced in it by a fresh
// one after a pause. A change that a running flow cannot take replaces the slot.
type slot struct {
	id    mirror.FlowID
	log   *slog.Logger
	fresh func() runner
	dial  func() (flow.Deps, error) // makes the clients; nil in tests
	after <-chan struct{}           // the slot in whose place this one comes ends first; may be nil

	paused bool
	wanted Wanted // changed by Apply alone, under mu; others use want
	deps   flow.Deps
	cancel context.CancelFunc // set when it is launched, under the daemon's lock
	done   chan struct{}      // closed at its end; of a slot that never runs, when after is

	mu struct {
		sync.Mutex
		flow    runner    // nil while pausing
		opened  bool      // the clients are made
		err     error     // why the last one broke
		since   time.Time // of the break
		again   time.Time // when the next one starts
		refused string    // why the last change was not taken over
		stopped bool
	}
}

func (s *slot) want() Wanted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// adopt notes what is wanted of a flow that goes on as it is.
func (s *slot) adopt(w *Wanted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.mu.refused = *w, ""
}

// open makes the clients unless they are there. Key stores are read.
func (s *slot) open() error {
	s.mu.Lock()
	opened := s.mu.opened
	s.mu.Unlock()
	if opened || s.dial == nil {
		return nil
	}
	deps, err := s.dial()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deps, s.mu.opened = deps, true
	return nil
}

func (s *slot) openClients() []*cluster.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.opened {
		return nil
	}
	return []*cluster.Client{s.deps.Source, s.deps.Target}
}

func (s *slot) closeClients() {
	for _, c := range s.openClients() {
		c.Close()
	}
	s.mu.Lock()
	s.mu.opened = false
	s.mu.Unlock()
}

// run keeps a flow running until ctx ends. With once, the first break is returned.
func (s *slot) run(ctx context.Context, once bool) error {
	if s.after != nil {
		<-s.after // it drains, which is bounded; two of one flow would fight for its lanes
	}
	pause := firstRestart
	for {
		began := time.Now()
		err := s.open()
		if err == nil {
			err = s.start().Run(ctx)
		}
		if ctx.Err() != nil {
			return s.stop(err)
		}
		if err == nil {
			err = errEnded
		}
		s.log.Error("flow broke", telemetry.KeyError, err)
		if once {
			return s.stop(fmt.Errorf("flow %s: %w", s.id, err))
		}
		if time.Since(began) > settled {
			pause = firstRestart
		}
		s.broke(err, pause)
		select {
		case <-ctx.Done():
			return s.stop(nil)
		case <-time.After(pause):
		}
		pause = min(2*pause, lastRestart)
	}
}

func (s *slot) start() runner {
	f := s.fresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.flow, s.mu.err = f, nil
	return f
}

func (s *slot) broke(err error, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.flow, s.mu.err = nil, err
	s.mu.since = time.Now()
	s.mu.again = s.mu.since.Add(pause)
}

// stop notes the end. Being told to stop is no error.
func (s *slot) stop(err error) error {
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		s.log.Error("flow did not stop cleanly", telemetry.KeyError, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.stopped = true
	return err
}

// update hands a running flow what it can take while it runs.
func (s *slot) update(spec flow.Spec) {
	s.mu.Lock()
	f := s.mu.flow
	s.mu.Unlock()
	if f != nil {
		f.Update(spec)
	}
}

func (s *slot) refuse(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.refused = why
}

func (s *slot) status() flow.Status {
	s.mu.Lock()
	f, err, since, again, refused := s.mu.flow, s.mu.err, s.mu.since, s.mu.again, s.mu.refused
	s.mu.Unlock()
	switch {
	case s.paused:
		return flow.Status{ID: s.id, State: flow.Paused}
	case f != nil:
		status := standing(f.Status())
		if refused != "" && status.Reason == "" {
			status.Reason = "runs as before: " + refused
		}
		return status
	case err != nil:
		return flow.Status{
			ID: s.id, State: flow.Failed, Since: since,
			Reason: fmt.Sprintf("%v; next start at %s", err, again.Format(time.TimeOnly)),
		}
	}
	return flow.Status{ID: s.id, State: flow.Starting}
}
