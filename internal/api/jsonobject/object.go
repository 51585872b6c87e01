package jsonobject

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

// Error is what is wrong with an object. Field is empty where it is the whole.
type Error struct{ Field, Reason string }

// Error names the field in front.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return "[" + e.Field + "] " + e.Reason
}

// Object is an object on its way: its fields that nobody has taken yet, and the first
// thing that was wrong.
type Object struct {
	fields map[string]json.RawMessage
	err    *Error
}

// Parse reads one object and nothing behind it.
func Parse(data []byte) *Object {
	o := &Object{fields: map[string]json.RawMessage{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		o.Fail("", "the body is not a JSON object")
		return o
	}
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		if err != nil || !ok {
			o.Fail("", "the body is not JSON: %v", err)
			return o
		}
		if _, twice := o.fields[key]; twice {
			o.Fail(key, "is given twice")
			return o
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			o.Fail(key, "is not JSON: %v", err)
			return o
		}
		o.fields[key] = value
	}
	if _, err := dec.Token(); err != nil {
		o.Fail("", "the body is not JSON: %v", err)
		return o
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		o.Fail("", "something stands behind the body's object")
	}
	return o
}

// Fail notes what is wrong with a field, unless something was wrong before.
func (o *Object) Fail(field, format string, args ...any) {
	if o.err == nil {
		o.err = &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
}

// OK says whether nothing has been wrong so far.
func (o *Object) OK() bool { return o.err == nil }

// Done is why the object is refused, if it is. All fields that are known have been
// taken by now.
func (o *Object) Done() error {
	if o.err == nil && len(o.fields) > 0 {
		o.Fail(slices.Sorted(maps.Keys(o.fields))[0], "is not a field of this call")
	}
	if o.err == nil {
		return nil
	}
	return o.err
}

// Take removes a field and returns its value. A null counts as not given.
func (o *Object) Take(name string) (json.RawMessage, bool) {
	value, ok := o.fields[name]
	delete(o.fields, name)
	return value, ok && string(value) != "null"
}

// Rest takes all fields that are left, for objects whose names are data.
func (o *Object) Rest() map[string]json.RawMessage {
	rest := o.fields
	o.fields = nil
	return rest
}

// Read decodes a field into a value of a type that people know as kind.
func Read[T any](o *Object, name, kind string) (value T, given bool) {
	raw, ok := o.Take(name)
	if !ok {
		return value, false
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		o.Fail(name, "given data (%s) is not valid for type %s", excerpt(raw), kind)
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

// Text is a string.
func (o *Object) Text(name string) (value string, given bool) { return Read[string](o, name, "string") }

// Flag is a boolean.
func (o *Object) Flag(name string) (value, given bool) { return Read[bool](o, name, "boolean") }

// Long is a whole number.
func (o *Object) Long(name string) (value int64, given bool) { return Read[int64](o, name, "long") }

// Within is a whole number from least to most.
func (o *Object) Within(name string, least, most int64) (value int64, given bool) {
	value, given = o.Long(name)
	if given && (value < least || value > most) {
		o.Fail(name, "must be %d to %d", least, most)
	}
	return value, given
}

// Required is a string that must be there and not be empty.
func (o *Object) Required(name string) string {
	v, ok := o.Text(name)
	if !ok || v == "" {
		o.Fail(name, "is required")
	}
	return v
}

// Fixed is a read-only string that an update may repeat but not change.
func (o *Object) Fixed(name, value string) {
	if v, given := o.Text(name); given && v != value {
		o.Fail(name, "cannot be changed")
	}
}

// Enum is one of some words.
func (o *Object) Enum(name string, words ...string) (value string, given bool) {
	value, given = o.Text(name)
	if given && !slices.Contains(words, value) {
		o.Fail(name, "given data (%q) does not belong to %s", value, strings.Join(words, ", "))
	}
	return value, given
}

// Patterns is a list of topic names and patterns. Each becomes one entry of a
// property's list, which parts them at commas and cannot escape one.
func (o *Object) Patterns(name string) (value []string, given bool) {
	list, given := Read[[]*string](o, name, "string[]")
	value = make([]string, 0, len(list))
	for _, entry := range list {
		switch {
		case entry == nil:
			o.Fail(name, "given data (null) is not valid for type string")
		case strings.TrimSpace(*entry) == "":
			o.Fail(name, "holds an empty name")
		case strings.Contains(*entry, ","):
			o.Fail(name, "%q holds a comma; write two entries, or a pattern without one", *entry)
		case strings.ContainsAny(*entry, "\r\n"):
			o.Fail(name, "%q holds the end of a line", *entry)
		default:
			value = append(value, strings.TrimSpace(*entry))
		}
	}
	return value, given
}
