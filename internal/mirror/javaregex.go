package mirror

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// token is one character of a pattern. Between \Q and \E characters lose their
// meaning.
type token struct {
	r       rune
	literal bool
}

// end is what peek gives behind the last token.
const end rune = -1

// translator rewrites a Java regular expression so that Go's regexp and
// regexp2 read it as Java would, or refuses it. It writes every literal and
// every class in a form that both read alike, so nothing depends on what an
// unusual character means to an engine.
//
// Names have no line terminators, so the ways in which ., $ and \Z differ there
// are not kept.
type translator struct {
	item   string
	tokens []token
	pos    int
	out    strings.Builder

	groups     int            // capturing groups opened so far
	open       int            // groups not closed yet
	names      map[string]int // named groups by number
	repeatable bool           // a repetition may follow
}

// translateJava rewrites item for the engines.
func translateJava(item string) (string, *PatternError) {
	t := &translator{item: item, names: map[string]int{}}
	if !utf8.ValidString(item) {
		return "", t.refuse(0, "not UTF-8")
	}
	t.tokens = unquote(item)
	for t.pos < len(t.tokens) {
		if err := t.step(); err != nil {
			return "", err
		}
	}
	if t.open > 0 {
		return "", t.refuse(0, "a group is opened and never closed")
	}
	return t.out.String(), nil
}

// unquote takes \Q...\E out of the pattern, as Java does before it reads it.
func unquote(item string) []token {
	var tokens []token
	quoted := false
	for i := 0; i < len(item); {
		switch rest := item[i:]; {
		case quoted && strings.HasPrefix(rest, `\E`):
			quoted = false
			i += 2
			continue
		case !quoted && strings.HasPrefix(rest, `\Q`):
			quoted = true
			i += 2
			continue
		case !quoted && strings.HasPrefix(rest, `\\`):
			tokens = append(tokens, token{r: '\\'}, token{r: '\\'})
			i += 2
			continue
		}
		r, size := utf8.DecodeRuneInString(item[i:])
		tokens = append(tokens, token{r: r, literal: quoted})
		i += size
	}
	return tokens
}

// refuse makes the error about the tokens from start up to the position.
func (t *translator) refuse(start int, format string, args ...any) *PatternError {
	var piece strings.Builder
	for _, tok := range t.tokens[min(start, len(t.tokens)):min(t.pos, len(t.tokens))] {
		piece.WriteRune(tok.r)
	}
	return &PatternError{Item: t.item, Piece: piece.String(), Problem: fmt.Sprintf(format, args...)}
}

// peek is the special meaning of the token n ahead: its character, or 0 for a
// literal one.
func (t *translator) peek(n int) rune {
	if t.pos+n >= len(t.tokens) {
		return end
	}
	if tok := t.tokens[t.pos+n]; !tok.literal {
		return tok.r
	}
	return 0
}

// step translates one element outside classes.
func (t *translator) step() *PatternError {
	start := t.pos
	r := t.peek(0)
	t.pos++
	switch r {
	case '(':
		return t.group(start)
	case ')':
		if t.open == 0 {
			return t.refuse(start, "closes a group that is not open")
		}
		t.open--
		t.emit(")", true)
	case '|':
		t.emit("|", false)
	case '*', '+', '?', '{':
		return t.repetition(start, r)
	case '[':
		class, err := t.class(start)
		if err != nil {
			return err
		}
		t.emit(class, true)
	case '\\':
		return t.escape(start)
	case '.', '^', '$':
		t.emit(string(r), true)
	default:
		t.emit(quoteRune(t.tokens[start].r), true)
	}
	return nil
}

func (t *translator) emit(s string, repeatable bool) {
	t.out.WriteString(s)
	t.repeatable = repeatable
}

// repetition translates *, +, ?, {m,n} and the ? or + that may follow.
func (t *translator) repetition(start int, r rune) *PatternError {
	text := string(r)
	if r == '{' {
		bounds, ok := t.bounds()
		if !ok {
			return t.refuse(start, "a brace that begins no repetition like {2} or {2,5}: for the character write \\{")
		}
		text = bounds
	}
	if !t.repeatable {
		return t.refuse(start, "nothing stands before it that could be repeated")
	}
	t.emit(text, false)
	if next := t.peek(0); next == '?' || next == '+' {
		t.pos++
		t.emit(string(next), false)
	}
	return nil
}

// bounds reads "m}", "m,}" or "m,n}" behind a brace.
func (t *translator) bounds() (string, bool) {
	low := t.digits()
	text, high := "{"+low, low
	if t.peek(0) == ',' {
		t.pos++
		high = t.digits()
		text += "," + high
	}
	if t.peek(0) != '}' {
		return "", false
	}
	t.pos++
	m, errLow := strconv.ParseInt(low, 10, 32)
	if errLow != nil {
		return "", false
	}
	if high != "" {
		if n, err := strconv.ParseInt(high, 10, 32); err != nil || n < m {
			return "", false
		}
	}
	return text + "}", true
}

