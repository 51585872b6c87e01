package server

import (
	"context"
	"os"
	"slices"

	"heliograph/internal/daemon"
	"heliograph/internal/telemetry"
)

// follow takes the configuration over again on SIGHUP, and when its content has changed and
// stands still.
func (s *Server) follow(ctx context.Context) {
	daemon.Follow(ctx, daemon.Digest(s.watched()), s.watched, func(reason string) {
		s.o.Log.Info("reading the configuration again", telemetry.KeyFile, s.o.Config, telemetry.KeyReason, reason)
		s.reload(ctx)
	})
}

// watched are all files that the configuration was read from, or would be now.
func (s *Server) watched() []string {
	s.reading.Lock()
	defer s.reading.Unlock()
	names := append(s.control.Files(), s.TokenFile())
	names = append(names, s.read...)
	if c, err := ReadConfig(s.o.Config); err == nil { // a directory may have other files by now
		names = append(names, c.Files...)
		for _, t := range c.Tokens {
			if t.File != "" {
				names = append(names, t.File)
			}
		}
		if c.TLS != nil {
			names = append(names, c.TLS.Certificate, c.TLS.Key)
		}
	}
	if s.o.Config != "" {
		names = append(names, s.o.Config)
		if info, err := os.Stat(s.o.Config); err == nil && info.IsDir() {
			names = append(names, s.o.Config+"/"+serverFile)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reload takes the configuration over, or says why not and changes nothing.
func (s *Server) reload(ctx context.Context) {
	s.reading.Lock()
	defer s.reading.Unlock()
	log := s.o.Log
	refused := func(err error) {
		log.Error("the configuration is not taken over, everything runs on as before", telemetry.KeyError, err)
	}
	c, err := ReadConfig(s.o.Config)
	if err != nil {
		refused(err)
		return
	}
	files, err := s.loadFiles(c)
	if err != nil {
		refused(err)
		return
	}
	l, err := s.readLive(c)
	if err != nil {
		refused(err)
		return
	}
	if err := s.control.Configure(ctx, c.policy(), files); err != nil {
		refused(err)
		return
	}
	s.live.Store(l)
	s.daemon.SetRate(size(c.BytesPerSecond))
	s.daemon.SetMemory(c.process().MemoryBytes)
	log.Info("the configuration is taken over", telemetry.KeyFile, s.o.Config)
	if names := s.restarts(c); len(names) > 0 {
		log.Warn("some of it holds from the next start on only", telemetry.KeyFile, s.o.Config, "settings", names)
	}
}
