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
}

// slot is the place of one flow. A flow that broke is replaced in it by a fresh
// one after a pause.
type slot struct {
	id     mirror.FlowID
	fresh  func() runner
	target *cluster.Client
	log    *slog.Logger

	mu struct {
		sync.Mutex
		flow    runner    // nil while pausing
		err     error     // why the last one broke
		since   time.Time // of the break
		again   time.Time // when the next one starts
		stopped bool
	}
}

// run keeps a flow running until ctx ends. With once, the first break is returned.
func (s *slot) run(ctx context.Context, once bool) error {
	pause := firstRestart
	for {
		began := time.Now()
		err := s.start().Run(ctx)
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
	s.mu.flow = f
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

func (s *slot) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.stopped
}

func (s *slot) status() flow.Status {
	s.mu.Lock()
	f, err, since, again := s.mu.flow, s.mu.err, s.mu.since, s.mu.again
	s.mu.Unlock()
	switch {
	case f != nil:
		return standing(f.Status())
	case err != nil:
		return flow.Status{
			ID: s.id, State: flow.Failed, Since: since,
			Reason: fmt.Sprintf("%v; next start at %s", err, again.Format(time.TimeOnly)),
		}
	}
	return flow.Status{ID: s.id, State: flow.Starting}
}