func (t *translator) digits() string {
	var b strings.Builder
	for '0' <= t.peek(0) && t.peek(0) <= '9' {
		b.WriteRune(t.peek(0))
		t.pos++
	}
	return b.String()
}

// group translates what follows an opening parenthesis.
func (t *translator) group(start int) *PatternError {
	if t.peek(0) != '?' {
		t.groups++
		t.open++
		t.emit("(", false)
		return nil
	}
	t.pos++
	r, next := t.peek(0), t.peek(1)
	switch {
	case r == ':' || r == '=' || r == '!' || r == '>':
		t.pos++
		t.open++
		t.emit("(?"+string(r), false)
		return nil
	case r == '<' && (next == '=' || next == '!'):
		t.pos += 2
		t.open++
		t.emit("(?<"+string(next), false)
		return nil
	case r == '<':
		t.pos++
		return t.namedGroup(start)
	}
	return t.flags(start)
}

// namedGroup opens a group with a name. The name is dropped: regexp2 would
// number named groups behind all others, Java in their order.
func (t *translator) namedGroup(start int) *PatternError {
	name, ok := t.name()
	if !ok {
		return t.refuse(start, "a group's name is letters and digits between < and >")
	}
	if _, taken := t.names[name]; taken {
		return t.refuse(start, "a group %s is there already", name)
	}
	t.groups++
	t.open++
	t.names[name] = t.groups
	t.emit("(", false)
	return nil
}

// name reads a group's name and the > behind it.
func (t *translator) name() (string, bool) {
	var b strings.Builder
	for isAlnum(t.peek(0)) {
		b.WriteRune(t.peek(0))
		t.pos++
	}
	name := b.String()
	if name == "" || name[0] <= '9' || t.peek(0) != '>' {
		return "", false
	}
	t.pos++
	return name, true
}

// flags translates (?i), (?i-s) and (?i:...).
func (t *translator) flags(start int) *PatternError {
	var on, off strings.Builder
	into := &on
	for {
		r := t.peek(0)
		t.pos++
		switch r {
		case 'i', 'm', 's':
			into.WriteRune(r)
		case 'd', 'u': // line terminators, and the case of letters outside ASCII
		case 'x':
			return t.refuse(start, "comments mode is not supported: write the pattern without blanks and comments")
		case 'U':
			return t.refuse(start, "Unicode classes are not supported: name the letters, for example \\p{L}")
		case '-':
			if into == &off {
				return t.refuse(start, "unknown kind of group")
			}
			into = &off
		case ')', ':':
			text := "(?" + on.String()
			if off.Len() > 0 {
				text += "-" + off.String()
			}
			if r == ':' {
				t.open++
			}
			if r == ':' || text != "(?" {
				t.out.WriteString(text + string(r))
			}
			t.repeatable = false
			return nil
		default:
			return t.refuse(start, "unknown kind of group")
		}
	}
}

// escape translates a backslash outside classes.
func (t *translator) escape(start int) *PatternError {
	r := t.peek(0)
	if r >= '1' && r <= '9' {
		return t.backReference(start)
	}
	switch r {
	case 'A', 'b', 'B', 'z':
		t.pos++
		t.emit(`\`+string(r), true)
		return nil
	case 'Z':
		t.pos++
		t.emit(`\z`, true)
		return nil
	case 'R':
		t.pos++
		t.emit(`(?:\x0D\x0A|`+verticalBlanks.class(false)+`)`, true)
		return nil
	case 'k':
		t.pos++
		return t.namedReference(start)
	}
	e, err := t.escapedElement(start)
	if err != nil {
		return err
	}
	if e.set == "" {
		t.emit(quoteRune(e.r), true)
		return nil
	}
	t.emit("["+e.set+"]", true)
	return nil
}

// backReference translates \1. Further digits belong to it as long as a group
// of that number is there.
func (t *translator) backReference(start int) *PatternError {
	number := 0
	for {
		r := t.peek(0)
		if r < '0' || r > '9' {
			break
		}
		next := number*10 + int(r-'0')
		if number > 0 && next > t.groups {
			break
		}
		number = next
		t.pos++
	}
	if number > t.groups {
		return t.refuse(start, "refers to a group that is not there, so it can never match")
	}
	t.emitReference(number)
	return nil
}

func (t *translator) namedReference(start int) *PatternError {
	if t.peek(0) != '<' {
		return t.refuse(start, "a name between < and > must follow \\k")
	}
	t.pos++
	name, ok := t.name()
	if !ok {
		return t.refuse(start, "a group's name is letters and digits between < and >")
	}
	number, ok := t.names[name]
	if !ok {
		return t.refuse(start, "there is no group %s before it", name)
	}
	t.emitReference(number)
	return nil
}

// emitReference keeps a digit that follows from joining the number.
func (t *translator) emitReference(number int) {
	t.emit(`(?:\`+strconv.Itoa(number)+`)`, true)
}

// quoteRune writes a literal so that no engine sees more in it.
func quoteRune(r rune) string {
	if isAlnum(r) || r > 0x7f {
		return string(r)
	}
	return fmt.Sprintf(`\x%02X`, r)
}

func isAlnum(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
