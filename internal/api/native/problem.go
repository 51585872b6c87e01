package native

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/control"
	"heliograph/internal/telemetry"
)

// Problem is an error's body: RFC 9457, with what is wrong field by field.
type Problem struct { //nolint:errname // the word of RFC 9457
	Type   string         `json:"type,omitempty" format:"uri-reference" doc:"The kind of problem; about:blank where the status says it all."`
	Title  string         `json:"title" doc:"The status in words."`
	Status int            `json:"status" doc:"The HTTP status."`
	Detail string         `json:"detail,omitempty" doc:"What is wrong."`
	Errors []ProblemField `json:"errors,omitempty" doc:"What is wrong, field by field."`
}

// ProblemField is one thing that is wrong.
type ProblemField struct {
	Pointer  string `json:"pointer,omitempty" doc:"The place in the body as a JSON pointer, or the parameter."`
	Resource string `json:"resource,omitempty" doc:"The cluster or flow that it is about."`
	Field    string `json:"field,omitempty" doc:"The property or field."`
	Reason   string `json:"reason" doc:"Why it is refused."`
	Hint     string `json:"hint,omitempty" doc:"What to do."`
}

// Error is the problem in one line.
func (p *Problem) Error() string {
	parts := []string{p.Title}
	if p.Detail != "" {
		parts = append(parts, p.Detail)
	}
	for _, f := range p.Errors {
		parts = append(parts, f.Field+": "+f.Reason)
	}
	return strings.Join(parts, "; ")
}

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of problems.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// newProblem makes problems of what huma itself finds: bodies and parameters that
// do not fit their schemas.
func newProblem(status int, message string, errs ...error) huma.StatusError {
	p := &Problem{Title: http.StatusText(status), Status: status, Detail: message}
	for _, err := range errs {
		d, ok := errors.AsType[*huma.ErrorDetail](err)
		switch {
		case ok:
			p.Errors = append(p.Errors, ProblemField{Pointer: pointer(d.Location), Field: last(d.Location), Reason: d.Message})
		case err != nil:
			p.Errors = append(p.Errors, ProblemField{Reason: err.Error()})
		}
	}
	return p
}

// pointer turns huma's body.flows[0].x into a JSON pointer; parameters stay as they are.
func pointer(location string) string {
	rest, ok := strings.CutPrefix(location, "body")
	switch {
	case !ok:
		return location
	case strings.Contains(rest, ".properties."): // huma loses its way where keys hold dots
		return ""
	}
	return strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(rest)
}

func last(location string) string {
	return location[strings.LastIndexByte(location, '.')+1:]
}

var statuses = map[control.Kind]int{
	control.Internal: http.StatusInternalServerError, control.Invalid: http.StatusUnprocessableEntity,
	control.NotFound: http.StatusNotFound, control.Conflict: http.StatusConflict,
	control.Precondition: http.StatusPreconditionFailed, control.Forbidden: http.StatusForbidden,
	control.Unavailable: http.StatusServiceUnavailable, control.TooMany: http.StatusTooManyRequests,
}

// problemOf is an error of control's as a problem. What is the server's own fault goes to the log.
func (a *API) problemOf(err error) error {
	e, ok := errors.AsType[*control.Error](err)
	if !ok {
		e = &control.Error{Kind: control.Internal, Cause: err}
	}
	status := statuses[e.Kind]
	p := &Problem{Title: http.StatusText(status), Status: status, Detail: e.Message}
	if e.Kind == control.Internal {
		a.o.Log.Error("a request failed", telemetry.KeyError, err)
		p.Detail = "the server could not do it; its log says why"
		return p
	}
	if e.Cause != nil {
		a.o.Log.Warn("a request was refused", telemetry.KeyError, err)
		p.Detail += ": " + e.Cause.Error()
	}
	for _, f := range e.Fields {
		field := ProblemField{Resource: f.Resource, Field: f.Name, Reason: f.Reason, Hint: f.Hint}
		switch {
		case f.Property:
			field.Pointer = "/properties/" + escape(f.Name)
		case f.Name != "":
			field.Pointer = "/" + escape(f.Name)
		}
		p.Errors = append(p.Errors, field)
	}
	return p
}

// escape writes a name as a step of a JSON pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// mayWrite refuses an actor that may only read. What is a commit is refused by control itself.
func mayWrite(ctx context.Context) error {
	if !control.ActorOf(ctx).May(control.ScopeWrite) {
		return refuse(http.StatusForbidden, "the token may only read")
	}
	return nil
}

// refuse is a problem without fields.
func refuse(status int, detail string) error {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}
