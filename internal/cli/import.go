package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"heliograph/internal/importer"
)

// importOptions is import's command line.
type importOptions struct {
	Files       []string
	From        string
	To          string
	Overwrite   bool
	Secrets     string
	SecretsFile string
	Mount       string
}

func newImport(g *globals) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import [FILE…] [--from FORMAT] [--to FILE.yaml]",
		Short: "Convert another tool's file into heliograph's own YAML",
		Long: `import reads what another tool calls a replication and writes the same in
heliograph's YAML, which run, check and plan take. It contacts nobody.

It reads MirrorMaker's properties, Strimzi's KafkaMirrorMaker2 (v1 and v1beta2,
with other resources beside it), Kafka Connect's connectors (a configuration, a
request that creates one, or the answer of GET /connectors?expand=info; the three
connectors of a pair become one flow), Aiven's replication flows and OVHcloud's
replications. Several files are read together. Without a file, or with "-", it
reads standard input.

Each setting gets a note: kept, changed to what, dropped and why, added, or
missing. Notes stand as comments in the YAML and as a report on standard error;
with --output json the report is JSON, on standard output if --to is given.

Secrets stay in the YAML, with a note, unless --secrets says otherwise:
  env    they become ${env:NAME}; the report names the variables to set
  file   they go into a file of their own and become ${file:PATH:NAME}
They never stand in the report. Kubernetes secrets become references to files
below --mount.

Exit codes:
  0  written, and nothing is missing: heliograph check passes
  1  nothing was written
  2  the command line is bad
  3  written, but something is missing: each thing is named`,
		Example: `  heliograph import mm2.properties --to heliograph.yaml
  kubectl get kmm2 -o yaml | heliograph import --from strimzi --to heliograph.yaml
  heliograph import source.json checkpoint.json heartbeat.json --secrets env`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			return runImport(g, cmd.InOrStdin(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.From, "from", string(importer.Auto), "what the files are: "+words(importer.Formats()))
	f.StringVar(&o.To, "to", "", "write the YAML there (default: standard output)")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace files that exist")
	f.StringVar(&o.Secrets, "secrets", string(importer.SecretsInline), "what becomes of secrets: "+words(importer.SecretsModes()))
	f.StringVar(&o.SecretsFile, "secrets-file", "", "where --secrets file writes them (default: beside --to)")
	f.StringVar(&o.Mount, "mount", importer.DefaultMount, "directory below which Kubernetes secrets will be mounted, each in a directory of its name")
	for flag, values := range map[string][]string{"from": texts(importer.Formats()), "secrets": texts(importer.SecretsModes())} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	}
	return cmd
}

