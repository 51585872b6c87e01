package mirror

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// runeRanges is a set of characters: pairs of first and last, in order.
type runeRanges []rune

// The classes that the engines and Java read differently, in Java's meaning
// (without UNICODE_CHARACTER_CLASS).
var (
	digits         = runeRanges{'0', '9'}
	wordCharacters = runeRanges{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	blanks         = runeRanges{'\t', '\r', ' ', ' '}
	verticalBlanks = runeRanges{'\n', '\r', 0x85, 0x85, 0x2028, 0x2029}
	flatBlanks     = runeRanges{
		'\t', '\t', ' ', ' ', 0xa0, 0xa0, 0x1680, 0x1680, 0x180e, 0x180e,
		0x2000, 0x200a, 0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000,
	}
)

// letterClasses are the classes written as a backslash and a letter; the upper
// case letter is the complement.
var letterClasses = map[rune]runeRanges{
	'd': digits, 'w': wordCharacters, 's': blanks, 'v': verticalBlanks, 'h': flatBlanks,
}

// posixClasses are the POSIX names of \p{...}, which Java limits to ASCII.
var posixClasses = map[string]runeRanges{
	"Lower":  {'a', 'z'},
	"Upper":  {'A', 'Z'},
	"ASCII":  {0, 0x7f},
	"Alpha":  {'A', 'Z', 'a', 'z'},
	"Digit":  digits,
	"Alnum":  {'0', '9', 'A', 'Z', 'a', 'z'},
	"Punct":  {'!', '/', ':', '@', '[', '`', '{', '~'},
	"Graph":  {'!', '~'},
	"Print":  {' ', '~'},
	"Blank":  {'\t', '\t', ' ', ' '},
	"Cntrl":  {0, 0x1f, 0x7f, 0x7f},
	"XDigit": {'0', '9', 'A', 'F', 'a', 'f'},
	"Space":  blanks,
	"L1":     {0, 0xff},
}

// javaClasses are Java's own names of \p{...} that a Unicode category says.
var javaClasses = map[string]string{
	"javaLowerCase":     `\p{Ll}`,
	"javaUpperCase":     `\p{Lu}`,
	"javaTitleCase":     `\p{Lt}`,
	"javaDigit":         `\p{Nd}`,
	"javaLetter":        `\p{L}`,
	"javaLetterOrDigit": `\p{L}\p{Nd}`,
	"IsAlphabetic":      `\p{L}\p{Nl}`,
	"IsLetter":          `\p{L}`,
	"IsDigit":           `\p{Nd}`,
	"IsLowercase":       `\p{Ll}`,
	"IsUppercase":       `\p{Lu}`,
	"IsTitlecase":       `\p{Lt}`,
	"IsPunctuation":     `\p{P}`,
	"LC":                `\p{Lu}\p{Ll}\p{Lt}`,
}

// set writes the set as the inside of brackets, or its complement.
func (rs runeRanges) set(complement bool) string {
	if complement {
		rs = rs.complement()
	}
	var b strings.Builder
	for i := 0; i < len(rs); i += 2 {
		b.WriteString(quoteRune(rs[i]))
		if rs[i] != rs[i+1] {
			b.WriteString("-" + quoteRune(rs[i+1]))
		}
	}
	return b.String()
}

// class writes the set with its brackets.
func (rs runeRanges) class(complement bool) string { return "[" + rs.set(complement) + "]" }

func (rs runeRanges) complement() runeRanges {
	var out runeRanges
	next := rune(0)
	for i := 0; i < len(rs); i += 2 {
		if rs[i] > next {
			out = append(out, next, rs[i]-1)
		}
		next = rs[i+1] + 1
	}
	return append(out, next, unicode.MaxRune)
}

// element is one part of a class: a character, or a set as the inside of brackets.
type element struct {
	r   rune
	set string
}

// class translates a bracket expression; the opening bracket has been read.
func (t *translator) class(start int) (string, *PatternError) {
	var b strings.Builder
	b.WriteByte('[')
	if t.peek(0) == '^' {
		t.pos++
		b.WriteByte('^')
	}
	// A closing bracket in the first place is a character.
	for first := true; first || t.peek(0) != ']'; first = false {
		e, err := t.element(start)
		if err != nil {
			return "", err
		}
		// A minus before the end, and one behind a set, is a character.
		if e.set != "" || t.peek(0) != '-' || t.peek(1) == ']' || t.peek(1) == end {
			b.WriteString(e.inClass())
			continue
		}
		t.pos++
		last, err := t.element(start)
		if err != nil {
			return "", err
		}
		if last.set != "" || last.r < e.r {
			return "", t.refuse(start, "the range in the class ends before it begins, or in a class")
		}
		b.WriteString(e.inClass() + "-" + last.inClass())
	}
	t.pos++
	b.WriteByte(']')
	return b.String(), nil
}

func (e element) inClass() string {
	if e.set != "" {
		return e.set
	}
	return quoteRune(e.r)
}

// element reads one character or class inside brackets.
func (t *translator) element(start int) (element, *PatternError) {
	r := t.peek(0)
	if r == end {
		return element{}, t.refuse(start, "a class [...] is opened and never closed")
	}
	t.pos++
	switch {
	case r == '[':
		return element{}, t.refuse(start, "a class inside a class is not supported: write its characters, or \\[ for the bracket")
	case r == '&' && t.peek(0) == '&':
		t.pos++
		return element{}, t.refuse(start, "the intersection && of classes is not supported: write the characters that are meant")
	case r == '\\':
		return t.escapedElement(start)
	}
	return element{r: t.tokens[t.pos-1].r}, nil
}

// controlEscapes are the characters that have a letter of their own.
var controlEscapes = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'a': '\a', 'e': 0x1b}

