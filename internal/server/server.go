package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/api/adapter"
	"heliograph/internal/api/native"
	"heliograph/internal/config"
	"heliograph/internal/control"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
	"heliograph/internal/store"
	"heliograph/internal/telemetry"
)

// Options is the command line's part.
type Options struct {
	Config string // file or directory; see [ReadConfig]
	Listen string // overrides the configuration's
	Data   string // likewise
	Build  telemetry.Build
	Log    *slog.Logger
	// StopWithin bounds the flows' draining at the end.
	StopWithin time.Duration
	// ReadFile and the like read what files refer to.
	Outside config.Source
}

// Server is a server that has been opened; Run serves.
type Server struct {
	o        Options
	config   *Config // that of the start
	data     string
	store    store.Store
	daemon   *daemon.Daemon
	control  *control.Control
	native   *native.API
	instance *daemon.Instance
	listener net.Listener
	handler  http.Handler
	live     atomic.Pointer[live]

	reading sync.Mutex // held for one reading of the configuration
	read    []string   // files that the last one read
}

// Open reads the configuration and the store, and opens the address. Clusters of flows are not
// contacted.
func Open(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{o: o}
	if s.config, err = ReadConfig(o.Config); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.data = cmp.Or(o.Data, s.config.Data, DefaultData)
	files, err := s.loadFiles(s.config)
	if err != nil {
		return nil, err
	}
	l, err := s.readLive(s.config)
	if err != nil {
		return nil, err
	}
	s.live.Store(l)
	if s.store, err = openStore(ctx, s.config, s.data, o.Log); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s.instance = daemon.TakeInstance(&config.Deployment{}, host, os.TempDir(), o.Log)
	s.daemon = daemon.NewEmpty(s.config.process(), daemon.Options{
		Host: s.instance.Name, Log: o.Log, StopWithin: o.StopWithin,
		Refused: func(id mirror.FlowID, topic, setting, wish string) bool { // flows run when control is there
			return s.control.Refused(id, topic, setting, wish)
		},
	})
	s.control, err = control.New(ctx, control.Options{
		Store: s.store, Engine: s.daemon, Policy: s.config.policy(), Files: files, Outside: o.Outside, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	s.native = native.New(native.Options{
		Control: s.control, Engine: s.daemon, Actor: s.actor, Build: o.Build, Log: o.Log,
	})
	if s.handler, err = s.routes(); err != nil {
		return nil, err
	}
	if s.config.Metrics != "" {
		if _, err := s.daemon.Listen(ctx, s.config.Metrics, false, o.Build); err != nil {
			return nil, err
		}
	}
	s.listener, err = listen(ctx, cmp.Or(o.Listen, s.config.Listen, DefaultListen))
	if err == nil && s.config.TLS != nil {
		s.listener = tlsOver(s.listener, s.certificate)
	}
	return s, err
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// TokenFile holds the admin token.
func (s *Server) TokenFile() string { return filepath.Join(s.data, adminTokenFile) }

// close gives back what Open took.
func (s *Server) close() {
	if s.native != nil {
		s.native.Close()
	}
	if s.daemon != nil {
		s.daemon.Close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.o.Log.Warn("the store was not closed in order", telemetry.KeyError, err)
		}
	}
	if s.instance != nil {
		s.instance.Release()
	}
	if s.listener != nil {
		_ = s.listener.Close() // serving has ended, or never began
	}
}

// Run runs the flows and answers until ctx ends: then no new request is taken, what is under way
// is answered, flows drain, and the store is closed.
func (s *Server) Run(ctx context.Context) error {
	defer s.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := serve(ctx, s.listener, s.handler, s.o.Log)
		if err != nil {
			cancel(err)
		}
		served <- err
	}()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		s.control.Run(ctx)
	}()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.follow(ctx)
	}()
	err := s.daemon.Run(ctx)
	<-followed
	<-watched
	return errors.Join(err, <-served)
}

// loadFiles reads the files with clusters and flows. Any error in one refuses all.
func (s *Server) loadFiles(c *Config) (map[string]*config.Deployment, error) {
	files := map[string]*config.Deployment{}
	var read []string
	var bad []string
	for _, name := range c.Files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		src := s.o.Outside
		src.Name, src.Bytes = name, data
		if src.ReadFile != nil {
			open := src.ReadFile
			src.ReadFile = func(name string) ([]byte, error) {
				read = append(read, name)
				return open(name)
			}
		}
		dep := config.Load(src)
		if err := dep.Err(); err != nil {
			bad = append(bad, err.Error())
			continue
		}
		files[name] = dep
		read = append(read, daemon.Files(dep)...)
	}
	s.read = read
	if len(bad) > 0 {
		return nil, errors.New(strings.Join(bad, "\n"))
	}
	return files, nil
}

// routes puts the APIs under their paths.
func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", s.native)
	s.mountHealth(mux)
	if err := s.mountAdapters(mux); err != nil {
		return nil, err
	}
	return manners(hostCheck(mux, func() []string { return s.live.Load().hosts }), s.o.Log), nil
}

// mountHealth serves health to everybody, without names, and metrics to the owner.
func (s *Server) mountHealth(mux *http.ServeMux) {
	g := telemetry.NewRegistry(s.o.Build)
	admin := telemetry.AdminHandler(telemetry.AdminOptions{Gatherer: g, Series: s.daemon.Series(), Health: s.daemon.Health, Log: s.o.Log})
	bare := telemetry.AdminHandler(telemetry.AdminOptions{Gatherer: g, Log: s.o.Log, Health: func() telemetry.Health {
		h := s.daemon.Health()
		h.Parts = nil
		return h
	}})
	mux.Handle("GET /healthz", bare)
	mux.Handle("GET /healthz/live", bare)
	mux.Handle("GET /healthz/ready", bare)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		actor, ok := s.actor(adapter.Bearer(r.Header.Get("Authorization")))
		if !ok || !actor.May(control.ScopeAdmin) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="heliograph"`)
			http.Error(w, "metrics are for the owner's tokens; set metrics in the configuration for an address without one", http.StatusUnauthorized)
			return
		}
		admin.ServeHTTP(w, r)
	})
}
