package control

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the class of an error, as an API answers by it.
type Kind uint8

// The kinds of errors.
const (
	Internal     Kind = iota // the server's own fault
	Invalid                  // the request is wrong: Fields says where
	NotFound                 // there is no such thing, or the actor may not see it
	Conflict                 // it contradicts what is there
	Precondition             // it was changed since it was read: the revision differs
	Forbidden                // the actor, or the policy, does not allow it
	Unavailable              // a cluster or the store does not answer; the same again may work
	TooMany                  // a quota is used up
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case NotFound:
		return "not found"
	case Conflict:
		return "conflict"
	case Precondition:
		return "precondition failed"
	case Forbidden:
		return "forbidden"
	case Unavailable:
		return "unavailable"
	case TooMany:
		return "too many"
	default:
		return "internal"
	}
}

// Error is why a request was refused. It never holds a secret.
type Error struct {
	Kind    Kind
	Message string
	Fields  []Field
	// Cause is what an Internal or Unavailable error came from; for the log.
	Cause error
}

// Field is one thing that is wrong with a request.
type Field struct {
	// Resource is "cluster A", "flow A->B" or "document kind/id".
	Resource string
	// Name is a key of Properties, or a field of the resource: "source", "alias", "labels".
	Name string
	// Property says that Name is a key of Properties.
	Property bool
	Reason   string
	Hint     string // what to do; may be empty
}

// String is one line for people.
func (f Field) String() string {
	s := f.Resource
	if f.Name != "" {
		s += ": " + f.Name
	}
	s += ": " + f.Reason
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

// Error is one line, with the fields behind.
func (e *Error) Error() string {
	parts := []string{e.Message}
	for _, f := range e.Fields {
		parts = append(parts, f.String())
	}
	if e.Cause != nil {
		parts = append(parts, e.Cause.Error())
	}
	return strings.Join(parts, "; ")
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf is the kind of an error of this package; Internal for others and for nil.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

func errorf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}
