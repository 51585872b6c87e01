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
		code     kafka.Code
		last     string
	}
}

// allow returns the last refusal while the pause runs.
func (g *gate) allow(cluster, addr string) error {
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
		Op: "connect", Cluster: cluster, Subject: addr, Class: kafka.ClassOperator,
		Code: g.mu.code,
		Err:  fmt.Errorf("held back after a refused login: %s", g.mu.last),
		Hint: fmt.Sprintf("check the credentials; the next login is tried in %s", left.Round(time.Second)),
	}
}

// failed notes a refusal. cause must not name what the login was wanted for, or
// each request's refusal would count as news.
func (g *gate) failed(code kafka.Code, cause error) {
	g.stats.loginFailures.Add(1)
	g.mu.Lock()
	// Connections that were on their way when the pause began are one failure.
	if !time.Now().Before(g.mu.until) {
		g.mu.failures++
		pause := min(firstLoginPause<<min(g.mu.failures-1, 10), maxLoginPause)
		g.mu.until = time.Now().Add(pause)
	}
	news := g.mu.last != cause.Error()
	g.mu.code, g.mu.last = code, cause.Error()
	g.mu.Unlock()
	if news {
		g.log.Error("login refused", "code", code.String(), "err", cause)
	} else {
		g.log.Debug("login refused again", "code", code.String(), "err", cause)
	}
}

func (g *gate) passed() {
	g.mu.Lock()
	again := g.mu.failures > 0
	g.mu.failures, g.mu.until, g.mu.last = 0, time.Time{}, ""
	g.mu.Unlock()
	if again {
		g.log.Info("login accepted again")
	}
}
