package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Severity says what a problem means for the deployment.
type Severity uint8

// The severities, from the mildest to the one that refuses the file.
const (
	Info    Severity = iota // worth knowing; nothing to do
	Warning                 // the file runs, perhaps not as its writer meant
	Error                   // the file is refused
)

// String names the severity in lower case.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	default:
		return "error"
	}
}

// MarshalText makes severities readable in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{Info, Warning, Error} {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("%q is no severity", text)
}

// Problem is one remark about a file: where, what, and what to do.
// Message and Hint never hold a secret.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // counted from 1; zero where no line is to blame
	Column   int      `json:"column,omitempty"` // counted from 1; zero where unknown
	Key      string   `json:"key,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}

// String is one line for people: file:line: severity: key: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Severity.String())
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return strings.Map(printable, b.String())
}

// printable keeps what a file quotes from steering the terminal that shows it.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return unicode.ReplacementChar
	}
	return r
}

// Problems are all remarks about a file, in the file's order.
type Problems []Problem

// HasErrors says whether the file is refused.
func (ps Problems) HasErrors() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Severity == Error })
}

// Count is how many problems have that severity.
func (ps Problems) Count(s Severity) int {
	n := 0
	for _, p := range ps {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Err is nil unless the file is refused.
func (ps Problems) Err() error {
	if !ps.HasErrors() {
		return nil
	}
	return &InvalidError{Problems: ps}
}

// sort orders by line, keeping the order of discovery within one.
func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		// Remarks about the whole file come last: they sum up.
		switch {
		case a.Line == b.Line:
			return 0
		case a.Line == 0:
			return 1
		case b.Line == 0:
			return -1
		}
		return a.Line - b.Line
	})
}

// InvalidError says that a file was refused; it holds all its problems.
type InvalidError struct{ Problems Problems }

// Error lists every error of the file, one a line.
func (e *InvalidError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		if p.Severity == Error {
			lines = append(lines, p.String())
		}
	}
	return strings.Join(lines, "\n")
}

// report collects problems while a file is read. It drops exact repeats, so a
// rule may look at one key once per flow.
type report struct {
	problems  Problems
	seen      map[Problem]bool
	concealed map[string][]stand // by key: what its references stand for
}

func (r *report) add(s Severity, at Origin, message, hint string) {
	p := Problem{
		Severity: s, File: at.File, Line: at.Line, Column: at.Column, Key: shownKey(at.Key),
		Message: r.sayable(at.Key, message), Hint: r.sayable(at.Key, hint),
	}
	if r.seen == nil {
		r.seen = map[Problem]bool{}
	}
	if r.seen[p] {
		return
	}
	r.seen[p] = true
	r.problems = append(r.problems, p)
}

func (r *report) errorf(at Origin, hint, format string, args ...any) {
	r.add(Error, at, fmt.Sprintf(format, args...), hint)
}

func (r *report) warnf(at Origin, hint, format string, args ...any) {
	r.add(Warning, at, fmt.Sprintf(format, args...), hint)
}

func (r *report) infof(at Origin, hint, format string, args ...any) {
	r.add(Info, at, fmt.Sprintf(format, args...), hint)
}
