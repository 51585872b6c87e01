package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newVersion(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Tell which build this is",
		Example: "  heliograph version\n  heliograph version --output json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runVersion(g) },
	}
}

func runVersion(g *globals) error {
	b := g.build()
	if g.Output == "json" {
		return g.writeJSON(b)
	}
	commit := b.Commit
	if commit == "" {
		commit = "unknown"
	}
	if b.Modified {
		commit += " with changes"
	}
	_, err := fmt.Fprintf(g.Out, "heliograph %s\ncommit   %s\nbuilt    %s, %s\n", b.Version, commit, b.Go, b.Platform)
	return err
}
