package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
)

// workersWait is how long a dead member may still be listed: longer than the
// session of MirrorMaker's workers and of ours, 10 s each by default.
const workersWait = 15 * time.Second

func newTakeover(g *globals) *cobra.Command {
	var o runOptions
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "takeover FILE [--clusters TARGET ...]",
		Short: "Take the flows over from Java MirrorMaker 2, and replicate",
		Long: `takeover is run, behind a question: does Java MirrorMaker, or another heliograph,
still run the flows of this file? Their workers are members of a group on the
target (<source>-mm2), and while there is one, takeover refuses and names it: a
MirrorMaker in its default mode cannot be fenced, and both would copy.

A process that was killed is listed until its session ends, so that members are
waited for up to --wait.

Then it goes on from MirrorMaker's positions, under the same names. Behind an
unclean end those are up to a minute old: what was copied since is found by the
offset syncs and by comparing both logs, so that no record is copied twice and
none is left out. What 'heliograph plan FILE' says beforehand is what it does.

` + exitHelp,
		Example: `  heliograph takeover mm2.properties
  heliograph takeover mm2.properties --wait 1m`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			dep, err := g.loadSound(o.File, o.Strict)
			if err != nil {
				return err
			}
			into, err := targets(dep, o.Clusters)
			if err != nil {
				return err
			}
			if err := g.refuseWorkers(cmd.Context(), dep, into, wait); err != nil {
				return err
			}
			return runRun(cmd, g, o)
		},
	}
	runFlags(cmd, &o)
	waitFlag(cmd, &wait)
	return cmd
}

func waitFlag(cmd *cobra.Command, to *time.Duration) {
	cmd.Flags().DurationVar(to, "wait", workersWait, "how long to wait until no worker of the flows is alive")
}

// refuseWorkers ends a verb that must be alone with the flows.
func (g *globals) refuseWorkers(ctx context.Context, dep *config.Deployment, targets []mirror.ClusterAlias, wait time.Duration) error {
	log, flush := g.quietLog()
	alive, err := daemon.Workers(ctx, dep, targets, wait, log)
	flush()
	if err != nil {
		return exit(exitClusters, err)
	}
	if len(alive) == 0 {
		return nil
	}
	lines := make([]string, len(alive))
	for i, w := range alive {
		lines[i] = w.String()
	}
	return exit(exitClusters, errors.New(strings.Join(lines, "\n")+fmt.Sprintf("\nstop %s first; nothing was written", them(alive))))
}

func them(alive []daemon.Worker) string {
	if len(alive) == 1 {
		return "it"
	}
	return "them"
}
