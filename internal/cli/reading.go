package cli

import (
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"heliograph/internal/telemetry"
)

// flowFlag chooses one flow of the file.
func flowFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "flow", "", "only this flow, written A->B (default: every flow that copies topics)")
}

// fileAnd accepts the file and one word for each name.
func fileAnd(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fileArg(cmd, args)
		case len(args) <= len(names):
			return fmt.Errorf("%s: missing after the file (%s --help explains)", strings.Join(names[len(args)-1:], ", "), cmd.CommandPath())
		case len(args) > len(names)+1:
			return fmt.Errorf("unexpected %q (%s --help explains)", args[len(names)+1], cmd.CommandPath())
		}
		return nil
	}
}

// quietLog is the log of verbs whose output is their result: errors only.
func (g *globals) quietLog() (log *slog.Logger, flush func()) {
	return telemetry.NewLogger(g.Err, telemetry.LogOptions{
		Format: telemetry.LogFormat(g.Output), Level: slog.LevelError, Terminal: telemetry.IsTerminal(g.Err),
	})
}

// table lays out rows under a header, the columns as wide as they need.
func table(header []string, rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// number writes an offset or a count that may not be known.
func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}
