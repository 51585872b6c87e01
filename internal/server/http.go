package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"heliograph/internal/telemetry"
)

// Bounds of what a client may cost. A handler of a long answer moves its own write deadline.
const (
	headerWithin = 5 * time.Second
	readWithin   = 30 * time.Second
	answerWithin = 6 * time.Minute // the longest question to clusters takes five
	idleWithin   = 2 * time.Minute
	maxHeaders   = 32 << 10
	maxConns     = 1000
	endWithin    = 5 * time.Second // what is under way when the server ends
)

// hostCheck lets only requests pass that call the server by a name it knows: a page in somebody's
// browser whose name was made to point here (DNS rebinding) calls it by that name.
func hostCheck(next http.Handler, hosts func() []string) http.Handler {
	known := []string{"localhost"}
	if name, err := os.Hostname(); err == nil {
		known = append(known, name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
		called := func(name string) bool { return strings.EqualFold(name, host) }
		if net.ParseIP(host) == nil && !slices.ContainsFunc(known, called) && !slices.ContainsFunc(hosts(), called) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusMisdirectedRequest)
			_, _ = fmt.Fprintf(w, `{"title":"Misdirected Request","status":421,"detail":"the server is not known by the name in the Host header: add it to hosts in its configuration"}`) // who went away reads nothing
			return
		}
		next.ServeHTTP(w, r)
	})
}

// manners are headers that every answer has, and what a panic of one request does: an answer,
// a line in the log, and nothing else.
func manners(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				log.Error("a request broke", "path", r.URL.Path, telemetry.KeyError, fmt.Sprint(p))
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// listen opens the server's address.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return netutil.LimitListener(l, maxConns), nil
}

// tlsOver serves HTTPS; certificate is asked for every connection.
func tlsOver(l net.Listener, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: certificate,
	})
}

// serve answers until ctx ends, and then what is under way.
func serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	// Streams end with this context, so that they do not hold up the end.
	base, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headerWithin, ReadTimeout: readWithin, WriteTimeout: answerWithin, IdleTimeout: idleWithin,
		MaxHeaderBytes: maxHeaders, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() {
		endStreams()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		if err := s.Shutdown(grace); err != nil {
			log.Warn("the server ended with requests under way", telemetry.KeyError, err)
			_ = s.Close() // the deadline passed; nothing is left to report
		}
	})
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
