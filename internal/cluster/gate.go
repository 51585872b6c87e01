package cluster

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

const (
	firstLoginPause = time.Second
	maxLoginPause   = time.Minute
)

// A gate holds back connections after a refused login. Without it a wrong
// password would be offered some hundred times a second by every connection that
// is retried, which floods the broker's log and can lock the account.
//
// The pause doubles from one second to one minute. A refusal is reported once,
// and again only when its text changes; so is the first login that works again.
type gate struct {
	log   *slog.Logger
	stats *counters

	mu struct {
		sync.Mutex
		failures int
		until    time.Time
		last     error
	}
}

// allow returns the last refusal while the pause runs.
func (g *gate) allow(op, cluster, subject string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.failures == 0 {
		return nil
	}
	left := time.Until(g.mu.until)
	if left <= 0 {
		return nil
	}
	return &kafka.Error{
		Op: op, Cluster: cluster, Subject: subject, Class: kafka.ClassOperator,
		Code: kafka.CodeOf(g.mu.last),
		Err:  fmt.Errorf("held back after a refused login: %w", g.mu.last),
		Hint: fmt.Sprintf("the next login is tried in %s", left.Round(time.Second)),
	}
}

func (g *gate) failed(err error) {
	g.stats.loginFailures.Add(1)
	g.mu.Lock()
	// Connections that were on their way when the pause began are one failure.
	if time.Now().After(g.mu.until) {
		g.mu.failures++
		pause := min(firstLoginPause<<min(g.mu.failures-1, 10), maxLoginPause)
		g.mu.until = time.Now().Add(pause)
	}
	news := g.mu.last == nil || g.mu.last.Error() != err.Error()
	g.mu.last = err
	g.mu.Unlock()
	if news {
		g.log.Error("login refused", "err", err)
	} else {
		g.log.Debug("login refused again", "err", err)
	}
}

func (g *gate) passed() {
	g.mu.Lock()
	again := g.mu.failures > 0
	g.mu.failures, g.mu.until, g.mu.last = 0, time.Time{}, nil
	g.mu.Unlock()
	if again {
		g.log.Info("login accepted again")
	}
}