// escapedElement reads what follows a backslash and means a character or a
// class, in brackets and outside.
func (t *translator) escapedElement(start int) (element, *PatternError) {
	r := t.peek(0)
	if r == end {
		return element{}, t.refuse(start, "ends with a backslash")
	}
	t.pos++
	if set, ok := letterClasses[unicode.ToLower(r)]; ok && r < utf8.RuneSelf {
		return element{set: set.set(unicode.IsUpper(r))}, nil
	}
	if c, ok := controlEscapes[r]; ok {
		return element{r: c}, nil
	}
	switch r {
	case 'p', 'P':
		return t.property(start, r == 'P')
	case '0':
		return t.octal(start)
	case 'x', 'u':
		return t.hex(start, r)
	case 'c':
		if t.peek(0) == end {
			return element{}, t.refuse(start, "a character must follow \\c")
		}
		t.pos++
		return element{r: t.tokens[t.pos-1].r ^ 64}, nil
	}
	if isAlnum(r) {
		return element{}, t.refuse(start, "this escape is unknown or not supported here")
	}
	return element{r: t.tokens[t.pos-1].r}, nil
}

// octal reads \0 and one to three octal digits, at most \0377.
func (t *translator) octal(start int) (element, *PatternError) {
	var v rune
	n := 0
	for ; n < 3 && '0' <= t.peek(0) && t.peek(0) <= '7'; n++ {
		next := v*8 + t.peek(0) - '0'
		if next > 0o377 {
			break
		}
		v = next
		t.pos++
	}
	if n == 0 {
		return element{}, t.refuse(start, "octal digits must follow \\0")
	}
	return element{r: v}, nil
}

// hex reads \xhh, \x{h...} and \uhhhh.
func (t *translator) hex(start int, kind rune) (element, *PatternError) {
	want := 4
	braces := false
	if kind == 'x' {
		want = 2
		if braces = t.peek(0) == '{'; braces {
			t.pos++
			want = 8
		}
	}
	var text strings.Builder
	for text.Len() < want && isHex(t.peek(0)) {
		text.WriteRune(t.peek(0))
		t.pos++
	}
	v, err := strconv.ParseUint(text.String(), 16, 31)
	bad := err != nil || !utf8.ValidRune(rune(v))
	if braces {
		bad = bad || t.peek(0) != '}'
		t.pos++
	} else {
		bad = bad || text.Len() != want
	}
	if bad {
		return element{}, t.refuse(start, "the hexadecimal digits name no character")
	}
	return element{r: rune(v)}, nil
}

func isHex(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F'
}

// property reads \pL and \p{...}.
func (t *translator) property(start int, complement bool) (element, *PatternError) {
	var b strings.Builder
	if t.peek(0) == '{' {
		for t.pos++; t.peek(0) != '}'; t.pos++ {
			if t.peek(0) == end {
				return element{}, t.refuse(start, "a name in braces must follow \\p")
			}
			b.WriteRune(t.tokens[t.pos].r)
		}
		t.pos++
	} else if t.peek(0) != end {
		b.WriteRune(t.tokens[t.pos].r)
		t.pos++
	}
	set, ok := propertySet(b.String(), complement)
	if !ok {
		return element{}, t.refuse(start, "the property %s of characters is unknown or not supported", strconv.Quote(b.String()))
	}
	return element{set: set}, nil
}

// propertySet is the inside of brackets for a name in \p{...}.
func propertySet(name string, complement bool) (string, bool) {
	if set, ok := posixClasses[name]; ok {
		return set.set(complement), true
	}
	if set, ok := javaClasses[name]; ok {
		// A complement of several properties is no list of properties.
		if complement && strings.Count(set, `\p`) > 1 {
			return "", false
		}
		if complement {
			set = strings.Replace(set, `\p`, `\P`, 1)
		}
		return set, true
	}
	p := `\p`
	if complement {
		p = `\P`
	}
	key, value, paired := strings.Cut(name, "=")
	bare := strings.TrimPrefix(name, "Is")
	switch {
	case paired && (key == "gc" || key == "general_category") && isCategory(value):
		return p + "{" + value + "}", true
	case paired && (key == "sc" || key == "script") && isScript(value):
		return p + "{" + value + "}", true
	case !paired && isCategory(bare):
		return p + "{" + bare + "}", true
	case !paired && bare != name && isScript(bare):
		return p + "{" + bare + "}", true
	}
	return "", false
}

func isCategory(name string) bool {
	_, ok := unicode.Categories[name]
	return ok && len(name) <= 2
}

func isScript(name string) bool {
	_, ok := unicode.Scripts[name]
	return ok
}