func texts[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

func words[T ~string](values []T) string { return strings.Join(texts(values), ", ") }

// settle checks the options against each other.
func (o *importOptions) settle() error {
	switch {
	case !slices.Contains(importer.Formats(), importer.Format(o.From)):
		return fmt.Errorf("--from %q: want one of %s", o.From, words(importer.Formats()))
	case !slices.Contains(importer.SecretsModes(), importer.SecretsMode(o.Secrets)):
		return fmt.Errorf("--secrets %q: want one of %s", o.Secrets, words(importer.SecretsModes()))
	case o.To != "" && filepath.Ext(o.To) != ".yaml" && filepath.Ext(o.To) != ".yml":
		return fmt.Errorf("--to %q: the name must end in .yaml or .yml, by which heliograph knows the form", o.To)
	}
	if len(o.Files) == 0 {
		o.Files = []string{"-"}
	}
	if importer.SecretsMode(o.Secrets) != importer.SecretsInFile {
		if o.SecretsFile != "" {
			return errors.New("--secrets-file goes with --secrets file")
		}
		return nil
	}
	if o.SecretsFile == "" {
		if o.To == "" {
			return errors.New("--secrets file needs --to or --secrets-file to know where")
		}
		o.SecretsFile = strings.TrimSuffix(o.To, filepath.Ext(o.To)) + ".secrets.properties"
	}
	path, err := filepath.Abs(o.SecretsFile)
	if err != nil {
		return err
	}
	o.SecretsFile = path
	if strings.ContainsAny(path, ":}") {
		return fmt.Errorf("%s: a reference cannot hold ':' or '}'; choose another --secrets-file", path)
	}
	return nil
}

// importReport is what import tells, in the form of its JSON.
type importReport struct {
	Format      importer.Format   `json:"format"`
	Complete    bool              `json:"complete"`
	Document    string            `json:"document,omitempty"` // where it was written
	Notes       []importer.Note   `json:"notes"`
	Secrets     []importer.Secret `json:"secrets"` // taken out of the document
	SecretsFile string            `json:"secrets_file,omitempty"`
}

func runImport(g *globals, stdin io.Reader, o importOptions) error {
	if err := o.settle(); err != nil {
		return err
	}
	files, err := readImports(o.Files, stdin)
	if err != nil {
		return exit(exitFile, err)
	}
	res, err := importer.Import(files, importer.Options{
		From: importer.Format(o.From), Secrets: importer.SecretsMode(o.Secrets), SecretsFile: o.SecretsFile, Mount: filepath.ToSlash(o.Mount),
	})
	if err != nil {
		return exit(exitFile, err)
	}
	r := importReport{Format: res.Format, Complete: res.Complete(), Document: o.To, Notes: res.Notes, Secrets: res.Secrets}
	if r.Secrets == nil {
		r.Secrets = []importer.Secret{}
	}
	if len(res.Secrets) > 0 && o.SecretsFile != "" {
		r.SecretsFile = o.SecretsFile
		if err := writeNew(o.SecretsFile, secretsFile(res.Secrets), 0o600, o.Overwrite); err != nil {
			return exit(exitFile, err)
		}
	}
	if o.To == "" {
		_, err = g.Out.Write(res.Document)
	} else {
		mode := fs.FileMode(0o644)
		if res.Inline {
			mode = 0o600
		}
		err = writeNew(o.To, res.Document, mode, o.Overwrite)
	}
	if err != nil {
		return exit(exitFile, err)
	}
	if err := g.tellImport(&r); err != nil {
		return err
	}
	if !r.Complete {
		return exitSaid(exitClusters)
	}
	return nil
}

func readImports(names []string, stdin io.Reader) ([]importer.File, error) {
	var files []importer.File
	for _, name := range names {
		f := importer.File{Name: name}
		var err error
		if name == "-" {
			f.Name = "standard input"
			f.Data, err = io.ReadAll(stdin)
		} else {
			f.Data, err = os.ReadFile(name)
		}
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// tellImport prints the report: beside the document, never in it.
func (g *globals) tellImport(r *importReport) error {
	if g.Output == "json" {
		if r.Document == "" {
			aside := *g
			aside.Out = g.Err
			return aside.writeJSON(r)
		}
		return g.writeJSON(r)
	}
	var b strings.Builder
	counts := map[importer.Verdict]int{}
	for _, n := range r.Notes {
		counts[n.Verdict]++
		b.WriteString(n.String() + "\n")
	}
	if r.SecretsFile != "" {
		fmt.Fprintf(&b, "%s written to %s\n", plural(len(r.Secrets), "secret"), r.SecretsFile)
	}
	var parts []string
	for _, v := range []importer.Verdict{importer.Kept, importer.Changed, importer.Added, importer.Dropped, importer.Missing} {
		if n := counts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	b.WriteString(strings.Join(parts, ", "))
	switch {
	case !r.Complete:
		b.WriteString("; the document is not complete until what is missing is supplied\n")
	case r.Document != "":
		fmt.Fprintf(&b, "; next: heliograph check %s\n", r.Document)
	default:
		b.WriteByte('\n')
	}
	_, err := io.WriteString(g.Err, b.String())
	return err
}

// secretsFile writes secrets in the grammar of java.util.Properties, which the
// file provider reads.
func secretsFile(secrets []importer.Secret) []byte {
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`)
	for _, s := range secrets {
		value := escape.Replace(s.Value.Reveal())
		if strings.HasPrefix(value, " ") {
			value = `\` + value
		}
		fmt.Fprintf(&b, "# %s\n%s=%s\n", s.Setting, s.Name, value)
	}
	return []byte(b.String())
}

// writeNew writes a file whole or not at all, and replaces none unless asked to.
func writeNew(path string, data []byte, mode fs.FileMode, overwrite bool) error {
	if _, err := os.Lstat(path); err == nil && !overwrite {
		return fmt.Errorf("%s: it exists; --overwrite replaces it", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".heliograph-import-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what is left of it is told by err
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
