package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"heliograph/internal/daemon"
)

// groupsOptions is groups' command line.
type groupsOptions struct {
	File   string
	Strict bool
	daemon.GroupsOptions
	Back, Apply, Rewind bool
}

func newGroups(g *globals) *cobra.Command {
	var o groupsOptions
	cmd := &cobra.Command{
		Use:   "groups FILE [--flow A->B] [--group REGEX ...]",
		Short: "Tell how consumer groups stand on both sides, and what a move would cost",
		Long: `groups tells for every consumer group that a flow follows, partition by
partition: where it stands on the source, what that is on the target and how sure
that is, where it stands on the target now, and why it does not stand in the
right place. Two columns tell what is at risk if the group moved now:

  NOT COPIED  records it has not read and the target has not got
  READ TWICE  records it has read and would read again, going on at its present
              position on the target, or at the copy's start where it has none

Both count offsets, some of which may have no record. Everything is read from the
clusters; nothing that runs is asked, and nothing is written.

With --back it tells the way back after a fail-over: where each group that stands
on copies on the target goes on at the source. --apply commits that on the source,
for groups without members there, and only forward unless --rewind is given.

Exit codes:
  0  told; with --apply: every group stands at its place
  1  the file is bad, or a flow's groups could not be read
  2  the command line is bad
  3  with --apply: a group could not be moved, the table tells why
`,
		Example: `  heliograph groups mm2.properties
  heliograph groups mm2.properties --flow 'A->B' --group 'billing.*'
  heliograph groups mm2.properties --back --flow 'A->B' --group billing --apply
  heliograph groups mm2.properties --output json`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if !o.Back && (o.Apply || o.Rewind) {
				return errors.New("--apply and --rewind belong to --back")
			}
			if o.Back {
				return runGroupsBack(cmd, g, o)
			}
			return runGroups(cmd, g, o)
		},
	}
	flowFlag(cmd, &o.Flow)
	cmd.Flags().StringArrayVar(&o.Groups, "group", nil, "only groups whose whole name matches; may be repeated")
	cmd.Flags().BoolVar(&o.Back, "back", false, "from the target to the source: the way back after a fail-over")
	cmd.Flags().BoolVar(&o.Apply, "apply", false, "with --back: commit it on the source")
	cmd.Flags().BoolVar(&o.Rewind, "rewind", false, "with --back --apply: also where the group stands further on at the source")
	strictFlag(cmd, &o.Strict)
	return cmd
}

// backReport is what groups --back tells, in the form of its JSON.
type backReport struct {
	File   string             `json:"file"`
	Groups []daemon.GroupBack `json:"groups"`
}

func runGroupsBack(cmd *cobra.Command, g *globals, o groupsOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	log, flush := g.quietLog()
	told, err := daemon.Back(cmd.Context(), dep, daemon.BackOptions{Flow: o.Flow, Groups: o.Groups, Apply: o.Apply, Rewind: o.Rewind}, log)
	flush()
	if err != nil {
		return exit(exitFile, err)
	}
	if g.Output == "json" {
		err = g.writeJSON(backReport{o.File, told})
	} else {
		_, err = fmt.Fprint(g.Out, backText(told))
	}
	if err != nil {
		return err
	}
	for _, b := range told {
		if o.Apply && !b.Applied {
			return exitSaid(exitClusters)
		}
	}
	return nil
}

func backText(told []daemon.GroupBack) string {
	if len(told) == 0 {
		return "no group stands on a copy\n"
	}
	rows := make([][]string, len(told))
	for i, b := range told {
		status := "in place"
		if !b.Applied {
			status = b.NotApplied
		}
		rows[i] = []string{
			b.Flow, b.Group, fmt.Sprintf("%s-%d", b.Topic, b.Partition), fmt.Sprint(b.Target), number(b.Back), b.Quality, number(b.Source), status,
		}
	}
	return table([]string{"FLOW", "GROUP", "PARTITION", "TARGET", "ON SOURCE", "QUALITY", "SOURCE NOW", "STATUS"}, rows)
}

// groupsReport is what groups tells, in the form of its JSON.
type groupsReport struct {
	File  string              `json:"file"`
	Flows []daemon.FlowGroups `json:"flows"`
}

func runGroups(cmd *cobra.Command, g *globals, o groupsOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	log, flush := g.quietLog()
	flows, err := daemon.Groups(cmd.Context(), dep, o.GroupsOptions, log)
	flush()
	if err != nil {
		return exit(exitFile, err)
	}
	return g.tellGroups(groupsReport{o.File, flows}, flows)
}

// tellGroups prints how groups stand, as the report or for people.
func (g *globals) tellGroups(report any, flows []daemon.FlowGroups) error {
	var err error
	if g.Output == "json" {
		err = g.writeJSON(report)
	} else {
		var b strings.Builder
		for i := range flows {
			writeFlowGroups(&b, &flows[i])
		}
		_, err = fmt.Fprint(g.Out, b.String())
	}
	if err != nil {
		return err
	}
	for _, f := range flows {
		if f.Error != "" {
			return exitSaid(exitFile)
		}
	}
	return nil
}

func writeFlowGroups(b *strings.Builder, f *daemon.FlowGroups) {
	fmt.Fprintf(b, "flow %s\n", f.Flow)
	if f.Error != "" {
		fmt.Fprintf(b, "  error: %s\n\n", f.Error)
		return
	}
	if f.NotSynced != "" {
		fmt.Fprintf(b, "  note: %s\n", f.NotSynced)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
	var rows [][]string
	for _, group := range f.Groups {
		if group.Error != "" {
			fmt.Fprintf(b, "  group %s: %s\n", group.Group, group.Error)
		}
		for _, p := range group.Partitions {
			status := "in place"
			if !p.Synced {
				status = p.NotSynced
			}
			rows = append(rows, []string{
				group.Group, fmt.Sprintf("%s-%d", p.Topic, p.Partition), fmt.Sprint(p.Position), number(p.End), number(p.Lag),
				number(p.Translated), p.Quality, number(p.Target), number(p.NotCopied), number(p.ReadTwice), status,
			})
		}
	}
	if len(rows) == 0 {
		b.WriteString("  no group is followed\n")
	} else {
		header := []string{
			"GROUP", "PARTITION", "SOURCE", "END", "LAG", "ON TARGET", "QUALITY", "TARGET NOW", "NOT COPIED", "READ TWICE", "STATUS",
		}
		b.WriteString(indent(table(header, rows)) + "\n")
	}
	skipped := make([]string, len(f.Skipped))
	for i, s := range f.Skipped {
		skipped[i] = s.Group + ": " + s.Reason
	}
	writeList(b, "not followed", skipped)
	b.WriteByte('\n')
}
