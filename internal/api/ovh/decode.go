package ovh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// body is the JSON object of a request, taken apart field by field: encoding/json
// alone would accept other cases, repeated names and a null for anything. The first
// thing that is wrong stays in err.
type body struct {
	fields map[string]json.RawMessage
	err    error
}

// parseBody reads one object and nothing behind it.
func parseBody(data []byte) *body {
	b := &body{fields: map[string]json.RawMessage{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		b.err = badRequest("the body is not a JSON object")
		return b
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			b.err = badRequest("the body is not JSON: %v", err)
			return b
		}
		key, ok := name.(string)
		if !ok {
			b.err = badRequest("the body is not JSON")
			return b
		}
		if _, twice := b.fields[key]; twice {
			b.err = badRequest("[%s] is given twice", key)
			return b
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			b.err = badRequest("[%s] is not JSON: %v", key, err)
			return b
		}
		b.fields[key] = value
	}
	if _, err := dec.Token(); err != nil {
		b.err = badRequest("the body is not JSON: %v", err)
		return b
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		b.err = badRequest("something stands behind the body's object")
	}
	return b
}

// take removes a field. A null counts as not given.
func (b *body) take(name string) (json.RawMessage, bool) {
	value, ok := b.fields[name]
	delete(b.fields, name)
	return value, ok && string(value) != "null"
}

func (b *body) fail(name, format string, args ...any) {
	if b.err == nil {
		b.err = badRequest("["+name+"] "+format, args...)
	}
}

// read decodes a field into a value of a type that OVHcloud calls kind.
func read[T any](b *body, name, kind string) (value T, given bool) {
	raw, ok := b.take(name)
	if !ok {
		return value, false
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		b.fail(name, "given data (%s) is not valid for type %s", excerpt(raw), kind)
	}
	return value, true
}

// excerpt is the start of a value, for a message.
func excerpt(raw []byte) string {
	const most = 60
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}

func (b *body) text(name string) (string, bool) { return read[string](b, name, "string") }
func (b *body) flag(name string) (value, given bool) {
	return read[bool](b, name, "boolean")
}
func (b *body) long(name string) (int64, bool) { return read[int64](b, name, "long") }

// required is a text that must be there.
func (b *body) required(name string) string {
	v, ok := b.text(name)
	if !ok || v == "" {
		b.fail(name, "is required")
	}
	return v
}

// uuid is an id that must be there.
func (b *body) uuid(name string) string {
	v := b.required(name)
	if v != "" && !isUUID(v) {
		b.fail(name, "given data (%q) is not valid for type uuid", v)
	}
	return strings.ToLower(v)
}

// texts is a list of strings. Each becomes one entry of a comma-separated list of
// patterns, which has no way to write a comma.
func (b *body) texts(name string) ([]string, bool) {
	list, ok := read[[]*string](b, name, "string[]")
	out := make([]string, 0, len(list))
	for _, entry := range list {
		switch {
		case entry == nil:
			b.fail(name, "given data (null) is not valid for type string")
		case strings.TrimSpace(*entry) == "":
			b.fail(name, "holds an empty name")
		case strings.Contains(*entry, ","):
			b.fail(name, "%q holds a comma; write two entries, or a pattern without one", *entry)
		default:
			out = append(out, strings.TrimSpace(*entry))
		}
	}
	return out, ok
}

// enum is one of some words.
func (b *body) enum(name string, words ...string) (string, bool) {
	v, ok := b.text(name)
	if ok && b.err == nil && !slices.Contains(words, v) {
		b.fail(name, "given data (%q) does not belong to %s", v, strings.Join(words, ", "))
	}
	return v, ok
}

// fixed is a read-only field that an update may repeat but not change.
func (b *body) fixed(name, value string) {
	if v, ok := b.text(name); ok && v != value {
		b.fail(name, "cannot be changed")
	}
}

// done is why the body is refused, if it is. All fields that are known have been
// taken by now.
func (b *body) done() error {
	if b.err == nil && len(b.fields) > 0 {
		b.err = badRequest("[%s] is not a field of this call", slices.Sorted(maps.Keys(b.fields))[0])
	}
	return b.err
}

func badRequest(format string, args ...any) *Error {
	return &Error{Status: 400, Class: "Client::BadRequest", Message: fmt.Sprintf(format, args...)}
}
