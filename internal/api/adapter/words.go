package adapter

import (
	"strings"

	"heliograph/internal/control"
)

// Entries takes a property's list apart. It is never nil, and holds no empty entry.
func Entries(text string) []string {
	out := []string{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

// Invalid says what is wrong with a request, field by field, by the names that an API
// has for them.
func Invalid(e *control.Error, name func(string) string) string {
	var parts []string
	for _, f := range e.Fields {
		text := "[" + name(f.Name) + "] " + f.Reason
		if f.Hint != "" {
			text += " (" + f.Hint + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return e.Message
	}
	return strings.Join(parts, "; ")
}
