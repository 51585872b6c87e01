package adapter

import (
	"net/http"

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

// Scope is what a token must permit for the request.
func Scope(r *http.Request) control.Scope {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return control.ScopeRead
	}
	return control.ScopeWrite
}
