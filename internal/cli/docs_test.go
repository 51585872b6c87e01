package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEveryVerbAndFlagIsDocumented holds docs/cli.md against the commands.
func TestEveryVerbAndFlagIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	root := newRoot(&globals{})
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if cmd != root && !strings.Contains(doc, "`"+cmd.Name()) {
			t.Errorf("docs/cli.md does not tell of the verb %s", cmd.Name())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(doc, "--"+f.Name) {
				t.Errorf("docs/cli.md does not tell of %s --%s", cmd.Name(), f.Name)
			}
		})
		if cmd != root && cmd.Example == "" {
			t.Errorf("%s has no example in its help", cmd.Name())
		}
	}
}
