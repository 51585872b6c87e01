package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Origin is the place a value was written at. The zero Origin is a default.
type Origin struct {
	File   string
	Line   int    // of the first natural line, counted from 1
	Column int    // only known for YAML
	Key    string // as written, prefix included
}

// IsDefault says that no file holds the value.
func (o Origin) IsDefault() bool { return o == Origin{} }

// String is "file:line", or "default".
func (o Origin) String() string {
	if o.IsDefault() {
		return "default"
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Entry is one key and value of a file, with where they stand.
type Entry struct {
	Key    string
	Value  string
	Items  []string // a real list, which only the YAML form has; nil elsewhere
	Origin Origin
	// Lost are the escapes that lost their backslash in reading: "\d" of a
	// regular expression written with one backslash.
	Lost []string

	literal bool // its references are its text
}

// ParseProperties reads text in the grammar of java.util.Properties, with the
// file name and line of every entry. Entries keep the file's order and its
// repeated keys.
//
// Where Java would read UTF-8 as Latin-1, valid UTF-8 is taken as such; a byte
// order mark is dropped. Both are remarked on.
func ParseProperties(file string, data []byte) ([]Entry, Problems) {
	var r report
	text := decodeText(file, data, &r)
	s := lineScanner{text: text, line: 1}
	var entries []Entry
	for {
		l, ok := s.next()
		if !ok {
			break
		}
		entries = append(entries, l.entry(file, &r))
	}
	r.problems.sort()
	return entries, r.problems
}

// decodeText is the file as characters. MirrorMaker reads bytes as Latin-1.
func decodeText(file string, data []byte, r *report) []rune {
	at := Origin{File: file, Line: 1}
	switch {
	case bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")):
		data = data[3:]
		r.warnf(at, "save the file without the mark", "the file starts with a byte order mark; MirrorMaker would take it as part of the first key")
	case bytes.HasPrefix(data, []byte("\xFF\xFE")), bytes.HasPrefix(data, []byte("\xFE\xFF")):
		r.errorf(at, "save the file as UTF-8 or ASCII", "the file is UTF-16 (it starts with that byte order mark)")
		return nil
	}
	if utf8.Valid(data) {
		return []rune(string(data))
	}
	text := make([]rune, len(data))
	for i, c := range data {
		text[i] = rune(c)
	}
	return text
}

// logicalLine is one entry before it is taken apart: its characters with
// continuations joined, and the natural line of each.
type logicalLine struct {
	first int // natural line it starts on
	chars []rune
	lines []int
}

// lineScanner yields logical lines: comments and blank lines left out, a line
// that ends in an odd number of backslashes joined with the next.
type lineScanner struct {
	text []rune
	pos  int
	line int // natural line of text[pos]
}

func (s *lineScanner) next() (logicalLine, bool) {
	var l logicalLine
	continued := false
	for s.pos < len(s.text) {
		if len(l.chars) == 0 {
			l.first = s.line
		}
		continued = s.natural(&l)
		if !continued && len(l.chars) > 0 {
			return l, true
		}
	}
	// A lone backslash at the end of the file is an entry without anything, to Java.
	return l, continued
}

// natural appends one natural line to l and reports whether the next one
// continues it. Leading blanks vanish on every natural line; a comment is one
// only while the logical line is still empty.
func (s *lineScanner) natural(l *logicalLine) (continued bool) {
	for s.pos < len(s.text) && isBlank(s.text[s.pos]) {
		s.pos++
	}
	if s.pos < len(s.text) && len(l.chars) == 0 && (s.text[s.pos] == '#' || s.text[s.pos] == '!') {
		for s.pos < len(s.text) && !isLineEnd(s.text[s.pos]) {
			s.pos++
		}
		s.lineEnd()
		return false
	}
	escaped := false
	for s.pos < len(s.text) && !isLineEnd(s.text[s.pos]) {
		c := s.text[s.pos]
		l.chars = append(l.chars, c)
		l.lines = append(l.lines, s.line)
		escaped = c == '\\' && !escaped
		s.pos++
	}
	if escaped { // the backslash joins lines; at the end of the file it is dropped
		l.chars = l.chars[:len(l.chars)-1]
		l.lines = l.lines[:len(l.lines)-1]
	}
	s.lineEnd()
	return escaped
}

// lineEnd steps over one line end: \n, \r or \r\n.
func (s *lineScanner) lineEnd() {
	if s.pos >= len(s.text) {
		return
	}
	if s.text[s.pos] == '\r' && s.pos+1 < len(s.text) && s.text[s.pos+1] == '\n' {
		s.pos++
	}
	s.pos++
	s.line++
}

func isBlank(c rune) bool   { return c == ' ' || c == '\t' || c == '\f' }
func isLineEnd(c rune) bool { return c == '\n' || c == '\r' }

// entry takes the line apart at the first unescaped '=', ':' or blank.
func (l logicalLine) entry(file string, r *report) Entry {
	keyEnd, separated, escaped := len(l.chars), false, false
	for i, c := range l.chars {
		if !escaped && (c == '=' || c == ':' || isBlank(c)) {
			keyEnd, separated = i, !isBlank(c)
			break
		}
		escaped = c == '\\' && !escaped
	}
	start := min(keyEnd+1, len(l.chars))
	for start < len(l.chars) {
		c := l.chars[start]
		if !isBlank(c) {
			if separated || (c != '=' && c != ':') {
				break
			}
			separated = true
		}
		start++
	}
	at := Origin{File: file, Line: l.first}
	e := Entry{Key: l.unescape(0, keyEnd, at, nil, r)}
	at.Key = e.Key
	e.Origin = at
	e.Value = l.unescape(start, len(l.chars), at, &e.Lost, r)
	if !isASCII(l.chars) {
		r.warnf(at, `write such characters as \uXXXX to be read alike everywhere`,
			"characters outside ASCII; MirrorMaker reads the file as Latin-1 and would see other ones if it is UTF-8")
	}
	return e
}

// unescape reads chars[from:to] with backslash escapes replaced.
func (l logicalLine) unescape(from, to int, at Origin, lost *[]string, r *report) string {
	out := make([]uint16, 0, to-from)
	for i := from; i < to; i++ {
		c := l.chars[i]
		if c != '\\' {
			out = utf16.AppendRune(out, c)
			continue
		}
		i++
		if i >= to {
			break
		}
		switch c := l.chars[i]; c {
		case 't':
			out = append(out, '\t')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 'f':
			out = append(out, '\f')
		case 'u':
			unit, ok := hexUnit(l.chars[i+1 : min(i+5, to)])
			if !ok {
				here := at
				here.Line = l.lines[i]
				r.errorf(here, `write "/" or "\\" for a backslash of a path`,
					`malformed \u escape: "\u" must be followed by four hexadecimal digits`)
				out = append(out, '\\', 'u')
				continue
			}
			out = append(out, unit)
			i += 4
		default:
			out = utf16.AppendRune(out, c)
			if lost != nil && c != '\\' {
				*lost = append(*lost, `\`+string(c))
			}
		}
	}
	return string(utf16.Decode(out))
}

func hexUnit(digits []rune) (uint16, bool) {
	if len(digits) != 4 {
		return 0, false
	}
	for _, d := range digits {
		if !strings.ContainsRune("0123456789abcdefABCDEF", d) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(string(digits), 16, 16)
	return uint16(n), err == nil
}

func isASCII(chars []rune) bool {
	for _, c := range chars {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
