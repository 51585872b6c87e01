package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// Health answers both questions an orchestrator asks. Alive: would a restart
// help? Ready: does everything that was asked for work?
type Health struct {
	Alive bool        `json:"alive"`
	Ready bool        `json:"ready"`
	Parts []PartState `json:"parts,omitempty"`
}

// PartState is one flow's or one cluster's share of a [Health].
type PartState struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"` // why it is not ready
}

// AdminOptions configures an [Admin]. Gatherer and Health are required.
type AdminOptions struct {
	Address  string // host:port; port 0 takes a free one
	Gatherer prometheus.Gatherer
	// Series writes the many series behind those of Gatherer; nil writes none.
	Series func(*Exposition)
	Health func() Health
	PProf  bool // also serve /debug/pprof/, which can slow the process down and shows its memory
	Log    *slog.Logger
}

// Admin is the HTTP server for machines and for a person with curl:
//
//	/metrics        Prometheus text
//	/healthz        both answers and every part, JSON; 200 if alive and ready, else 503
//	/healthz/live   200 or 503
//	/healthz/ready  200 or 503, with the parts that are not
//
// It has no login: bind it to an address that only the monitoring can reach.
type Admin struct {
	listener net.Listener
	server   *http.Server
	log      *slog.Logger
}

// ListenAdmin binds the address, so that a port that is taken is an error at start-up.
func ListenAdmin(ctx context.Context, o AdminOptions) (*Admin, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("admin server on %s: %w", o.Address, err)
	}
	return &Admin{
		listener: l,
		log:      o.Log,
		server: &http.Server{
			Handler:           AdminHandler(o),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			IdleTimeout:       2 * time.Minute,
		},
	}, nil
}

// Address is where the server listens.
func (a *Admin) Address() string { return a.listener.Addr().String() }

// Run serves until ctx ends, then answers what is under way and returns nil.
func (a *Admin) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := a.server.Shutdown(grace); err != nil {
			a.log.Warn("admin server closed with requests under way", KeyError, err)
			_ = a.server.Close() // the deadline passed; nothing is left to report
		}
	})
	defer stop()
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin server on %s: %w", a.Address(), err)
	}
	return nil
}

// Close gives the address back without serving. After Run it does nothing.
func (a *Admin) Close() error { return a.server.Close() }

// AdminHandler answers what an [Admin] does, for another server.
func AdminHandler(o AdminOptions) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", o.metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		h := o.Health()
		writeHealth(w, h, h.Alive && h.Ready)
	})
	mux.HandleFunc("GET /healthz/live", func(w http.ResponseWriter, _ *http.Request) {
		h := o.Health()
		writeHealth(w, Health{Alive: h.Alive, Ready: h.Ready}, h.Alive)
	})
	mux.HandleFunc("GET /healthz/ready", func(w http.ResponseWriter, _ *http.Request) {
		h := o.Health()
		var waiting []PartState
		for _, p := range h.Parts {
			if !p.Ready {
				waiting = append(waiting, p)
			}
		}
		writeHealth(w, Health{Alive: h.Alive, Ready: h.Ready, Parts: waiting}, h.Ready)
	})
	if o.PProf {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// metrics answers in the text format, whatever formats are offered: every scraper reads it.
func (o *AdminOptions) metrics(w http.ResponseWriter, r *http.Request) {
	families, err := o.Gatherer.Gather()
	if err != nil {
		http.Error(w, "metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	w.Header().Add("Vary", "Accept-Encoding")
	var out io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level exists
		defer func() { _ = zip.Close() }()               // as with Encode below
		out = zip
	}
	e := NewExposition(out)
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(out, f); err != nil {
			return // a client that went away is its own affair
		}
	}
	if o.Series != nil {
		o.Series(e)
	}
	_ = e.Close()
}

func writeHealth(w http.ResponseWriter, h Health, ok bool) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // "A->B" stays readable and can be searched for
	_ = e.Encode(h)        // a client that went away is its own affair
}
