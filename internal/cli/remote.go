package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/client"
	"heliograph/internal/mirror"
)

// exitServer is the code of verbs that ask a server which does not answer, or does
// not know the token.
const exitServer = 5

// remoteExitHelp is the table of verbs that ask a server.
const remoteExitHelp = `Exit codes:
  0  done
  1  the server refused it, or the file is bad; what is wrong is told
  2  the command line is bad
  5  the server did not answer, or does not know the token
`

// remoteFlags say which server is asked.
type remoteFlags struct {
	Server, Context, TokenFile, CAFile string
}

func (r *remoteFlags) register(g *globals, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.Server, "server", "", "address of a heliograph server (default: HELIOGRAPH_SERVER, or the context's)")
	f.StringVar(&r.Context, "context", "", "a server by its name, see heliograph context")
	f.StringVar(&r.TokenFile, "token-file", "", "file with the token (default: the context's, HELIOGRAPH_TOKEN_FILE, or the token in HELIOGRAPH_TOKEN)")
	f.StringVar(&r.CAFile, "ca-file", "", "file with the certificates to trust, as PEM (default: the system's)")
	_ = cmd.RegisterFlagCompletionFunc("context", g.completeContexts) // fails only for a flag that is not there
}

// completeContexts completes the name of a context.
func (g *globals) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := g.contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.Names(), cobra.ShellCompDirectiveNoFileComp
}

// given says whether the command line asks for a server.
func (r *remoteFlags) given() bool { return r.Server != "" || r.Context != "" }

func (g *globals) contexts() (*client.Contexts, error) {
	file, err := client.ContextsFile(g.Getenv)
	if err != nil {
		return nil, err
	}
	return client.ReadContexts(file)
}

// server finds out whom to ask: the command line, then the environment, then the current context.
func (g *globals) server(r *remoteFlags) (client.Server, error) {
	if r.Server != "" && r.Context != "" {
		return client.Server{}, errors.New("--server and --context name two servers")
	}
	var s client.Server
	switch named := g.Getenv("HELIOGRAPH_SERVER"); {
	case r.Server != "":
		s.URL = r.Server
	case r.Context == "" && named != "":
		s.URL = named
	default:
		c, err := g.contexts()
		if err != nil {
			return s, err
		}
		name := r.Context
		if name == "" {
			name = c.Current
		}
		if name == "" {
			return s, errors.New("no server: give --server URL, set HELIOGRAPH_SERVER, or make a context with heliograph context set")
		}
		if s, err = c.Get(name); err != nil {
			return s, err
		}
	}
	// A context's token is for its server; one of the environment may be for another.
	s.TokenFile = cmp.Or(r.TokenFile, s.TokenFile, g.Getenv("HELIOGRAPH_TOKEN_FILE"))
	if r.CAFile != "" {
		s.CAFile = r.CAFile
	}
	return s.WithToken(g.Getenv("HELIOGRAPH_TOKEN")), nil
}

// dial makes the client of a verb.
func (g *globals) dial(r *remoteFlags) (*client.Client, error) {
	s, err := g.server(r)
	if err != nil {
		return nil, err
	}
	c, err := client.New(s, "heliograph/"+g.build().Version)
	if err != nil {
		return nil, exit(exitUsage, err) // an address or a file that was named wrongly
	}
	if c.Exposed() {
		fmt.Fprintf(g.Err, "note: the token goes to %s unencrypted; use https outside of this machine\n", s.URL)
	}
	return c, nil
}

// refused gives an error of a server its exit code.
func refused(err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*client.ProblemError](err); ok && !p.Unauthorized() {
		return exit(exitFile, err)
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	return exit(exitServer, err)
}

// flowArgument reads the name of a flow.
func flowArgument(name string) (mirror.FlowID, error) {
	source, target, ok := strings.Cut(name, "->")
	source, target = strings.TrimSpace(source), strings.TrimSpace(target)
	if !ok || source == "" || target == "" {
		return mirror.FlowID{}, exit(exitUsage, fmt.Errorf("%q is no flow: write 'A->B'", name))
	}
	return mirror.FlowID{Source: mirror.ClusterAlias(source), Target: mirror.ClusterAlias(target)}, nil
}

// flowPath is where the API has a flow.
func flowPath(id mirror.FlowID) string {
	return "/api/v1/flows/" + client.Segment(string(id.Source)) + "/" + client.Segment(string(id.Target))
}

// page is what lists answer.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// all reads every page of a list.
func all[T any](ctx context.Context, c *client.Client, path string, query url.Values) ([]T, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", "1000")
	items := []T{}
	for {
		var p page[T]
		if _, err := c.Do(ctx, client.Request{Path: path, Query: query}, &p); err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.Next == "" || len(p.Items) == 0 {
			return items, nil
		}
		query.Set("after", p.Next)
	}
}

// completeFlows completes the name of a flow, the first argument, from the server.
func (g *globals) completeFlows(r *remoteFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, g, r, "/api/v1/flows", func(f flowView) string { return f.id().String() }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeWithin bounds what a server may take to complete a word.
const completeWithin = 3 * time.Second

// names are those of a list's items; where no server answers there are no completions.
func names[T any](cmd *cobra.Command, g *globals, r *remoteFlags, path string, name func(T) string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	c, err := g.dial(r)
	if err != nil {
		return nil
	}
	items, err := all[T](ctx, c, path, nil)
	if err != nil {
		return nil
	}
	var out []string
	for _, item := range items {
		out = append(out, name(item))
	}
	return out
}

// topicView is what completions read of a flow's topic.
type topicView struct {
	Source string `json:"source"`
}

// withServer lets a verb that takes a file ask a server instead: with --server or
// --context the name of a flow takes the file's place.
func (g *globals) withServer(cmd *cobra.Command, remote func(*cobra.Command, *globals, *client.Client, []string) error, fileOnly ...string) *cobra.Command {
	var r remoteFlags
	r.register(g, cmd)
	cmd.Use = strings.Replace(cmd.Use, "FILE", "(FILE | FLOW --server URL)", 1)
	cmd.Long = strings.TrimRight(cmd.Long, "\n") + `
  5  with a server: it did not answer, or does not know the token

With --server or --context a heliograph server is asked, and the flow's name takes
the file's place.
`
	argsOfFile, runOfFile := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !r.given() {
			return argsOfFile(cmd, args)
		}
		if len(args) == 0 {
			return fmt.Errorf("the flow is missing: with --server its name takes the file's place (%s --help explains)", cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !r.given() {
			return runOfFile(cmd, args)
		}
		for _, flag := range fileOnly {
			if f := cmd.Flag(flag); f != nil && f.Changed {
				return fmt.Errorf("--%s goes with a file, not with a server", flag)
			}
		}
		c, err := g.dial(&r)
		if err != nil {
			return err
		}
		return refused(remote(cmd, g, c, args))
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if !r.given() {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return g.completeFlows(&r)(cmd, args, prefix)
	}
	if cmd.Flag("topic") != nil {
		_ = cmd.RegisterFlagCompletionFunc("topic", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) { // as above
			if !r.given() || len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			id, err := flowArgument(args[0])
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(cmd, g, &r, flowPath(id)+"/topics", func(t topicView) string { return t.Source }), cobra.ShellCompDirectiveNoFileComp
		})
	}
	return cmd
}
