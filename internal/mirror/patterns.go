package mirror

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// Engine names what runs a pattern.
type Engine string

// The engines. EngineLinear never takes longer than the name's length allows.
// EngineBacktracking runs what needs look-around, back-references or possessive
// repetition, and is stopped after [MatchTimeout].
const (
	EngineNone         Engine = "none"
	EngineLinear       Engine = "linear"
	EngineBacktracking Engine = "backtracking"
)

// MatchTimeout is how long a backtracking pattern may work on one name.
const MatchTimeout = 250 * time.Millisecond

// PatternError says which item of a list of patterns is wrong, where and how.
type PatternError struct {
	Item    string // the item as it was given
	Index   int    // its place in the list, from 0
	Piece   string // the part of the item that is wrong
	Problem string
	Hint    string // what to write instead; may be empty
}

// Error names the item, the piece, the problem and the way out.
func (e *PatternError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pattern %q", e.Item)
	if e.Piece != "" && e.Piece != e.Item {
		fmt.Fprintf(&b, ": %q", e.Piece)
	}
	b.WriteString(": " + e.Problem)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Patterns is a list of Java regular expressions, joined as MirrorMaker joins
// them: one expression of alternatives that must match the whole name. So an
// inline flag holds for all later items too, and back-references count the
// groups of the whole list. The zero value is the empty list, which matches
// nothing.
type Patterns struct {
	items []pattern
	whole matcher
}

type pattern struct {
	text string
	matcher
}

// matcher is one compiled expression on the engine that could take it.
type matcher struct {
	linear *regexp.Regexp
	backtr *regexp2.Regexp
}

// CompilePatterns compiles the items of a list. The error joins one
// [PatternError] per item that is wrong.
//
// Refused although Java knows them are the operators on sets of characters
// ([a-z&&[^b]] and [a[b]]), comments mode (?x) and Unicode classes (?U): neither
// engine can run them, and one of them would silently match something else.
func CompilePatterns(items []string) (Patterns, error) {
	if len(items) == 0 {
		return Patterns{}, nil
	}
	p := Patterns{items: make([]pattern, 0, len(items))}
	var problems []error
	for i, item := range items {
		m, err := compilePattern(item)
		if err != nil {
			err.Index = i
			addHint(err, items)
			problems = append(problems, err)
			continue
		}
		p.items = append(p.items, pattern{text: item, matcher: m})
	}
	if len(problems) > 0 {
		return Patterns{}, errors.Join(problems...)
	}
	if len(items) == 1 {
		p.whole = p.items[0].matcher
		return p, nil
	}
	whole, err := compilePattern(strings.Join(items, "|"))
	if err != nil {
		return Patterns{}, fmt.Errorf("patterns joined: %w", err)
	}
	p.whole = whole
	return p, nil
}

func compilePattern(item string) (matcher, *PatternError) {
	translated, err := translateJava(item)
	if err != nil {
		return matcher{}, err
	}
	anchored := `\A(?:` + translated + `)\z`
	if linear, err := regexp.Compile(anchored); err == nil {
		return matcher{linear: linear}, nil
	}
	backtr, cause := regexp2.Compile(anchored)
	if cause != nil {
		return matcher{}, &PatternError{Item: item, Problem: cause.Error()}
	}
	backtr.MatchTimeout = MatchTimeout
	return matcher{backtr: backtr}, nil
}

func (m matcher) match(name string) (bool, error) {
	switch {
	case m.linear != nil:
		return m.linear.MatchString(name), nil
	case m.backtr != nil:
		return m.backtr.MatchString(name)
	}
	return false, nil
}

// Match reports whether an item matches the whole name. A pattern that gives
// no answer in time does not match; use [Patterns.Try] where that matters.
func (p Patterns) Match(name string) bool {
	ok, err := p.Try(name)
	return ok && err == nil
}

// Try is Match with an error where the pattern gave no answer within
// [MatchTimeout].
func (p Patterns) Try(name string) (bool, error) {
	ok, err := p.whole.match(name)
	if err != nil {
		return false, fmt.Errorf("patterns %q gave no answer on %q within %s: simplify nested repetitions", p, name, MatchTimeout)
	}
	return ok, nil
}

// Which is the first item that matches the whole name by itself, or the whole
// list where only its items together do.
func (p Patterns) Which(name string) string {
	for _, item := range p.items {
		if ok, err := item.match(name); ok && err == nil {
			return item.text
		}
	}
	return p.String()
}

// Engine is what runs the list; EngineNone for the empty list.
func (p Patterns) Engine() Engine {
	switch {
	case p.whole.linear != nil:
		return EngineLinear
	case p.whole.backtr != nil:
		return EngineBacktracking
	}
	return EngineNone
}

// Items are the patterns as they were given.
func (p Patterns) Items() []string {
	items := make([]string, len(p.items))
	for i, item := range p.items {
		items[i] = item.text
	}
	return items
}

// String is the list as a file would have it.
func (p Patterns) String() string { return strings.Join(p.Items(), ", ") }

// addHint recognises the slips that people make most.
func addHint(err *PatternError, items []string) {
	item, next := err.Item, ""
	if err.Index+1 < len(items) {
		next = items[err.Index+1]
	}
	switch {
	case item == "*":
		err.Hint = "for every name write .*"
	case strings.HasPrefix(item, "*"):
		err.Hint = "for any beginning write ." + item
	case strings.HasPrefix(item, "!"):
		err.Hint = "put what is to be left out into the exclude list"
	case openRepetition(item) != "" && next != "":
		err.Hint = "a list is split at every comma, also inside {m,n}"
		if whole := withoutComma(openRepetition(item), next); whole != "" {
			err.Hint += "; write " + strings.TrimSuffix(item, openRepetition(item)) + whole
		}
	case strings.Contains(item, "[") && !strings.Contains(item, "]") && next != "":
		err.Hint = "a list is split at every comma, also inside [...]"
	}
}

// openRepetition is the end of an item that a comma cut off inside a repetition:
// the repeated atom and "{m".
func openRepetition(item string) string {
	brace := strings.LastIndexByte(item, '{')
	if brace < 1 || strings.Trim(item[brace+1:], "0123456789") != "" || brace+1 == len(item) {
		return ""
	}
	start := brace - 1
	switch item[start] {
	case ']':
		start = strings.LastIndexByte(item[:start], '[')
	case ')':
		start = strings.LastIndexByte(item[:start], '(')
	}
	if start < 0 {
		return ""
	}
	if start > 0 && item[start-1] == '\\' {
		start--
	}
	return item[start:]
}

// withoutComma writes atom{m and n} without a comma: the atom m times, then
// n-m optional ones. Empty where the pieces do not fit or grow too long.
func withoutComma(open, next string) string {
	const longest = 8
	atom, low, _ := strings.Cut(open, "{")
	high, _, closed := strings.Cut(next, "}")
	m, errLow := strconv.Atoi(low)
	n, errHigh := strconv.Atoi(high)
	if !closed || errLow != nil || errHigh != nil || m > n || n > longest {
		return ""
	}
	return strings.Repeat(atom, m) + strings.Repeat(atom+"?", n-m)
}
