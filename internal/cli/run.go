package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/daemon"
)

// stopWithin is the default bound of a stop.
const stopWithin = 30 * time.Second

// runOptions is run's command line.
type runOptions struct {
	File       string
	Clusters   []string
	Strict     bool
	Admin      string
	PProf      bool
	LogLevel   string
	StopWithin time.Duration
	Answers    []string
	Accepts    []string
	Canary     bool
}

func newRun(g *globals) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run FILE [--clusters TARGET ...]",
		Short: "Replicate what the file says until SIGTERM or Ctrl-C",
		Long: `run replicates what a MirrorMaker 2 file (or its YAML form) says, until SIGTERM
or SIGINT. It then finishes what it has read, writes its last positions and
exits 0; a second signal ends it at once.

With --canary it tries the file beside a running Java MirrorMaker: it copies into
topics of its own on the target, mm2-canary.<copy's name>.internal, which no
MirrorMaker copies on, keeps its positions beside MirrorMaker's, and leaves
offset syncs, checkpoints, groups, heartbeats and ACLs alone. It writes nothing to
the source. 'heliograph verify FILE --canary' compares the two.

The file is read again on SIGHUP and when its content, or that of a file it
names, has changed. What changed is logged; only the flows it concerns are
touched. A file with errors is refused, and everything runs on as before.

--answer and --accept decide, for this start, what a flow asks: where a parked
partition goes on ('heliograph plan' shows the choices), and whether a change of
a setting that could delete records is made without its wait.

A cluster that cannot be reached is waited for; other flows run. The log goes to
standard error: text with a progress line on a terminal, JSON lines elsewhere.

` + exitHelp,
		Example: `  heliograph run mm2.properties
  heliograph run mm2.properties --clusters B C    # only the flows into B and C
  heliograph run mm2.properties --admin-address 127.0.0.1:8080
  heliograph run mm2.properties --answer orders:3=scan --accept A.orders:retention.ms`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return runRun(cmd, g, o)
		},
	}
	runFlags(cmd, &o)
	cmd.Flags().BoolVar(&o.Canary, "canary", false, "copy beside a running MirrorMaker, into topics of its own that nobody reads")
	return cmd
}

func runFlags(cmd *cobra.Command, o *runOptions) {
	f := cmd.Flags()
	clustersFlag(cmd, &o.Clusters)
	strictFlag(cmd, &o.Strict)
	f.StringVar(&o.Admin, "admin-address", "", "host:port of /metrics and /healthz, or off (default: the file's heliograph.metrics.address)")
	f.BoolVar(&o.PProf, "pprof", false, "also serve /debug/pprof/ there")
	f.DurationVar(&o.StopWithin, "stop-within", stopWithin, "how long a stop may take")
	logLevelFlag(cmd, &o.LogLevel)
	decisionFlags(cmd, &o.Answers, &o.Accepts)
}

func clustersFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, "clusters", nil, "only the flows into these clusters; takes all words up to the next option")
}

func strictFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "strict", false, "refuse the file for unknown and misplaced keys too")
}

func logLevelFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "log-level", "info", "debug, info, warn or error")
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

func runRun(cmd *cobra.Command, g *globals, o runOptions) error {
	ctx, received, stop := untilSignal(cmd.Context())
	defer stop()
	s, err := g.newSession(o.LogLevel)
	if err != nil {
		return err
	}
	before := daemon.Digest([]string{o.File})
	dep, read, err := g.loadSoundNoting(o.File, o.Strict)
	if err != nil {
		return err
	}
	serve, err := targets(dep, o.Clusters)
	if err != nil {
		return err
	}
	decided, err := decisions(dep, o.Answers, o.Accepts)
	if err != nil {
		return err
	}
	r := newReloader(o, dep, read, before, s.log)
	if o.Canary {
		dep = daemon.Canary(dep)
	}
	return endOf(s.serve(ctx, received, dep, serveOptions{
		Targets: serve, Admin: o.Admin, PProf: o.PProf, StopWithin: o.StopWithin,
		Reload: func(ctx context.Context, d *daemon.Daemon) {
			go decide(ctx, s.log, d, decided)
			r.run(ctx, d)
		},
	}))
}

// endOf turns a session's end into the verb's exit code.
func endOf(end stopped) error {
	switch {
	case end.err == nil:
		return nil
	case errors.Is(end.err, errStartup):
		return exit(exitFile, end.err)
	case errors.Is(end.err, daemon.ErrStopBound):
		return exit(exitFailed, fmt.Errorf("%w; the next start finds its place again", end.err))
	}
	return exit(exitFailed, end.err)
}
