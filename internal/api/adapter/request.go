package adapter

import (
	"net/http"
	"strings"

	"heliograph/internal/control"
)

// OtherMethod says whether the request's path is there for another method.
func OtherMethod(mux *http.ServeMux, r *http.Request) bool {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); pattern != "" {
			return true
		}
	}
	return false
}

// Bearer is the token of a request's Authorization header, or nothing. schemes are other words
// for Bearer, which like it are taken in any case, as RFC 9110 has it.
func Bearer(authorization string, schemes ...string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	for _, known := range append(schemes, "Bearer") {
		if strings.EqualFold(scheme, known) {
			return strings.TrimLeft(token, " ")
		}
	}
	return ""
}

// Scope is what a token must permit for the request.
func Scope(r *http.Request) control.Scope {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return control.ScopeRead
	}
	return control.ScopeWrite
}
