package ovh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"heliograph/internal/api/adapter"
	"heliograph/internal/api/jsonobject"
	"heliograph/internal/control"
	"heliograph/internal/kafka"
)

// Error is an answer that is not a success, in OVHcloud's form. The newer clients
// read class, the older ones errorCode.
type Error struct {
	Status  int
	Class   string
	Message string
	// Code is the errorCode by which Python's client tells a refused credential.
	Code string
}

// Error is for the log.
func (e *Error) Error() string { return e.Class + ": " + e.Message }

type errorBody struct {
	Class     string `json:"class"`
	Message   string `json:"message"`
	ErrorCode string `json:"errorCode,omitempty"`
	HTTPCode  string `json:"httpCode,omitempty"`
}

func (e *Error) body() errorBody {
	b := errorBody{Class: e.Class, Message: e.Message, ErrorCode: e.Code}
	if e.Code != "" {
		b.HTTPCode = fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	}
	return b
}

// The classes that OVHcloud lists for these calls, as far as they can happen here.
const (
	classNotFound        = "Client::NotFound"
	classServiceNotFound = "Client::NotFound::ServiceNotFound"
	classNodeNotFound    = "Client::NotFound::NodeNotFound"
	classUserNotFound    = "Client::NotFound::UserNotFound"
	classMetricName      = "Client::NotFound::InvalidMetricName"
	classNoAvailability  = "Client::NotFound::NoMatchingAvailability"
	classUserName        = "Client::BadRequest::UserInvalidNameFormat"
	classNoUpdate        = "Client::BadRequest::NoUpdate"
	classConflict        = "Client::Conflict"
	classNotReady        = "Client::Conflict::ServiceNotReady"
	classOneModification = "Client::Conflict::ServiceOnlyOneModification"
	classForbidden       = "Client::Forbidden"
)

func notFound(class, format string, args ...any) *Error {
	return &Error{Status: http.StatusNotFound, Class: class, Message: fmt.Sprintf(format, args...)}
}

// missing says whether an error is that a thing is not there.
func missing(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusNotFound
}

func conflict(format string, args ...any) *Error {
	return &Error{Status: http.StatusConflict, Class: classConflict, Message: fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) *Error {
	return &Error{Status: http.StatusForbidden, Class: classForbidden, Message: fmt.Sprintf(format, args...), Code: "FORBIDDEN"}
}

// answerOf turns any error into an answer.
func answerOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsonobject.Error](err); ok {
		return badRequest("%v", e)
	}
	if e, ok := errors.AsType[*control.Error](err); ok {
		return answerOfControl(e)
	}
	if e, ok := errors.AsType[*kafka.Error](err); ok {
		return answerOfKafka(e)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &Error{Status: http.StatusServiceUnavailable, Class: "Server::ServiceUnavailable", Message: "the request took too long"}
	}
	return internal()
}

func internal() *Error {
	return &Error{Status: http.StatusInternalServerError, Class: "Server::InternalServerError", Message: "heliograph failed; its log says why, under this query id"}
}

// fieldNames are OVHcloud's names of the properties that it can set.
var fieldNames = map[string]string{
	keyTopics:       "topics",
	keyExclude:      "topicExcludeList",
	keySyncOffsets:  "syncGroupOffsets",
	keySyncInterval: "syncInterval",
	keyHeartbeats:   "emitHeartbeats",
	keyPolicy:       "replicationPolicyClass",
	"source":        "sourceIntegration",
	"target":        "targetIntegration",
}

func answerOfControl(e *control.Error) *Error {
	switch e.Kind {
	case control.Invalid:
		return badRequest("%s", adapter.Invalid(e, func(name string) string { return cmp.Or(fieldNames[name], name) }))
	case control.NotFound:
		return notFound(classNotFound, "%s", e.Message)
	case control.Conflict:
		return conflict("%s", e.Message)
	case control.Precondition:
		return &Error{Status: http.StatusConflict, Class: classOneModification, Message: "somebody else changes the service at this moment; try again"}
	case control.Forbidden, control.TooMany:
		return forbidden("%s", e.Error())
	case control.Unavailable:
		return &Error{Status: http.StatusServiceUnavailable, Class: "Server::ServiceUnavailable", Message: e.Message}
	case control.Internal:
	}
	return internal()
}

// answerOfKafka says what a cluster refused. The text holds no secret.
func answerOfKafka(e *kafka.Error) *Error {
	switch kafka.CodeOf(e) {
	case kafka.CodeTopicAlreadyExists:
		return conflict("%v", e)
	case kafka.CodeUnknownTopicOrPartition, kafka.CodeResourceNotFound:
		return notFound(classNotFound, "%v", e)
	case kafka.CodeUnsupportedVersion, kafka.CodeSecurityDisabled:
		return forbidden("the cluster cannot do this: %v", e)
	case kafka.CodeNone:
	default:
		if !kafka.Heals(e) {
			return badRequest("%v", e)
		}
	}
	return &Error{Status: http.StatusConflict, Class: classNotReady, Message: e.Error()}
}
