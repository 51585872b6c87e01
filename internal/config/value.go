package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value is what a view holds for a key.
type value struct {
	Raw        string   // as written, references kept: what may be printed
	Text       string   // references replaced
	Items      []string // a real list (YAML only)
	Origin     Origin
	Lost       []string // escapes that lost their backslash in reading
	Literal    bool     // references in it are not replaced
	Referenced bool     // holds a provider expression; Text is treated as a secret
	Unresolved bool     // one of them has no value, which was said; Text must not be read
}

// view is a map of keys to values with their origins.
type view map[string]value

// putAbsent sets the key unless it is there.
func (v view) putAbsent(key string, val value) {
	if _, ok := v[key]; !ok {
		v[key] = val
	}
}

// ordered are the keys in the file's order, so that problems come in one order.
func (v view) ordered() []string {
	keys := slices.Collect(maps.Keys(v))
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(v[a].Origin.Line, v[b].Origin.Line), cmp.Compare(v[a].Origin.Column, v[b].Origin.Column), cmp.Compare(a, b))
	})
	return keys
}

// trim takes off what Java's String.trim takes off.
func trim(s string) string {
	return strings.TrimFunc(s, func(c rune) bool { return c <= ' ' })
}

var commaWithBlanks = regexp.MustCompile(`[ \t\n\v\f\r]*,[ \t\n\v\f\r]*`)

// list reads a LIST: trimmed, split at commas; empty text is an empty list.
func (v value) list() []string {
	if v.Items != nil {
		return v.Items
	}
	s := trim(v.Text)
	if s == "" {
		return []string{}
	}
	return commaWithBlanks.Split(s, -1)
}

// boolean reads a BOOLEAN: trimmed, any case.
func (v value) boolean() (b, ok bool) {
	switch strings.ToLower(trim(v.Text)) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// integer reads an INT, SHORT or LONG of that many bits.
func (v value) integer(bits int) (int64, bool) {
	n, err := strconv.ParseInt(trim(v.Text), 10, bits)
	return n, err == nil
}

// shown is the value for people: references are kept, and of a secret nothing
// else than them.
func (v value) shown(secret bool) string {
	if !secret || v.Raw == "" {
		return v.Raw
	}
	references := reference.FindAllString(v.Raw, -1)
	switch {
	case len(references) == 0:
		return hidden
	case len(references) == 1 && references[0] == trim(v.Raw):
		return references[0]
	}
	return hidden + " " + strings.Join(references, " ")
}

// said is what a message may repeat of the value: the reference, not what it
// stands for.
func (v value) said() string {
	if v.Referenced {
		return trim(v.Raw)
	}
	return trim(v.Text)
}

var sizePattern = regexp.MustCompile(`^([0-9]+) ?(B|KB|KiB|MB|MiB|GB|GiB)?$`)

var sizeUnits = map[string]int64{
	"": 1, "B": 1, "KB": 1e3, "KiB": 1 << 10, "MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30,
}

// ParseSize reads a number of bytes with an optional unit.
func parseSize(s string) (int64, error) {
	m := sizePattern.FindStringSubmatch(trim(s))
	if m == nil {
		return 0, errors.New("write a number such as 1048576 or 64MiB")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := sizeUnits[m[2]]
	if err != nil || n > (1<<62)/unit {
		return 0, errors.New("it is too large")
	}
	return n * unit, nil
}

// humanDuration writes a duration in days, hours, minutes and seconds: "6d 22h 40m".
func humanDuration(d time.Duration) string {
	if d%time.Second != 0 || d <= 0 {
		return d.String()
	}
	parts := []struct {
		unit string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	var out []string
	for _, p := range parts {
		if n := d / p.size; n > 0 {
			out = append(out, fmt.Sprintf("%d%s", n, p.unit))
			d %= p.size
		}
	}
	return strings.Join(out, " ")
}
