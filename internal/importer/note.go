package importer

import (
	"fmt"
	"strconv"
	"strings"

	"heliograph/internal/config"
)

// Verdict is what became of something that the original said.
type Verdict string

// The verdicts.
const (
	Kept    Verdict = "kept"
	Changed Verdict = "changed" // said in another way, or with another value
	Dropped Verdict = "dropped"
	Added   Verdict = "added"   // said by the original without words
	Missing Verdict = "missing" // a person must supply or decide it
	Remark  Verdict = "remark"  // about the whole
)

// Note is what became of one setting. It holds no secret.
type Note struct {
	Verdict Verdict `json:"verdict"`
	File    string  `json:"file,omitempty"`
	Line    int     `json:"line,omitempty"`
	Setting string  `json:"setting,omitempty"` // as the original spells it
	Now     string  `json:"now,omitempty"`     // where it stands in the document
	Why     string  `json:"why,omitempty"`
}

// String is one line for people: file:line: verdict: setting: now X: why.
func (n Note) String() string {
	var b strings.Builder
	if n.File != "" {
		b.WriteString(n.File)
		if n.Line > 0 {
			fmt.Fprintf(&b, ":%d", n.Line)
		}
		b.WriteString(": ")
	}
	b.WriteString(string(n.Verdict))
	if n.Setting != "" {
		b.WriteString(": " + n.Setting)
	}
	if n.Now != "" {
		b.WriteString(": now " + n.Now)
	}
	if n.Why != "" {
		b.WriteString(": " + n.Why)
	}
	return oneLine(b.String())
}

// oneLine shows control characters, so that a value can neither end a comment
// nor write to a terminal.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if strconv.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		}
	}
	return b.String()
}

// origin is where the original said something.
type origin struct {
	file string
	line int
	path string // spec.mirrors[0].topicsPattern, or a key
}

func (o origin) note(v Verdict, now, why string) Note {
	return Note{Verdict: v, File: o.file, Line: o.line, Setting: config.Redact(o.path), Now: config.Redact(now), Why: config.Redact(why)}
}

// sub is a field below.
func (o origin) sub(name string, line int) origin {
	switch {
	case strings.HasPrefix(name, "["), o.path == "":
		o.path += name
	default:
		o.path += "." + name
	}
	if line > 0 {
		o.line = line
	}
	return o
}
