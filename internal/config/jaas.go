package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// LoginModule is one entry of sasl.jaas.config.
type LoginModule struct {
	Class   string
	Flag    string // lower case: required, requisite, sufficient, optional
	Options map[string]string
}

// ParseJAAS reads the value of sasl.jaas.config by the rules of Java's
// StreamTokenizer, as Kafka sets it up: a class, a flag, key=value pairs, ";".
// Errors name keys, never values.
func ParseJAAS(s string) ([]LoginModule, error) {
	t := jaasTokens{chars: []rune(s)}
	var modules []LoginModule
	tok := t.next()
	for tok.kind != jaasEnd {
		m, err := parseLoginModule(&t, tok)
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
		tok = t.next()
	}
	if len(modules) == 0 {
		return nil, errors.New("no login module in it")
	}
	return modules, nil
}

func parseLoginModule(t *jaasTokens, first jaasToken) (LoginModule, error) {
	m := LoginModule{Class: first.text, Options: map[string]string{}}
	if !first.isText() || m.Class == "" {
		return m, errors.New("it does not start with the class of a login module")
	}
	flag := t.next()
	m.Flag = strings.ToLower(flag.text)
	switch m.Flag {
	case "required", "requisite", "sufficient", "optional":
	default:
		return m, errors.New("the login module's class must be followed by a flag, normally required")
	}
	for {
		key := t.next()
		switch {
		case key.kind == jaasEnd:
			return m, errors.New("the entry does not end with a semicolon")
		case key.kind == jaasOther && key.char == ';':
			return m, nil
		case !key.isText():
			return m, fmt.Errorf("%q where the name of an option should stand", string(key.char))
		}
		eq := t.next()
		if eq.kind != jaasOther || eq.char != '=' {
			return m, fmt.Errorf("option %s has no value", optionName(key.text))
		}
		value := t.next()
		if !value.isText() {
			return m, fmt.Errorf("option %s has no value that can be read; put it in double quotes", optionName(key.text))
		}
		m.Options[key.text] = value.text
	}
}

// jaasOptions are the options that login modules are given most.
var jaasOptions = []string{
	"username", "password", "user", "tokenauth", "clientId", "clientSecret", "scope",
	"serviceName", "principal", "keyTab", "useKeyTab", "storeKey", "useTicketCache",
	"awsProfileName", "awsRoleArn", "awsRoleSessionName",
}

// optionName is what may be said of an option's name. After a quote that is
// missing or too many, a value stands where a name should.
func optionName(name string) string {
	if slices.Contains(jaasOptions, name) {
		return name
	}
	return "with a name that is not usual"
}

type jaasKind uint8

const (
	jaasEnd    jaasKind = iota
	jaasWord            // a bare word
	jaasQuote           // a quoted string
	jaasNumber          // a number, which has no text to Java
	jaasOther           // a single character
)

type jaasToken struct {
	kind jaasKind
	text string
	char rune
}

func (t jaasToken) isText() bool { return t.kind == jaasWord || t.kind == jaasQuote }

type jaasTokens struct {
	chars []rune
	pos   int
}

func (t *jaasTokens) peek(ahead int) rune {
	if t.pos+ahead < len(t.chars) {
		return t.chars[t.pos+ahead]
	}
	return -1
}

// next skips blanks and comments and returns the next token.
func (t *jaasTokens) next() jaasToken {
	for t.pos < len(t.chars) {
		c := t.chars[t.pos]
		switch {
		case c <= ' ':
			t.pos++
		case c == '/':
			t.comment()
		case c == '"' || c == '\'':
			return t.quoted(c)
		case isJAASNumber(c):
			return t.number(c)
		case isJAASLetter(c):
			start := t.pos
			for t.pos < len(t.chars) && (isJAASLetter(t.chars[t.pos]) || isJAASNumber(t.chars[t.pos])) {
				t.pos++
			}
			return jaasToken{kind: jaasWord, text: string(t.chars[start:t.pos])}
		default:
			t.pos++
			return jaasToken{kind: jaasOther, char: c}
		}
	}
	return jaasToken{kind: jaasEnd}
}

// comment steps over /* */ or to the end of the line: a lone slash outside
// quotes starts a comment, too.
func (t *jaasTokens) comment() {
	if t.peek(1) == '*' {
		t.pos += 2
		for t.pos < len(t.chars) && (t.chars[t.pos] != '*' || t.peek(1) != '/') {
			t.pos++
		}
		t.pos = min(t.pos+2, len(t.chars))
		return
	}
	for t.pos < len(t.chars) && t.chars[t.pos] != '\n' && t.chars[t.pos] != '\r' {
		t.pos++
	}
}

// number consumes what Java parses as a number, which then has no text.
func (t *jaasTokens) number(first rune) jaasToken {
	t.pos++
	if next := t.peek(0); first == '-' && next != '.' && (next < '0' || next > '9') {
		return jaasToken{kind: jaasOther, char: '-'}
	}
	dot := first == '.'
	for c := t.peek(0); c >= '0' && c <= '9' || c == '.' && !dot; c = t.peek(0) {
		dot = dot || c == '.'
		t.pos++
	}
	return jaasToken{kind: jaasNumber, char: first}
}

// quoted reads to the closing quote; a line end closes it as well.
func (t *jaasTokens) quoted(quote rune) jaasToken {
	t.pos++
	var b strings.Builder
	for t.pos < len(t.chars) {
		c := t.chars[t.pos]
		if c == '\n' || c == '\r' {
			break
		}
		t.pos++
		if c == quote {
			break
		}
		if c == '\\' && t.pos < len(t.chars) {
			c = t.escape()
		}
		b.WriteRune(c)
	}
	return jaasToken{kind: jaasQuote, text: b.String()}
}

func (t *jaasTokens) escape() rune {
	c := t.chars[t.pos]
	t.pos++
	switch c {
	case 'a':
		return '\a'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	if c < '0' || c > '7' {
		return c
	}
	// Up to three octal digits, the value at most \377.
	value, limit := c-'0', 2
	if c > '3' {
		limit = 1
	}
	for range limit {
		d := t.peek(0)
		if d < '0' || d > '7' {
			break
		}
		value = value<<3 + d - '0'
		t.pos++
	}
	return value
}

func isJAASNumber(c rune) bool { return c >= '0' && c <= '9' || c == '.' || c == '-' }

func isJAASLetter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c >= 160
}
