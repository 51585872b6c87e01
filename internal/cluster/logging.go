package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// repeatAfter is how long the same complaint of franz-go stays silent.
const repeatAfter = time.Minute

// kgoLogger passes franz-go's messages on. Its errors are our warnings, since it
// retries and the caller gets the final error as well; all else is for debugging.
type kgoLogger struct {
	log *slog.Logger

	mu struct {
		sync.Mutex
		seen map[string]*complaint
	}
}

type complaint struct {
	last    time.Time
	dropped int
}

func newKgoLogger(log *slog.Logger) *kgoLogger {
	l := &kgoLogger{log: log}
	l.mu.seen = make(map[string]*complaint)
	return l
}

// Level tells franz-go what not to build messages for.
func (l *kgoLogger) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelDebug
	}
	return kgo.LogLevelError
}

// Log writes a message; the same error is written once a minute.
func (l *kgoLogger) Log(level kgo.LogLevel, message string, keyvals ...any) {
	ctx := context.Background()
	if level != kgo.LogLevelError {
		l.log.LogAttrs(ctx, slog.LevelDebug, "client", attrs(message, keyvals)...)
		return
	}
	l.mu.Lock()
	c := l.mu.seen[message]
	if c == nil {
		c = &complaint{}
		l.mu.seen[message] = c
	}
	if time.Since(c.last) < repeatAfter {
		c.dropped++
		l.mu.Unlock()
		return
	}
	dropped := c.dropped
	c.last, c.dropped = time.Now(), 0
	l.mu.Unlock()
	as := attrs(message, keyvals)
	if dropped > 0 {
		as = append(as, slog.Int("repeated", dropped))
	}
	l.log.LogAttrs(ctx, slog.LevelWarn, "client", as...)
}

func attrs(message string, keyvals []any) []slog.Attr {
	as := make([]slog.Attr, 0, len(keyvals)/2+1)
	as = append(as, slog.String("message", message))
	for i := 0; i+1 < len(keyvals); i += 2 {
		as = append(as, slog.Any(fmt.Sprint(keyvals[i]), keyvals[i+1]))
	}
	return as
}
