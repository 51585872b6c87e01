package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/client"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
	"heliograph/internal/verify"
)

// onlyFlow is the one argument that a question takes.
func onlyFlow(cmd *cobra.Command, args []string) (mirror.FlowID, error) {
	if err := flowArg(cmd, args); err != nil {
		return mirror.FlowID{}, exit(exitUsage, err)
	}
	return flowArgument(args[0])
}

// repeated are the values of a flag that may be repeated.
func repeated(cmd *cobra.Command, flag string) []string {
	values, _ := cmd.Flags().GetStringArray(flag) // fails only for a flag that is not there
	return values
}

// eitherOf makes one pattern of several.
func eitherOf(patterns []string) string {
	if len(patterns) < 2 {
		return strings.Join(patterns, "")
	}
	return "(?:" + strings.Join(patterns, ")|(?:") + ")"
}

func remoteGroups(cmd *cobra.Command, g *globals, c *client.Client, args []string) error {
	id, err := onlyFlow(cmd, args)
	if err != nil {
		return err
	}
	query := url.Values{}
	if groups := repeated(cmd, "group"); len(groups) > 0 {
		query.Set("group", eitherOf(groups))
	}
	var raw json.RawMessage
	if _, err := c.Do(cmd.Context(), client.Request{Path: flowPath(id) + "/groups", Query: query}, &raw); err != nil {
		return err
	}
	var f daemon.FlowGroups
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	return g.tellGroups(map[string]any{"flows": []json.RawMessage{raw}}, []daemon.FlowGroups{f})
}

func remoteLosses(cmd *cobra.Command, g *globals, c *client.Client, args []string) error {
	id, err := onlyFlow(cmd, args)
	if err != nil {
		return err
	}
	query := url.Values{}
	if topics := repeated(cmd, "topic"); len(topics) > 0 {
		query.Set("topic", eitherOf(topics))
	}
	var answer page[daemon.Loss]
	if _, err := c.Do(cmd.Context(), client.Request{Path: flowPath(id) + "/losses", Query: query}, &answer); err != nil {
		return err
	}
	if answer.Items == nil {
		answer.Items = []daemon.Loss{}
	}
	return g.tellLosses(map[string]any{"losses": answer.Items}, answer.Items, nil)
}

func remoteTranslate(cmd *cobra.Command, g *globals, c *client.Client, args []string) error {
	if len(args) != 2 {
		return exit(exitUsage, errors.New("want a flow, and a GROUP or TOPIC:PARTITION:OFFSET"))
	}
	id, err := flowArgument(args[0])
	if err != nil {
		return err
	}
	var o translateOptions
	if err := o.parse(args[1]); err != nil {
		return exit(exitUsage, err)
	}
	query := url.Values{}
	if o.Group != "" {
		query.Set("group", o.Group)
	} else {
		query.Set("topic", o.At.Topic)
		query.Set("partition", fmt.Sprint(o.At.Partition))
		query.Set("offset", fmt.Sprint(o.Offset))
	}
	if reverse, _ := cmd.Flags().GetBool("reverse"); reverse { // fails only for a flag that is not there
		query.Set("reverse", "true")
	}
	var answer page[daemon.Translated]
	if _, err := c.Do(cmd.Context(), client.Request{Path: flowPath(id) + "/translate", Query: query}, &answer); err != nil {
		return err
	}
	return g.tellTranslated(map[string]any{"answers": answer.Items}, answer.Items)
}

// verificationView is a verification of the server.
type verificationView struct {
	ID       string           `json:"id"`
	Flow     string           `json:"flow"`
	State    string           `json:"state"`
	Error    string           `json:"error"`
	Estimate *verify.Estimate `json:"estimate"`
	Progress *verify.Progress `json:"progress"`
	Report   *verify.Report   `json:"report"`
}

// verifyAskEvery is how often the server is asked how far it is.
const verifyAskEvery = time.Second

