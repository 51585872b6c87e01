package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/flow"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

const (
	drawEvery = time.Second // the progress line of a terminal
	logEvery  = time.Minute // the progress line of a log
)

// session is a process that replicates until it is told to stop: its log, its
// progress line, its signals. run, demo and connect-mirror-maker share it.
type session struct {
	g      *globals
	log    *slog.Logger
	flush  func()
	screen *screen // nil unless the log goes to a terminal
	meter  meter
	// view draws the terminal's status; the progress line unless a verb has more to show.
	view func(r *reading, flows []flow.Status) string
}

// serveOptions is what a session runs with.
type serveOptions struct {
	Targets    []mirror.ClusterAlias
	Admin      string // address that the command line names; "" takes the file's, "off" is none
	PProf      bool
	StopWithin time.Duration
	// Reload, if set, follows changes of the file while the daemon runs, until ctx ends.
	Reload func(ctx context.Context, d *daemon.Daemon)
	// AwaitTargets and FirstErrorStops are MirrorMaker's manners.
	AwaitTargets    time.Duration
	FirstErrorStops bool
}

// newSession sets up logging to the error stream: text with a progress line on a
// terminal, JSON lines elsewhere, unless --output says otherwise.
func (g *globals) newSession(level string) (*session, error) {
	l, err := telemetry.ParseLogLevel(level)
	if err != nil {
		return nil, err
	}
	terminal := telemetry.IsTerminal(g.Err)
	s := &session{g: g, view: func(r *reading, _ []flow.Status) string { return r.String() }}
	o := telemetry.LogOptions{
		Format: telemetry.LogFormat(g.Output), Level: l,
		Terminal: terminal, Color: telemetry.WantsColor(terminal, g.Getenv),
	}
	w := g.Err
	if f, ok := g.Err.(*os.File); ok && terminal && g.Output != "json" && g.Getenv("TERM") != "dumb" {
		s.screen = &screen{out: f, width: func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return w
		}}
		w = s.screen
	}
	s.log, s.flush = telemetry.NewLogger(w, o)
	return s, nil
}

// stopped says how a session ended.
type stopped struct {
	signal os.Signal // nil if no signal ended it
	err    error
}

// errStartup marks errors from before the flows were started.
var errStartup = errors.New("not started")

// serve runs a deployment until ctx ends, which untilSignal made, and drains. A
// second signal ends the process at once: the first one gives the signals their
// default meaning back.
func (s *session) serve(ctx context.Context, received <-chan os.Signal, dep *config.Deployment, o serveOptions) stopped {
	defer s.flush()
	s.logProblems(dep.Problems)
	d, release, err := s.open(ctx, dep, o)
	if err == nil {
		defer release()
		if o.Reload != nil {
			go o.Reload(ctx, d)
		}
		err = d.Run(ctx)
	}
	if s.screen != nil {
		s.screen.show("")
	}
	end := stopped{err: err}
	if ctx.Err() != nil {
		end.signal = <-received
	}
	if err == nil {
		s.log.Info("stopped")
	}
	return end
}

// signalError is why a context ended that a signal ended. It is a cancellation:
// whoever was stopped by it did not fail.
type signalError struct{ os.Signal }

func (s signalError) Error() string { return s.String() + " signal received" }

func (s signalError) Is(target error) bool { return target == context.Canceled }

// untilSignal ends the context with SIGTERM or SIGINT, and then gives both their
// default meaning back. A verb that runs until it is told to stop calls it first,
// so that a signal during its start is a stop in order too. Once the context has
// ended, received delivers the signal, or nil if the parent ended.
func untilSignal(parent context.Context) (ctx context.Context, received <-chan os.Signal, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	which := make(chan os.Signal, 1)
	go func() {
		var s os.Signal
		select {
		case s = <-signals:
		case <-ctx.Done():
		}
		// Before anybody sees the end: a second signal must find its default meaning.
		signal.Stop(signals)
		which <- s
		if s != nil {
			cancel(signalError{s})
		}
	}()
	return ctx, which, func() { cancel(nil) }
}

// open makes the daemon and its HTTP server.
func (s *session) open(ctx context.Context, dep *config.Deployment, o serveOptions) (*daemon.Daemon, func(), error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	place := daemon.TakeInstance(dep, host, os.TempDir(), s.log)
	every := logEvery
	if s.screen != nil {
		every = drawEvery
	}
	d, err := daemon.New(dep, daemon.Options{
		Targets: o.Targets, Host: place.Name, Log: s.log, StopWithin: o.StopWithin,
		FirstErrorStops: o.FirstErrorStops, Watch: s.watch, WatchEvery: every,
	})
	if err != nil {
		place.Release()
		return nil, nil, fmt.Errorf("%w: %w", errStartup, err)
	}
	err = s.listen(ctx, d, dep.Process, o)
	if err == nil && o.AwaitTargets > 0 {
		err = d.AwaitTargets(ctx, o.AwaitTargets)
	}
	if err != nil {
		d.Close()
		place.Release()
		return nil, nil, fmt.Errorf("%w: %w", errStartup, err)
	}
	for _, id := range d.Flows() {
		s.log.Info("flow starts", telemetry.KeyFlow, id.String())
	}
	return d, place.Release, nil
}

// listen opens the admin server. An address from the command line must work; one
// from the file, which several instances may share, only should.
func (s *session) listen(ctx context.Context, d *daemon.Daemon, p config.Process, o serveOptions) error {
	address := o.Admin
	if address == "" {
		address = p.MetricsAddress
	}
	if address == "" || address == "off" {
		return nil
	}
	bound, err := d.Listen(ctx, address, o.PProf, s.g.build())
	switch {
	case err == nil:
		s.log.Info("metrics and health are served", telemetry.KeyAddress, bound)
		return nil
	case o.Admin == "":
		s.log.Warn("no metrics and health: the address cannot be used", telemetry.KeyError, err,
			telemetry.KeyHint, "set heliograph.metrics.address or --admin-address")
		return nil
	}
	return err
}

// watch shows progress: on a terminal in place, in a log now and then.
func (s *session) watch(now time.Time, flows []flow.Status) {
	r := s.meter.read(now, flows)
	if s.screen != nil {
		s.screen.show(s.view(&r, flows))
		return
	}
	attrs := []any{
		"running_flows", r.Running, "flows", r.Flows, "topics", r.Topics, "partitions", r.Partitions,
		"parked", r.Parked, "records", r.Records, "bytes", r.Bytes,
		"records_per_second", int64(r.RecordsPerSecond), "bytes_per_second", int64(r.BytesPerSecond),
		"lag_records", r.LagRecords, "lag_seconds", r.LagSeconds,
	}
	if r.CatchUp >= 0 { // otherwise the lag does not shrink
		attrs = append(attrs, "catch_up_seconds", int64(r.CatchUp.Seconds()))
	}
	s.log.Info("progress", attrs...)
}

// logProblems repeats the remarks about a file that is run all the same.
func (s *session) logProblems(problems config.Problems) {
	for _, p := range problems {
		if p.Severity == config.Warning {
			s.log.Warn("remark on the file", telemetry.KeyFile, place(p), "key", p.Key,
				telemetry.KeyReason, p.Message, telemetry.KeyHint, p.Hint)
		}
	}
}

// place is where a problem stands: file:line.
func place(p config.Problem) string { return config.Origin{File: p.File, Line: p.Line}.String() }
