package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"heliograph/internal/config"
)

// load reads and resolves a file. Its problems are in the deployment; the error
// is about the file itself.
func load(path string, strict bool) (*config.Deployment, error) {
	dep, _, err := loadNoting(path, strict)
	return dep, err
}

// loadNoting also tells which files the references in it were read from.
func loadNoting(path string, strict bool) (dep *config.Deployment, read []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return nil, nil, exit(exitFile, fmt.Errorf("%s: %w", path, err))
	}
	dep = config.Load(config.Source{
		Name: path, Bytes: data, Strict: strict,
		ReadFile: func(name string) ([]byte, error) {
			read = append(read, name)
			return os.ReadFile(name)
		},
		ReadDir: listDir, LookupEnv: os.LookupEnv,
	})
	return dep, read, nil
}

func listDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// loadSound is load for verbs that cannot work with a file that has errors. It
// prints all problems if there is one among them.
func (g *globals) loadSound(path string, strict bool) (*config.Deployment, error) {
	dep, _, err := g.loadSoundNoting(path, strict)
	return dep, err
}

// loadSoundNoting also tells which files the references in it were read from.
func (g *globals) loadSoundNoting(path string, strict bool) (dep *config.Deployment, read []string, err error) {
	dep, read, err = loadNoting(path, strict)
	if err != nil {
		return nil, nil, err
	}
	if dep.Err() != nil {
		return nil, nil, g.tellProblems(path, dep.Problems)
	}
	return dep, read, nil
}

// tellProblems prints why a file is refused, and ends the verb.
func (g *globals) tellProblems(path string, problems config.Problems) error {
	if g.Output == "json" {
		if err := g.writeJSON(map[string]any{"file": path, "ok": false, "problems": problems}); err != nil {
			return err
		}
		return exitSaid(exitFile)
	}
	var b strings.Builder
	writeProblems(&b, problems)
	fmt.Fprintf(&b, "%s: %s; nothing was contacted\n", path, countProblems(problems))
	if _, err := fmt.Fprint(g.Err, b.String()); err != nil {
		return err
	}
	return exitSaid(exitFile)
}

// writeProblems lists problems one a line, as compilers do: file:line: severity: key: text.
func writeProblems(b *strings.Builder, problems config.Problems) {
	for _, p := range problems {
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
}

func countProblems(ps config.Problems) string {
	var parts []string
	if n := ps.Count(config.Error); n > 0 {
		parts = append(parts, plural(n, "error"))
	}
	if n := ps.Count(config.Warning); n > 0 {
		parts = append(parts, plural(n, "warning"))
	}
	if len(parts) == 0 {
		return "no problems"
	}
	return strings.Join(parts, ", ")
}
