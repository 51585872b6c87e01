package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/config"
	"heliograph/internal/server"
	"heliograph/internal/telemetry"
)

// serveFlags is serve's command line.
type serveFlags struct {
	Config     string
	Data       string
	Listen     string
	LogLevel   string
	StopWithin time.Duration
}

func newServe(g *globals) *cobra.Command {
	var o serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--config FILE|DIR] [--data DIR] [--listen ADDRESS]",
		Short: "Run flows from files and from a REST API, until SIGTERM or Ctrl-C",
		Long: `serve runs the flows of its files and those that clients create over its REST
API (/api/v1; docs/rest.md), and keeps what it was told in a directory or on a
cluster. The first start leaves an admin token in the data directory, which every
request needs: Authorization: Bearer TOKEN.

--config names the server's own file (YAML; docs/server.schema.json), a file with
clusters and flows (mm2.properties, or the native YAML form), or a directory of
such files, in which server.yaml is the server's. It is read again on SIGHUP and
when its content has changed; only the flows that a change concerns are touched.

` + exitHelp,
		Example: `  heliograph serve
  heliograph serve --config /etc/heliograph --data /var/lib/heliograph
  curl -H "Authorization: Bearer $(cat heliograph-data/admin.token)" http://127.0.0.1:8083/api/v1/flows`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd, g, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Config, "config", "", "the server's file, a file with flows, or a directory of such files")
	f.StringVar(&o.Data, "data", "", "directory of the store and the admin token (default: the configuration's, or "+server.DefaultData+")")
	f.StringVar(&o.Listen, "listen", "", "host:port of the API (default: the configuration's, or "+server.DefaultListen+")")
	f.DurationVar(&o.StopWithin, "stop-within", stopWithin, "how long a stop may take")
	logLevelFlag(cmd, &o.LogLevel)
	return cmd
}

func runServe(cmd *cobra.Command, g *globals, o serveFlags) error {
	ctx, _, stop := untilSignal(cmd.Context())
	defer stop()
	s, err := g.newSession(o.LogLevel)
	if err != nil {
		return err
	}
	defer s.flush()
	srv, err := server.Open(ctx, server.Options{
		Config: o.Config, Data: o.Data, Listen: o.Listen, Build: g.build(), Log: s.log, StopWithin: o.StopWithin,
		Outside: config.Source{ReadFile: os.ReadFile, ReadDir: listDir, LookupEnv: os.LookupEnv},
	})
	if err != nil {
		return exit(exitFile, fmt.Errorf("%w: %w", errStartup, err))
	}
	s.log.Info("the API is served", telemetry.KeyAddress, srv.Address(), "token_file", srv.TokenFile())
	err = srv.Run(ctx)
	if err == nil {
		s.log.Info("stopped")
	}
	return endOf(stopped{err: err})
}
