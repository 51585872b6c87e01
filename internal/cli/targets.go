package cli

import (
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

// aliases are the names that --clusters was given.
func aliases(names []string) []mirror.ClusterAlias {
	out := make([]mirror.ClusterAlias, len(names))
	for i, n := range names {
		out[i] = mirror.ClusterAlias(n)
	}
	return out
}

// targets are the names that --clusters was given, all of which the file must
// have: one that is misspelt would be left out in silence.
func targets(dep *config.Deployment, names []string) ([]mirror.ClusterAlias, error) {
	if strange := strangers(dep, names); len(strange) > 0 {
		return nil, exit(exitUsage, fmt.Errorf("--clusters: %s", strangersText(dep, strange)))
	}
	return aliases(names), nil
}

// strangers are the names that are not clusters of the file.
func strangers(dep *config.Deployment, names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(dep.Aliases, mirror.ClusterAlias(n)) {
			out = append(out, n)
		}
	}
	return out
}

func strangersText(dep *config.Deployment, strange []string) string {
	known := make([]string, len(dep.Aliases))
	for i, a := range dep.Aliases {
		known[i] = string(a)
	}
	return fmt.Sprintf("no cluster %s in the file, which has %s", strings.Join(strange, ", "), strings.Join(known, ", "))
}
