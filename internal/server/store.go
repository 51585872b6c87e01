package server

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/store"
)

// openStore opens what keeps the APIs' changes: a directory, or a topic on a cluster.
func openStore(ctx context.Context, c *Config, data string, log *slog.Logger) (store.Store, error) {
	if c.Store != nil {
		return openTopic(ctx, c.Store, log)
	}
	return store.OpenDir(filepath.Join(data, "store"))
}

// openTopic opens a store on a cluster, by the settings that any cluster has.
func openTopic(ctx context.Context, s *Store, log *slog.Logger) (store.Store, error) {
	dep := config.Resolve(config.Source{Name: "store.cluster"}, config.Resource{Name: "store", Place: "store.cluster", Properties: s.Cluster})
	if err := dep.Err(); err != nil {
		return nil, err
	}
	client, err := daemon.OpenCluster(dep.Clusters["store"], log)
	if err != nil {
		return nil, err
	}
	return store.OpenTopic(ctx, client, cmp.Or(s.Topic, store.DefaultTopic), s.Factor, log)
}
