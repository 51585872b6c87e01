package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heliograph/internal/telemetry"
)

// Stdio is what a command line may touch of its process.
type Stdio struct {
	Out, Err io.Writer
	Getenv   func(string) string
	Version  string // the release, set at link time; empty for other builds
}

// Main runs one command line, args[0] being the program's name, and returns the
// process's exit code. It blocks until the verb is done.
func Main(ctx context.Context, args []string, io Stdio) int {
	if isMirrorMakerName(args[0]) {
		return mirrorMakerMain(ctx, args[1:], io)
	}
	g := &globals{Stdio: io}
	root := newRoot(g)
	root.SetArgs(spreadClusters(args[1:]))
	code, say := codeOf(root.ExecuteContext(ctx))
	if say != nil {
		g.sayError(say, code)
	}
	return code
}

// globals is what every verb has: the streams and the flags of all verbs.
type globals struct {
	Stdio
	Output string // "text", "json", or "" for what suits
}

func newRoot(g *globals) *cobra.Command {
	root := &cobra.Command{
		Use:   "heliograph",
		Short: "Replicate Apache Kafka topics, settings, ACLs and consumer groups between clusters",
		Long: `heliograph replicates Apache Kafka topics, their settings, ACLs and consumer
group offsets between clusters. It reads a MirrorMaker 2 file unchanged and
leaves on the wire what MirrorMaker 2 leaves.

Called connect-mirror-maker (by a link or a copy of this program), it takes
MirrorMaker's own arguments and exits with MirrorMaker's codes.`,
		Example: `  heliograph check mm2.properties             # what the file says, without connecting
  heliograph plan mm2.properties              # what would be created and changed
  heliograph run mm2.properties               # replicate until SIGTERM or Ctrl-C
  heliograph demo                             # see it work, without any Kafka`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			switch g.Output {
			case "", "text", "json":
				return nil
			}
			return fmt.Errorf("--output %q: want text or json", g.Output)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown verb %q (heliograph --help lists them)", args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetOut(g.Out)
	root.SetErr(g.Err)
	root.PersistentFlags().StringVarP(&g.Output, "output", "o", "", "text or json (default: text; for the log of run, json unless on a terminal)")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (%s --help explains)", err, cmd.CommandPath())
	})
	root.AddCommand(newRun(g), newServe(g), newTakeover(g), newHandback(g), newCheck(g), newPlan(g), newInspect(g), newImport(g), newDemo(g), newVersion(g))
	root.AddCommand( // these ask the clusters of a file, or a server
		g.withServer(newVerify(g), remoteVerify, "flow", "strict", "show-records", "canary"),
		g.withServer(newLosses(g), remoteLosses, "flow", "strict"),
		g.withServer(newGroups(g), remoteGroups, "flow", "strict", "back", "apply", "rewind"),
		g.withServer(newTranslate(g), remoteTranslate, "flow", "strict", "rebuild"),
	)
	root.AddCommand(newFlows(g), newStatus(g), newPause(g), newResume(g), newRestart(g), newApply(g), newDiff(g), newLogs(g), newContext(g))
	return root
}

// sayError prints why a verb ended, once, in the asked form.
func (g *globals) sayError(err error, code int) {
	if g.Output == "json" {
		// An error that cannot be written has nobody to read it.
		_ = json.NewEncoder(g.Err).Encode(map[string]any{"error": err.Error(), "exit_code": code})
		return
	}
	_, _ = fmt.Fprintf(g.Err, "heliograph: %v\n", err)
}

// writeJSON prints a verb's result for machines.
func (g *globals) writeJSON(v any) error {
	e := json.NewEncoder(g.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// build describes this binary.
func (g *globals) build() telemetry.Build { return telemetry.ReadBuild(g.Version) }

// fileArg accepts exactly one argument, the file.
func fileArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 1:
		return nil
	case len(args) > 1:
		return fmt.Errorf("unexpected %q after the file (%s --help explains)", args[1], cmd.CommandPath())
	}
	if f := cmd.Flag("clusters"); f != nil && f.Changed {
		return errors.New("the file is missing: --clusters took every word after it, so put the file first")
	}
	return fmt.Errorf("the file is missing (%s --help explains)", cmd.CommandPath())
}

// spreadClusters makes --clusters greedy, as it is with MirrorMaker: all words
// up to the next option are its values. The flag library takes one.
func spreadClusters(args []string) []string {
	const flag = "--clusters"
	var out []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return append(append(out, arg), args...)
		}
		if arg != flag {
			out = append(out, arg)
			continue
		}
		words, rest := takeWords(args)
		if len(words) == 0 {
			out = append(out, arg) // the flag library says what is wrong
		}
		for _, w := range words {
			out = append(out, flag+"="+w)
		}
		args = rest
	}
	return out
}

// indent puts every line of a text two columns to the right.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}
