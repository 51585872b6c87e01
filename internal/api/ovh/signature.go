package ovh

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // OVHcloud's signature is defined with it
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heliograph/internal/api/adapter"
	"heliograph/internal/config"
	"heliograph/internal/control"
)

// Application is a program that may sign requests, as OVHcloud's createApp hands
// them out.
type Application struct {
	Key       string
	Secret    config.Secret
	Consumers []Consumer
}

// Consumer is somebody for whom an application asks.
type Consumer struct {
	Key config.Secret
	// Project is the serviceName that it may name in paths.
	Project string
	// Actor is who this is for control.
	Actor control.Actor
}

// Credentials are applications by their keys.
type Credentials map[string]*Application

// NewCredentials refuses applications that would let anybody in.
func NewCredentials(applications []Application) (Credentials, error) {
	all := Credentials{}
	for i := range applications {
		app := &applications[i]
		if _, twice := all[app.Key]; twice || app.Key == "" {
			return nil, fmt.Errorf("OVHcloud application %q: an application key must be there, and once only", app.Key)
		}
		if app.Secret.IsZero() {
			return nil, fmt.Errorf("OVHcloud application %q has no secret", app.Key)
		}
		for _, c := range app.Consumers {
			if c.Key.IsZero() || c.Project == "" {
				return nil, fmt.Errorf("OVHcloud application %q: a consumer needs a key and a project", app.Key)
			}
		}
		all[app.Key] = app
	}
	return all, nil
}

// Grant is what a request may do.
type Grant struct {
	Project string // empty: any
	Actor   control.Actor
}

// maxSkew is how far a request's time may be from ours. Within it a request that
// somebody overheard could be sent again: plain HTTP is for loopback.
const maxSkew = 60 * time.Second

// authenticate finds out who asks: by OVHcloud's signature, or by a bearer token.
func (h *Handler) authenticate(r *http.Request, body []byte) (Grant, error) {
	if auth := r.Header.Get("Authorization"); auth != "" {
		if h.o.Token != nil {
			if grant, ok := h.o.Token(adapter.Bearer(auth)); ok {
				return grant, nil
			}
		}
		return Grant{}, &Error{Status: http.StatusUnauthorized, Class: "Client::Unauthorized::InvalidAuthToken", Message: "the access token is not valid"}
	}
	key := r.Header.Get("X-Ovh-Application")
	if key == "" {
		return Grant{}, &Error{Status: http.StatusUnauthorized, Class: "Client::Unauthorized", Message: "You must login first", Code: "NOT_CREDENTIAL"}
	}
	app, ok := h.o.Credentials()[key]
	if !ok {
		return Grant{}, &Error{Status: http.StatusForbidden, Class: classForbidden, Message: "This application key is invalid", Code: "INVALID_KEY"}
	}
	given := r.Header.Get("X-Ovh-Consumer")
	if given == "" {
		return Grant{}, &Error{Status: http.StatusForbidden, Class: classForbidden, Message: "You must login first", Code: "NOT_CREDENTIAL"}
	}
	consumer, ok := app.consumer(given)
	if !ok {
		return Grant{}, &Error{Status: http.StatusForbidden, Class: classForbidden, Message: "This credential is not valid", Code: "INVALID_CREDENTIAL"}
	}
	if err := app.check(r, body, given, h.o.Now()); err != nil {
		return Grant{}, err
	}
	return Grant{Project: consumer.Project, Actor: consumer.Actor}, nil
}

// consumer finds a consumer key. All are compared, so that the time it takes does
// not tell how much of a key was right.
func (a *Application) consumer(key string) (found Consumer, ok bool) {
	for _, c := range a.Consumers {
		if hmac.Equal([]byte(c.Key.Reveal()), []byte(key)) {
			found, ok = c, true
		}
	}
	return found, ok
}

// check compares the request's signature with ours.
func (a *Application) check(r *http.Request, body []byte, consumer string, now time.Time) error {
	stamp := r.Header.Get("X-Ovh-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Class: "Client::BadRequest", Message: "X-Ovh-Timestamp is not a number of seconds", Code: "QUERY_TIME_OUT"}
	}
	if skew := now.Sub(time.Unix(seconds, 0)); skew > maxSkew || skew < -maxSkew {
		return &Error{Status: http.StatusBadRequest, Class: "Client::BadRequest", Message: "Query out of time: take the time from /auth/time", Code: "QUERY_TIME_OUT"}
	}
	given, ok := strings.CutPrefix(r.Header.Get("X-Ovh-Signature"), "$1$")
	if ok {
		// Behind a proxy that ends TLS the client signed https, whatever reaches us.
		for _, scheme := range []string{"http", "https"} {
			want := sign(a.Secret.Reveal(), consumer, r.Method, scheme+"://"+r.Host+r.RequestURI, body, stamp)
			if hmac.Equal([]byte(want), []byte(given)) {
				return nil
			}
		}
	}
	return &Error{Status: http.StatusBadRequest, Class: "Client::BadRequest", Message: "Invalid signature", Code: "INVALID_SIGNATURE"}
}

// sign is OVHcloud's signature without its version.
func sign(secret, consumer, method, url string, body []byte, stamp string) string {
	h := sha1.New() //nolint:gosec // see the import
	for i, part := range []string{secret, consumer, method, url, string(body), stamp} {
		if i > 0 {
			h.Write([]byte{'+'})
		}
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
