package kafka

import (
	"errors"
	"fmt"
	"strings"
)

// Class says what to do about an error; it is all that crosses a package border
// for decisions. The text is for people.
type Class uint8

// The classes, from the mildest to the worst.
const (
	// ClassRetry heals by itself: the same request again, after a backoff.
	ClassRetry Class = iota + 1
	// ClassRefresh means that what we know of the cluster is stale: fetch metadata, then retry.
	ClassRefresh
	// ClassFence means that another owner has taken over: stop writing at once.
	ClassFence
	// ClassOperator needs a person: a right, a setting, a size, a missing topic.
	ClassOperator
	// ClassData means that the bytes themselves were refused or cannot be read.
	ClassData
	// ClassBug should be impossible; stop the partition and say so.
	ClassBug
)

var classNames = [...]string{"none", "retry", "refresh", "fence", "operator", "data", "bug"}

// String names the class in lower case.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// Error is a failure an operator can act on: what was tried, on which cluster,
// about what, why, and what to do next. Secrets never enter any field.
type Error struct {
	Op      string // what was tried, for example "fetch" or "create topic"
	Cluster string // alias of the cluster, empty where none is involved
	Subject string // topic, partition, group or address
	Code    Code   // the broker's answer; CodeNone where no broker answered
	Class   Class  // zero: taken from Code
	Hint    string // what to do next; may be empty
	Err     error  // the cause; may be nil where Code says it all
}

// Error joins the parts: op subject on cluster: cause (hint).
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Subject != "" {
		b.WriteString(" " + e.Subject)
	}
	if e.Cluster != "" {
		b.WriteString(" on cluster " + e.Cluster)
	}
	switch {
	case e.Code != CodeNone && e.Err != nil:
		fmt.Fprintf(&b, ": %s: %v", e.Code, e.Err)
	case e.Code != CodeNone:
		fmt.Fprintf(&b, ": %s", e.Code)
	case e.Err != nil:
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause, or the code where it is the cause.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	if e.Code != CodeNone {
		return e.Code
	}
	return nil
}

// ClassOf returns the class of the first [Error] or [Code] in err's chain. An
// error that carries neither (a broken connection, say) is ClassRetry; nil is 0.
func ClassOf(err error) Class {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Class != 0 {
			return e.Class
		}
		if e.Code != CodeNone {
			return e.Code.Class()
		}
	}
	if c, ok := errors.AsType[Code](err); ok {
		return c.Class()
	}
	return ClassRetry
}

// Heals reports whether an error passes by itself: asking again helps, at once
// or after fresh metadata.
func Heals(err error) bool {
	c := ClassOf(err)
	return c == ClassRetry || c == ClassRefresh
}

// CodeOf returns the broker's error code in err's chain, or CodeNone.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) && e.Code != CodeNone {
		return e.Code
	}
	if c, ok := errors.AsType[Code](err); ok {
		return c
	}
	return CodeNone
}
