package daemon

import (
	"fmt"
	"log/slog"
	"time"

	"heliograph/internal/flow"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

const (
	// lookEvery is how often the narrator looks at the flows.
	lookEvery = time.Second
	// lookPart bounds what looking costs: with thousands of partitions it takes so
	// long that it must be rarer, and the pause is so many times the look.
	lookPart = 200
	// patientLooks is how many looks partitions must wait until it is news: a
	// leader that moves makes them wait for less.
	patientLooks = 3
)

// narrator logs what changes about flows as a whole, a line each: states, and
// partitions that wait for longer than a leader takes to move. What concerns one
// partition or job is told by who does it.
type narrator struct {
	log   *slog.Logger
	flows map[mirror.FlowID]*told
}

// told is what was last said of a flow.
type told struct {
	state   flow.State
	looks   int // in a row with waiting partitions
	waiting bool
}

func newNarrator(log *slog.Logger) *narrator {
	return &narrator{log: log, flows: map[mirror.FlowID]*told{}}
}

func (n *narrator) look(statuses []flow.Status) {
	if len(n.flows) > 2*len(statuses)+100 { // most of them are gone
		clear(n.flows)
	}
	for i := range statuses {
		s := &statuses[i]
		t := n.flows[s.ID]
		if t == nil {
			t = &told{state: flow.Starting}
			n.flows[s.ID] = t
		}
		log := n.log.With(telemetry.KeyFlow, s.ID.String())
		if s.State != t.state {
			t.state = s.State
			tellState(log, s)
		}
		waiting, why := waitingPartitions(s)
		if waiting == 0 {
			t.looks = 0
			if t.waiting {
				t.waiting = false
				log.Info("partitions run again", telemetry.KeyCount, len(s.Partitions))
			}
			continue
		}
		if t.looks++; t.looks == patientLooks {
			t.waiting = true
			log.Warn("partitions wait", telemetry.KeyCount, waiting, "of", len(s.Partitions), telemetry.KeyReason, why)
		}
	}
}

// tellState logs the states that nobody else tells: who breaks or stops says so itself.
func tellState(log *slog.Logger, s *flow.Status) {
	switch s.State {
	case flow.Running:
		log.Info("flow running", "topics", s.Topics, "partitions", len(s.Partitions), "lanes", s.Lanes)
	case flow.Waiting:
		log.Warn("flow waiting", telemetry.KeyReason, s.Reason)
	case flow.Degraded:
		log.Warn("flow degraded", telemetry.KeyReason, s.Reason)
	case flow.Starting, flow.Failed, flow.Stopped, flow.Paused:
	}
}

// waitingPartitions counts them, and gives the reason of the first.
func waitingPartitions(s *flow.Status) (n int, why string) {
	for i := range s.Partitions {
		if p := &s.Partitions[i]; p.State == "waiting" {
			if n++; why == "" {
				why = p.Reason
			}
		}
	}
	return n, why
}

// standing is a running flow's status with its state corrected: a flow of which
// every partition waits is waiting itself, and so not ready.
func standing(s flow.Status) flow.Status {
	if s.State != flow.Running || len(s.Partitions) == 0 {
		return s
	}
	if n, why := waitingPartitions(&s); n == len(s.Partitions) {
		s.State, s.Reason = flow.Waiting, fmt.Sprintf("all %s wait: %s", countNoun(n, "partition"), why)
	}
	return s
}
