package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

	"heliograph/internal/config"
	"heliograph/internal/mirror"
)

// Files are those that the logins and certificates of a deployment are read from.
func Files(dep *config.Deployment) []string {
	var names []string
	for _, o := range dep.Outside() {
		if o.Kind == config.OutsideFile {
			names = append(names, o.Value)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// materials tells, by cluster, versions of those files apart.
func materials(dep *config.Deployment) map[mirror.ClusterAlias]string {
	names := map[mirror.ClusterAlias][]string{}
	for _, o := range dep.Outside() {
		if o.Kind == config.OutsideFile {
			names[o.Alias] = append(names[o.Alias], o.Value)
		}
	}
	out := map[mirror.ClusterAlias]string{}
	for alias, files := range names {
		out[alias] = Digest(files)
	}
	return out
}

// Digest tells versions of files apart by their content. A file that cannot be read has one too.
func Digest(names []string) string {
	h := sha256.New()
	for _, name := range names {
		data, err := os.ReadFile(name)
		_, _ = fmt.Fprintf(h, "%s %d %v\n", name, len(data), err)
		_, _ = h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
