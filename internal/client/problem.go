package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ProblemError is why a server refused a call (RFC 9457).
type ProblemError struct {
	Status int            `json:"status"`
	Title  string         `json:"title"`
	Detail string         `json:"detail"`
	Errors []ProblemField `json:"errors,omitempty"`
}

// ProblemField is one thing that is wrong with a request.
type ProblemField struct {
	Pointer  string `json:"pointer,omitempty"`
	Resource string `json:"resource,omitempty"`
	Field    string `json:"field,omitempty"`
	Reason   string `json:"reason"`
	Hint     string `json:"hint,omitempty"`
}

// String is one line: resource: field: reason (hint).
func (f ProblemField) String() string {
	var parts []string
	for _, part := range []string{f.Resource, f.Field, f.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	s := strings.Join(parts, ": ")
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

// Error is the detail with one line for each field.
func (p *ProblemError) Error() string {
	var b strings.Builder
	switch {
	case p.Detail != "":
		b.WriteString(p.Detail)
	case p.Title != "":
		b.WriteString(p.Title)
	default:
		fmt.Fprintf(&b, "the server answered %d", p.Status)
	}
	for _, f := range p.Errors {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// Unauthorized says that the server does not know who asks.
func (p *ProblemError) Unauthorized() bool { return p.Status == http.StatusUnauthorized }

// problem reads an answer that is no success.
func (c *Client) problem(res *http.Response, r Request) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	p := &ProblemError{}
	if err != nil || json.Unmarshal(data, p) != nil || p.Title == "" && p.Detail == "" {
		// Whoever answered is no heliograph server, or one of another time.
		p = &ProblemError{Detail: fmt.Sprintf("%s %s: answered %s", r.method(), r.Path, res.Status)}
	}
	p.Status = res.StatusCode
	if p.Unauthorized() {
		p.Detail = "the server does not know this token: name its file with --token-file, in the context or by HELIOGRAPH_TOKEN_FILE, or set HELIOGRAPH_TOKEN"
	}
	return p
}
