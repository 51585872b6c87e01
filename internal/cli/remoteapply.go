package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"heliograph/internal/client"
	"heliograph/internal/config"
)

// exitDiffers is diff's code when the file and the server differ.
const exitDiffers = 3

// diffView is what the server answers to changes.
type diffView struct {
	Resources []struct {
		Resource string `json:"resource"`
		Action   string `json:"action"`
		Settings []struct {
			Name string  `json:"name"`
			Old  *string `json:"old"`
			New  *string `json:"new"`
		} `json:"settings"`
		Effect string `json:"effect"`
		Why    string `json:"why"`
	} `json:"resources"`
	Warnings []client.ProblemField `json:"warnings"`
}

const applyLong = `The file is an mm2.properties or heliograph's YAML, read as check reads it. What
stands there for all clusters or flows is written into each of them. References to
secrets, such as ${env:PASSWORD}, are resolved here: a server does not read its own
files and variables for who comes by its API. Clusters and flows of the server that
the file does not name stay as they are.`

func newApply(g *globals) *cobra.Command {
	return g.changesVerb("apply", "Make a server's clusters and flows as a file says",
		`apply sends the clusters and flows of a file to a server, which makes all of the
changes or none, and tells what they did. Only flows that changed are touched.

`+applyLong+"\n\n"+remoteExitHelp, "/api/v1/apply", exitOK)
}

func newDiff(g *globals) *cobra.Command {
	return g.changesVerb("diff", "Tell what apply would change on a server",
		`diff tells what apply would change on a server, and what would become of the flows
that run. It changes nothing.

`+applyLong+`

Exit codes:
  0  no difference
  1  the server would refuse it, or the file is bad
  2  the command line is bad
  3  there are differences
  5  the server did not answer, or does not know the token
`, "/api/v1/plan", exitDiffers)
}

func (g *globals) changesVerb(verb, short, long, path string, differs int) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: verb + " -f FILE", Short: short, Long: long,
		Example: "  heliograph " + verb + " -f mm2.properties --server http://127.0.0.1:8083 --token-file heliograph-data/admin.token",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the file with clusters and flows")
	_ = cmd.MarkFlagRequired("file") // fails only for a flag that is not there
	return g.remoteVerb(cmd, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		changes, err := g.changesOf(file)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if _, err := c.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: path, Body: map[string]any{"changes": changes}}, &raw); err != nil {
			return err
		}
		var d diffView
		if err := json.Unmarshal(raw, &d); err != nil {
			return err
		}
		if g.Output == "json" {
			err = g.writeJSON(raw)
		} else {
			_, err = io.WriteString(g.Out, d.text())
		}
		if err == nil && len(d.Resources) > 0 && differs != exitOK {
			return exitSaid(differs)
		}
		return err
	})
}

// changesOf reads a file as the changes that make its clusters and flows.
func (g *globals) changesOf(path string) ([]map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit(exitFile, err)
	}
	parts := config.Split(config.Source{Name: path, Bytes: data, ReadFile: os.ReadFile, ReadDir: listDir, LookupEnv: os.LookupEnv})
	if parts.Problems.HasErrors() {
		return nil, g.tellProblems(path, parts.Problems)
	}
	for _, p := range parts.Problems {
		if p.Severity == config.Warning {
			fmt.Fprintln(g.Err, p)
		}
	}
	for _, key := range parts.Left {
		fmt.Fprintf(g.Err, "note: %s: not sent: it is a setting of the server's own process\n", key)
	}
	var changes []map[string]any
	for _, r := range parts.Clusters {
		changes = append(changes, map[string]any{"put_cluster": map[string]any{"alias": r.Name, "properties": r.Properties}})
	}
	for _, r := range parts.Flows {
		source, target, _ := strings.Cut(r.Name, "->")
		changes = append(changes, map[string]any{"put_flow": map[string]any{"source": source, "target": target, "enabled": !r.Off, "properties": r.Properties}})
	}
	return changes, nil
}

// text is the diff for people: a line for each resource, its settings below.
func (d *diffView) text() string {
	var b strings.Builder
	for _, r := range d.Resources {
		fmt.Fprintf(&b, "%s: %s", clean(r.Resource), clean(r.Action))
		if r.Effect != "" && r.Effect != "none" {
			fmt.Fprintf(&b, " (%s", clean(r.Effect))
			if r.Why != "" {
				fmt.Fprintf(&b, ": %s", clean(r.Why))
			}
			b.WriteString(")")
		}
		b.WriteByte('\n')
		for _, s := range r.Settings {
			if s.Old != nil {
				fmt.Fprintf(&b, "  - %s = %s\n", clean(s.Name), clean(*s.Old))
			}
			if s.New != nil {
				fmt.Fprintf(&b, "  + %s = %s\n", clean(s.Name), clean(*s.New))
			}
		}
	}
	if len(d.Resources) == 0 {
		b.WriteString("no difference\n")
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", clean(w.String()))
	}
	return b.String()
}