func remoteVerify(cmd *cobra.Command, g *globals, c *client.Client, args []string) error {
	id, err := onlyFlow(cmd, args)
	if err != nil {
		return err
	}
	body := map[string]any{"source": id.Source, "target": id.Target}
	if topics := repeated(cmd, "topic"); len(topics) > 0 {
		body["topics"] = topics
	}
	wait, _ := cmd.Flags().GetDuration("wait")               // fails only for a flag that is not there
	if atRest, _ := cmd.Flags().GetBool("at-rest"); atRest { // as above
		wait = 0
	}
	if wait > 0 {
		body["wait_seconds"] = int64((wait + time.Second - 1) / time.Second)
	}
	if text, _ := cmd.Flags().GetString("rate"); text != "" { // as above
		rate, err := readRate(text)
		if err != nil {
			return exit(exitUsage, err)
		}
		body["bytes_per_second"] = rate
	}
	ctx, _, stop := untilSignal(cmd.Context())
	defer stop()
	var v verificationView
	if _, err := c.Do(ctx, client.Request{Method: http.MethodPost, Path: "/api/v1/verifications", Body: body}, &v); err != nil {
		return err
	}
	if err := g.awaitVerification(ctx, c, id, &v); err != nil {
		return err
	}
	return g.tellVerification(cmd, &v)
}

// awaitVerification asks until the verification has ended. An interrupt cancels it.
func (g *globals) awaitVerification(ctx context.Context, c *client.Client, id mirror.FlowID, v *verificationView) error {
	at := client.Request{Path: "/api/v1/verifications/" + client.Segment(v.ID)}
	view := g.newVerifyView()
	defer view.clear()
	begun := false
	for v.State == "running" {
		if v.Estimate != nil && !begun {
			begun = true
			view.begin(id, *v.Estimate)
		}
		if v.Progress != nil {
			view.watch(id, *v.Progress)
		}
		select {
		case <-time.After(verifyAskEvery):
		case <-ctx.Done():
			at.Method = http.MethodDelete
			_, err := c.Do(context.WithoutCancel(ctx), at, nil)
			return exit(verifyUnknown, errors.Join(errors.New("interrupted: nothing was shown"), err))
		}
		ended := verificationView{}
		if _, err := c.Do(ctx, at, &ended); err != nil {
			if ctx.Err() != nil {
				continue
			}
			return err
		}
		*v = ended
	}
	return nil
}

func (g *globals) tellVerification(cmd *cobra.Command, v *verificationView) error {
	var flows []*verify.Report
	var failed error
	if v.Report != nil {
		flows = append(flows, v.Report)
	}
	if v.State != "done" {
		failed = fmt.Errorf("the verification %s: %s", v.State, v.Error)
	}
	file, _ := cmd.Flags().GetString("report") // fails only for a flag that is not there
	return g.tellVerify(v.Flow, flows, failed, file)
}

