package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/daemon"
)

// handbackOptions is handback's command line.
type handbackOptions struct {
	File     string
	Strict   bool
	Clusters []string
	Wait     time.Duration
	Within   time.Duration
}

func newHandback(g *globals) *cobra.Command {
	var o handbackOptions
	cmd := &cobra.Command{
		Use:   "handback FILE [--clusters TARGET ...]",
		Short: "Make the positions ready for Java MirrorMaker 2 after a crash",
		Long: `handback is for going back to Java MirrorMaker after heliograph has crashed. After
a clean stop it is not needed, and does no harm.

It takes the flows over as run does: fences what the dead process may still have
under way, finds by comparing both logs how far each partition was copied, and
writes that down as a clean stop does, where MirrorMaker reads it. Without it
MirrorMaker would copy again what was copied since the last position, and in its
default mode would take the position of an aborted transaction for true and
leave records out. It copies nothing and makes no topic.

While a worker of the flows is alive, heliograph's or MirrorMaker's, it refuses.

Exit codes:
  0  every position is exact: start MirrorMaker
  1  the file is bad
  2  the command line is bad
  3  a worker is alive, a flow was not handed back, or the place of a partition
     cannot be told; MirrorMaker would copy that one as its old position says
`,
		Example: `  heliograph handback mm2.properties`,
		Args:    fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return runHandback(cmd, g, o)
		},
	}
	clustersFlag(cmd, &o.Clusters)
	strictFlag(cmd, &o.Strict)
	waitFlag(cmd, &o.Wait)
	cmd.Flags().DurationVar(&o.Within, "within", 10*time.Minute, "how long finding all places may take")
	return cmd
}

// handbackReport is what handback tells, in the form of its JSON.
type handbackReport struct {
	File  string              `json:"file"`
	Flows []daemon.HandedBack `json:"flows"`
}

func runHandback(cmd *cobra.Command, g *globals, o handbackOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	into, err := targets(dep, o.Clusters)
	if err != nil {
		return err
	}
	if err := g.refuseWorkers(cmd.Context(), dep, into, o.Wait); err != nil {
		return err
	}
	log, flush := g.quietLog()
	defer flush()
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	place := daemon.TakeInstance(dep, host, os.TempDir(), log)
	defer place.Release()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Within)
	defer cancel()
	report := handbackReport{o.File, daemon.Handback(ctx, dep, into, place.Name, log)}
	if g.Output == "json" {
		err = g.writeJSON(report)
	} else {
		_, err = fmt.Fprint(g.Out, report.text())
	}
	if err != nil {
		return err
	}
	for _, f := range report.Flows {
		if f.Error != "" || len(f.Unsettled) > 0 {
			return exitSaid(exitClusters)
		}
	}
	return nil
}

func (r *handbackReport) text() string {
	var b strings.Builder
	for _, f := range r.Flows {
		fmt.Fprintf(&b, "flow %s: %s exact, MirrorMaker can go on\n", f.Flow, plural(f.Partitions, "position"))
		for _, p := range f.Unsettled {
			fmt.Fprintf(&b, "  not exact: %s-%d: %s\n", p.Topic, p.Partition, p.Reason)
		}
		if f.Error != "" {
			fmt.Fprintf(&b, "  error: %s\n", f.Error)
		}
	}
	return b.String()
}
