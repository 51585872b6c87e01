package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/daemon"
)

// exitLosses is losses' code when there are entries.
const exitLosses = 3

// lossesOptions is losses' command line.
type lossesOptions struct {
	File   string
	Strict bool
	daemon.LossesOptions
}

func newLosses(g *globals) *cobra.Command {
	var o lossesOptions
	cmd := &cobra.Command{
		Use:   "losses FILE [--flow A->B] [--topic REGEX ...]",
		Short: "List what was not copied, or may not have been, and why",
		Long: `losses reads the loss ledger (mm2-losses.internal) on every target of a file and
lists its entries: which source offsets, how many records at most, what happened
and what was done about it. The ledger is written before a position passes a
loss; what it does not name was copied. It writes nothing.

Exit codes:
  0  no losses
  1  the file is bad, or a ledger could not be read
  2  the command line is bad
  3  there are losses
`,
		Example: `  heliograph losses mm2.properties
  heliograph losses mm2.properties --flow 'A->B' --topic 'orders.*'
  heliograph losses mm2.properties --output json`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return runLosses(cmd, g, o)
		},
	}
	flowFlag(cmd, &o.Flow)
	cmd.Flags().StringArrayVar(&o.Topics, "topic", nil, "only source topics whose whole name matches; may be repeated")
	strictFlag(cmd, &o.Strict)
	return cmd
}

// lossesReport is what losses tells, in the form of its JSON.
type lossesReport struct {
	File   string        `json:"file"`
	Error  string        `json:"error,omitempty"`
	Losses []daemon.Loss `json:"losses"`
}

func runLosses(cmd *cobra.Command, g *globals, o lossesOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	log, flush := g.quietLog()
	found, failed := daemon.ReadLosses(cmd.Context(), dep, o.LossesOptions, log)
	flush()
	r := lossesReport{File: o.File, Losses: found}
	if failed != nil {
		r.Error = failed.Error()
	}
	return g.tellLosses(r, found, failed)
}

// tellLosses prints losses, as the report or for people. failed is why some may be lacking.
func (g *globals) tellLosses(report any, found []daemon.Loss, failed error) error {
	var err error
	switch {
	case g.Output == "json":
		err = g.writeJSON(report)
	case len(found) > 0:
		_, err = fmt.Fprint(g.Out, lossesText(found))
	case failed == nil:
		_, err = fmt.Fprintln(g.Out, "no losses")
	}
	switch {
	case err != nil:
		return err
	case failed != nil && g.Output == "json":
		return exitSaid(exitFile)
	case failed != nil:
		return exit(exitFile, failed)
	case len(found) > 0:
		return exitSaid(exitLosses)
	}
	return nil
}

func lossesText(found []daemon.Loss) string {
	rows := make([][]string, len(found))
	for i, l := range found {
		span, records := fmt.Sprintf("at %d", l.From), "-"
		if l.To > l.From {
			span, records = fmt.Sprintf("%d to %d", l.From, l.To-1), fmt.Sprint(l.Records)
		}
		rows[i] = []string{
			l.Time.Format(time.RFC3339), l.Flow, fmt.Sprintf("%s-%d", l.Topic, l.Partition), l.Kind, span, records, l.Action, l.Reason,
		}
	}
	return table([]string{"TIME", "FLOW", "PARTITION", "KIND", "SOURCE OFFSETS", "RECORDS AT MOST", "ACTION", "REASON"}, rows)
}