func newLogs(g *globals) *cobra.Command {
	var follow bool
	var after uint64
	cmd := &cobra.Command{
		Use:   "logs [--follow]",
		Short: "Tell what happened on a server: changes, states, decisions",
		Long: `logs tells the events that a server remembers: who changed what, and how flows
changed their state. They are the server's last ones; its own log has more.

` + remoteExitHelp,
		Example: `  heliograph logs
  heliograph logs --follow -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until Ctrl-C")
	cmd.Flags().Uint64Var(&after, "after", 0, "only events behind this number")
	return g.remoteVerb(cmd, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		query := url.Values{}
		if after > 0 {
			query.Set("after", fmt.Sprint(after))
		}
		if follow {
			ctx, _, stop := untilSignal(cmd.Context())
			defer stop()
			return g.follow(ctx, c, client.Request{Path: "/api/v1/events/stream", Query: query}, func(e client.Event) error {
				if e.Name == "ping" {
					return nil
				}
				return g.tellEvent(e.Data)
			})
		}
		var answer page[json.RawMessage]
		if _, err := c.Do(cmd.Context(), client.Request{Path: "/api/v1/events", Query: query}, &answer); err != nil {
			return err
		}
		for _, item := range answer.Items {
			if err := g.tellEvent(item); err != nil {
				return err
			}
		}
		return nil
	})
}

// tellEvent prints an event: a line for people, or its JSON on a line.
func (g *globals) tellEvent(data []byte) error {
	if g.Output == "json" {
		_, err := fmt.Fprintf(g.Out, "%s\n", data)
		return err
	}
	var e struct {
		Seq      uint64    `json:"seq"`
		Time     time.Time `json:"time"`
		Kind     string    `json:"kind"`
		Resource string    `json:"resource"`
		Actor    string    `json:"actor"`
		Message  string    `json:"message"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	line := fmt.Sprintf("%s %d %s %s", e.Time.Format(time.RFC3339), e.Seq, e.Kind, e.Resource)
	if e.Actor != "" {
		line += " by " + e.Actor
	}
	if e.Message != "" {
		line += ": " + e.Message
	}
	_, err := fmt.Fprintln(g.Out, clean(line))
	return err
}

func newContext(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Name servers, so that verbs need no --server",
		Long: `context keeps names for servers in a file of yours (HELIOGRAPH_CONTEXTS, or
heliograph/contexts.yaml in the configuration directory). The current one is asked by verbs
that name no server. A token is never kept, only the file that holds it.`,
		Example: `  heliograph context set prod --server https://heliograph.example:8083 --token-file ~/.prod-token
  heliograph context use prod
  heliograph context list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var s client.Server
	set := &cobra.Command{
		Use: "set NAME --server URL [--token-file FILE] [--ca-file FILE]", Short: "Make or change a context; the first one becomes the current one", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, file := range []*string{&s.TokenFile, &s.CAFile} {
				if err := absolute(file); err != nil {
					return err
				}
			}
			if _, err := client.New(client.Server{URL: s.URL}, ""); err != nil {
				return err
			}
			return g.changeContexts(func(c *client.Contexts) error {
				c.Servers[args[0]] = s
				if c.Current == "" {
					c.Current = args[0]
				}
				return nil
			})
		},
	}
	set.Flags().StringVar(&s.URL, "server", "", "address of the server")
	set.Flags().StringVar(&s.TokenFile, "token-file", "", "file with the token")
	set.Flags().StringVar(&s.CAFile, "ca-file", "", "file with the certificates to trust, as PEM")
	_ = set.MarkFlagRequired("server") // fails only for a flag that is not there
	use := &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return g.changeContexts(func(c *client.Contexts) error {
				_, err := c.Get(args[0])
				c.Current = args[0]
				return err
			})
		},
	}
	forget := &cobra.Command{
		Use: "delete NAME", Short: "Forget a context", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return g.changeContexts(func(c *client.Contexts) error {
				_, err := c.Get(args[0])
				delete(c.Servers, args[0])
				if c.Current == args[0] {
					c.Current = ""
				}
				return err
			})
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List the contexts", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return g.listContexts() },
	}
	for _, c := range []*cobra.Command{use, forget} {
		c.ValidArgsFunction = g.completeContexts
	}
	cmd.AddCommand(set, use, forget, list)
	return cmd
}

// absolute makes a file's name good from every directory.
func absolute(file *string) (err error) {
	if *file != "" {
		*file, err = filepath.Abs(*file)
	}
	return err
}

func (g *globals) changeContexts(change func(*client.Contexts) error) error {
	file, err := client.ContextsFile(g.Getenv)
	if err != nil {
		return exit(exitFile, err)
	}
	c, err := client.ReadContexts(file)
	if err == nil {
		err = change(c)
	}
	if err == nil {
		err = c.Write(file)
	}
	if err != nil {
		return exit(exitFile, err)
	}
	return nil
}

func (g *globals) listContexts() error {
	c, err := g.contexts()
	if err != nil {
		return exit(exitFile, err)
	}
	if g.Output == "json" {
		return g.writeJSON(c)
	}
	var rows [][]string
	for _, name := range c.Names() {
		current := ""
		if name == c.Current {
			current = "*"
		}
		s := c.Servers[name]
		rows = append(rows, []string{current, name, s.URL, s.TokenFile})
	}
	_, err = io.WriteString(g.Out, table([]string{"CURRENT", "NAME", "SERVER", "TOKEN FILE"}, rows))
	return err
}
