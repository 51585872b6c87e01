package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heliograph/internal/mirror"
)

// patterns checks a list of Java regular expressions: can they be read, and do
// they say what their writer probably meant.
func (l *linter) patterns(val value) bool {
	items := val.list()
	l.lostBackslashes(val)
	if torn := tornQuantifier(items); torn != nil {
		hint := "no comma may stand inside a pattern"
		if better := torn.proposal(); better != "" {
			hint += "; write " + better
		}
		l.errorf(val.Origin, hint, "a list is split at every comma: %q became the pieces %s", torn.whole, quoted(torn.pieces))
		return false
	}
	star := false
	for _, item := range items {
		switch {
		case slices.Contains(strings.Fields(item), "*"):
			l.errorf(val.Origin, "write .* for everything", `"*" alone is not a pattern`)
			star = true
		case strings.HasPrefix(item, "!"):
			l.warnf(val.Origin, "use the matching .exclude key", `%q matches names that begin with "!"; a leading "!" does not exclude`, item)
		case strings.Contains(item, " #"):
			l.warnf(val.Origin, "this format has no comments at the end of a line", "%q is taken as a pattern, comment included", item)
		}
	}
	if star {
		return false
	}
	if _, err := mirror.CompilePatterns(items); err != nil {
		hint := "patterns are Java regular expressions, matched against the whole name"
		if len(items) > 1 {
			hint += "; a list is split at every comma"
		}
		l.errorf(val.Origin, hint, "not a pattern that can be read: %v", err)
		return false
	}
	return true
}

// lostBackslashes speaks of "\d" written with one backslash, which the file's
// grammar takes away.
func (l *linter) lostBackslashes(val value) {
	var letters, signs []string
	for _, esc := range val.Lost {
		c := esc[1]
		switch {
		case strings.IndexByte("dDwWsSbBAzZQEpPhHvV0123456789kxcG", c) >= 0:
			letters = append(letters, esc)
		case strings.IndexByte(`.*+?()[]{}^$|`, c) >= 0 && !insideClass(val.Raw, c):
			signs = append(signs, esc)
		}
	}
	if list := compact(letters); len(list) > 0 {
		l.warnf(val.Origin, "write "+doubled(list), "%s lost its backslash when the file was read; the pattern is now %s", quoted(list), val.Raw)
	}
	if list := compact(signs); len(list) > 0 {
		l.infof(val.Origin, "write "+doubled(list), "%s lost its backslash when the file was read and may match more than meant", quoted(list))
	}
}

// insideClass says whether every such sign of the pattern stands in a character
// class, where it means itself anyway.
func insideClass(pattern string, sign byte) bool {
	depth := 0
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '[':
			depth++
		case c == ']' && depth > 0:
			depth--
		case c == sign && depth == 0 && (i+1 == len(pattern) || pattern[i+1] != '*' && pattern[i+1] != '+'):
			return false
		}
	}
	return true
}

func compact(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

func doubled(escapes []string) string {
	var out []string
	for _, e := range escapes {
		out = append(out, `\`+e)
	}
	return strings.Join(out, " ")
}

func quoted(s []string) string {
	var out []string
	for _, item := range s {
		out = append(out, `"`+item+`"`)
	}
	return strings.Join(out, " and ")
}

// torn is a quantifier like {1,3} that the split of the list took apart.
type torn struct {
	whole       string
	pieces      []string
	atom        string // what is repeated
	before      string
	after       string
	least, most int // most is -1 for no upper bound
}

var (
	quantifierOpen  = regexp.MustCompile(`^(.*)\{([0-9]+)$`)
	quantifierClose = regexp.MustCompile(`^([0-9]*)\}(.*)$`)
)

// tornQuantifier finds the first quantifier that a comma took apart, or nil.
func tornQuantifier(items []string) *torn {
	for i := range len(items) - 1 {
		open, closing := quantifierOpen.FindStringSubmatch(items[i]), quantifierClose.FindStringSubmatch(items[i+1])
		if open == nil || closing == nil {
			continue
		}
		t := &torn{whole: items[i] + "," + items[i+1], pieces: items[i : i+2 : i+2], after: closing[2], most: -1}
		t.before, t.atom = lastAtom(open[1])
		t.least, _ = strconv.Atoi(open[2])
		if closing[1] != "" {
			t.most, _ = strconv.Atoi(closing[1])
		}
		return t
	}
	return nil
}

// lastAtom splits a pattern before the part that a quantifier repeats.
func lastAtom(s string) (before, atom string) {
	if s == "" {
		return "", ""
	}
	start := len(s) - 1
	switch s[start] {
	case ']':
		start = strings.LastIndexByte(s, '[')
	case ')':
		depth := 0
		for start = len(s) - 1; start >= 0; start-- {
			if s[start] == ')' {
				depth++
			}
			if s[start] == '(' {
				if depth--; depth == 0 {
					break
				}
			}
		}
	default:
		if start > 0 && s[start-1] == '\\' {
			start--
		}
	}
	if start < 0 {
		return "", s
	}
	return s[:start], s[start:]
}

// proposal writes the quantifier without a comma, where that stays readable.
func (t *torn) proposal() string {
	const readable = 8
	if t.atom == "" || t.least > readable || t.most > readable || t.most >= 0 && t.most < t.least {
		return ""
	}
	out := t.before + strings.Repeat(t.atom, t.least)
	if t.most < 0 {
		out += t.atom + "*"
	} else {
		out += strings.Repeat(t.atom+"?", t.most-t.least)
	}
	return fmt.Sprintf("%q", out+t.after)
}
