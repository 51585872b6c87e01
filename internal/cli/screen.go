package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// screen is a terminal with log lines that scroll and a status of one or more
// lines that stays at the bottom. A log line erases the status, and draws it
// again below itself.
//
// It is safe for concurrent use: the logger and the ticker both write to it.
type screen struct {
	out   io.Writer
	width func() int // columns now; a line that wraps could not be erased
	mu    struct {
		sync.Mutex
		status string
	}
}

// The terminal's commands: to the first column and clear to the end of the line;
// the same one line up.
const (
	eraseLine = "\r\x1b[K"
	eraseUp   = "\x1b[1A" + eraseLine
)

// erase is what takes a status away.
func erase(status string) string {
	return eraseLine + strings.Repeat(eraseUp, strings.Count(status, "\n"))
}

// Write puts log lines above the status line.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.status == "" {
		return s.out.Write(p)
	}
	var b bytes.Buffer
	b.WriteString(erase(s.mu.status))
	b.Write(p)
	b.WriteString(s.mu.status)
	if _, err := s.out.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show replaces the status; an empty one takes it away.
func (s *screen) show(status string) {
	if w := s.width(); w > 1 {
		lines := strings.Split(status, "\n")
		for i, line := range lines {
			if r := []rune(line); len(r) >= w {
				lines[i] = string(r[:w-2]) + "…"
			}
		}
		status = strings.Join(lines, "\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.mu.status
	if status == old {
		return
	}
	s.mu.status = status
	// A terminal that is gone is noticed by the logger, which has something to say.
	_, _ = io.WriteString(s.out, erase(old)+status)
}
