package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// LogFormat is how log lines look.
type LogFormat string

// The log formats. LogAuto is text on a terminal and JSON elsewhere.
const (
	LogAuto LogFormat = "auto"
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// ParseLogLevel reads a level's name: debug, info, warn or error.
func ParseLogLevel(s string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return 0, fmt.Errorf("log level %q: want debug, info, warn or error", s)
	}
	return l, nil
}

// LogOptions says how a logger writes.
type LogOptions struct {
	Format   LogFormat // zero is LogAuto
	Level    slog.Leveler
	Terminal bool          // the output is a terminal
	Color    bool          // colours are wanted; only text has them
	Every    time.Duration // equal lines are counted for this long; zero is a minute
}

// NewLogger writes to w and counts equal lines instead of repeating them. flush
// writes what is still only counted; call it when nothing logs any more.
func NewLogger(w io.Writer, o LogOptions) (log *slog.Logger, flush func()) {
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	if o.Every == 0 {
		o.Every = time.Minute
	}
	text := o.Format == LogText || (o.Format != LogJSON && o.Terminal)
	var h slog.Handler
	if text {
		h = tint.NewTextHandler(w, &tint.Options{Level: o.Level, TimeFormat: time.TimeOnly, NoColor: !o.Color, ReplaceAttr: readable})
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: o.Level, ReplaceAttr: readable})
	}
	rh := newRepeatHandler(h, o.Every)
	return slog.New(rh), rh.flush
}

// readable writes durations as people do: JSON would have bare nanoseconds, text nine digits.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		d := a.Value.Duration()
		if d >= time.Second {
			d = d.Round(time.Millisecond)
		}
		a.Value = slog.StringValue(d.String())
	}
	return a
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// WantsColor reports whether colours suit a terminal under this environment:
// NO_COLOR set to anything, or TERM=dumb, turns them off.
func WantsColor(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
