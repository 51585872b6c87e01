package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/client"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

// exitNotWell is status's code when a flow does not simply run.
const exitNotWell = 3

// flowView is what the verbs read of a flow; --output json passes everything on.
type flowView struct {
	Source  string `json:"source"`
	Target  string `json:"target"`
	Enabled bool   `json:"enabled"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	File    string `json:"file"`
}

func (f *flowView) id() mirror.FlowID {
	return mirror.FlowID{Source: mirror.ClusterAlias(f.Source), Target: mirror.ClusterAlias(f.Target)}
}

// remoteVerb is a verb that always asks a server.
func (g *globals) remoteVerb(cmd *cobra.Command, run func(cmd *cobra.Command, c *client.Client, args []string) error) *cobra.Command {
	r := &remoteFlags{}
	r.register(g, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := g.dial(r)
		if err != nil {
			return err
		}
		return refused(run(cmd, c, args))
	}
	if strings.Contains(cmd.Use, "FLOW") {
		cmd.ValidArgsFunction = g.completeFlows(r)
	}
	return cmd
}

// passOn prints what the server answered, untouched.
func (g *globals) passOn(items []json.RawMessage) error {
	return g.writeJSON(map[string]any{"items": items})
}

func decodeAll[T any](items []json.RawMessage) ([]T, error) {
	out := make([]T, len(items))
	for i, item := range items {
		if err := json.Unmarshal(item, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newFlows(g *globals) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use:   "flows [--cluster ALIAS]",
		Short: "List the flows of a server",
		Long:  "flows lists what a server runs, with the state of each flow.\n\n" + remoteExitHelp,
		Example: `  heliograph flows --server http://127.0.0.1:8083 --token-file heliograph-data/admin.token
  heliograph flows --cluster A -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only flows from or to this cluster")
	return g.remoteVerb(cmd, func(cmd *cobra.Command, c *client.Client, _ []string) error {
		query := url.Values{}
		if of != "" {
			query.Set("cluster", of)
		}
		items, err := all[json.RawMessage](cmd.Context(), c, "/api/v1/flows", query)
		if err != nil {
			return err
		}
		if g.Output == "json" {
			return g.passOn(items)
		}
		flows, err := decodeAll[flowView](items)
		if err != nil {
			return err
		}
		var rows [][]string
		for i := range flows {
			f := &flows[i]
			from := f.File
			if from == "" {
				from = "api"
			}
			rows = append(rows, []string{f.id().String(), f.State, from, clean(f.Reason)})
		}
		_, err = io.WriteString(g.Out, table([]string{"FLOW", "STATE", "FROM", "REASON"}, rows))
		return err
	})
}

// clean keeps a server's text from moving the cursor or breaking a table.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}

// flowAction is a verb that does one thing to one flow.
func (g *globals) flowAction(verb, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     verb + " FLOW",
		Short:   short,
		Long:    long + "\n\n" + remoteExitHelp,
		Example: "  heliograph " + verb + " 'A->B' --server http://127.0.0.1:8083 --token-file heliograph-data/admin.token",
		Args:    flowArg,
	}
	return g.remoteVerb(cmd, func(cmd *cobra.Command, c *client.Client, args []string) error {
		id, err := flowArgument(args[0])
		if err != nil {
			return err
		}
		var answer json.RawMessage
		if _, err := c.Do(cmd.Context(), client.Request{Method: http.MethodPost, Path: flowPath(id) + "/" + verb}, &answer); err != nil {
			return err
		}
		if g.Output == "json" {
			return g.writeJSON(answer)
		}
		var f flowView
		if err := json.Unmarshal(answer, &f); err != nil {
			return err
		}
		_, err = fmt.Fprintf(g.Out, "flow %s: %s\n", clean(f.id().String()), clean(f.State))
		return err
	})
}

func flowArg(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("the flow is missing: write 'A->B' (%s --help explains)", cmd.CommandPath())
	}
	return fmt.Errorf("unexpected %q after the flow (%s --help explains)", args[1], cmd.CommandPath())
}

func newPause(g *globals) *cobra.Command {
	return g.flowAction("pause", "Stop a flow of a server; it keeps its place",
		"pause stops a flow cleanly. It keeps its place, over restarts of the server too, until resume.")
}

func newResume(g *globals) *cobra.Command {
	return g.flowAction("resume", "Start a paused flow of a server where it stopped", "resume starts a paused flow where it stopped.")
}

func newRestart(g *globals) *cobra.Command {
	return g.flowAction("restart", "Stop a flow of a server and start it again where it was", "restart stops a flow cleanly and starts it again where it was. Other flows are not touched.")
}

// statusView is what status reads of a flow's status.
type statusView struct {
	Flow       string  `json:"flow"`
	State      string  `json:"state"`
	Reason     string  `json:"reason"`
	Topics     int     `json:"topics"`
	Partitions int     `json:"partitions"`
	Parked     int     `json:"parked"`
	Records    int64   `json:"records"`
	Bytes      int64   `json:"bytes"`
	LagRecords int64   `json:"lag_records"`
	LagSeconds float64 `json:"lag_seconds"`
	Losses     int64   `json:"losses"`
}

// well says whether nobody need look at the flow.
func (s *statusView) well() bool {
	return slices.Contains([]string{"running", "starting", "paused", "disabled", "stopped"}, s.State)
}

func newStatus(g *globals) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [FLOW] [--watch]",
		Short: "Tell how the flows of a server stand",
		Long: `status tells for every flow of a server, or for one, its state and why, what it
copies and how far it is behind; for one flow also the partitions that wait for a
person. With --watch it goes on: a table that stays in place on a terminal, a line
per change of state elsewhere, a JSON line a second with --output json.

Exit codes:
  0  no flow needs anybody
  1  the server refused it
  2  the command line is bad
  3  a flow waits, is degraded or has failed
  5  the server did not answer, or does not know the token
`,
		Example: `  heliograph status --context prod
  heliograph status 'A->B' --watch`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on until Ctrl-C")
	return g.remoteVerb(cmd, func(cmd *cobra.Command, c *client.Client, args []string) error {
		var id mirror.FlowID // none: all flows
		if len(args) == 1 {
			var err error
			if id, err = flowArgument(args[0]); err != nil {
				return err
			}
		}
		switch {
		case watch:
			return g.watchStatus(cmd, c, id)
		case len(args) == 1:
			return g.flowStatus(cmd, c, id)
		}
		return g.allStatus(cmd, c)
	})
}

// allStatus tells of every flow, of those that do not run too.
func (g *globals) allStatus(cmd *cobra.Command, c *client.Client) error {
	items, err := all[json.RawMessage](cmd.Context(), c, "/api/v1/status", nil)
	if err != nil {
		return err
	}
	statuses, err := decodeAll[statusView](items)
	if err != nil {
		return err
	}
	if g.Output == "json" {
		err = g.passOn(items)
	} else {
		_, err = io.WriteString(g.Out, statusTable(statuses))
	}
	return told(err, statuses...)
}

// told is the code of status.
func told(err error, statuses ...statusView) error {
	if err == nil && slices.ContainsFunc(statuses, func(s statusView) bool { return !s.well() }) {
		return exitSaid(exitNotWell)
	}
	return err
}

func statusTable(statuses []statusView) string {
	var rows [][]string
	for _, s := range statuses {
		lag := fmt.Sprint(s.LagRecords)
		if s.LagRecords > 0 {
			lag += fmt.Sprintf(" (%s)", (time.Duration(s.LagSeconds) * time.Second).String())
		}
		rows = append(rows, []string{
			clean(s.Flow), clean(s.State), fmt.Sprint(s.Topics), fmt.Sprint(s.Partitions), fmt.Sprint(s.Parked), fmt.Sprint(s.Records), lag, fmt.Sprint(s.Losses), clean(s.Reason),
		})
	}
	return table([]string{"FLOW", "STATE", "TOPICS", "PARTITIONS", "PARKED", "RECORDS", "LAG", "LOSSES", "REASON"}, rows)
}

// heldView is a change that waits.
type heldView struct {
	Topic   string    `json:"topic"`
	Setting string    `json:"setting"`
	Wish    string    `json:"wish"`
	Until   time.Time `json:"until"`
}

// flowStatus tells of one flow, with what of it waits for a person.
func (g *globals) flowStatus(cmd *cobra.Command, c *client.Client, id mirror.FlowID) error {
	path := flowPath(id)
	var raw json.RawMessage
	if _, err := c.Do(cmd.Context(), client.Request{Path: path + "/status"}, &raw); err != nil {
		return err
	}
	parked, err := all[struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Reason    string `json:"reason"`
	}](cmd.Context(), c, path+"/partitions", url.Values{"state": {"parked"}})
	if err != nil {
		return err
	}
	var held page[heldView]
	if _, err := c.Do(cmd.Context(), client.Request{Path: path + "/held"}, &held); err != nil {
		return err
	}
	var s statusView
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if g.Output == "json" {
		return told(g.writeJSON(map[string]any{"status": raw, "parked": parked, "held": held.Items}), s)
	}
	b := statusTable([]statusView{s})
	if len(parked) > 0 {
		var rows [][]string
		for _, p := range parked {
			rows = append(rows, []string{fmt.Sprintf("%s-%d", clean(p.Topic), p.Partition), clean(p.Reason)})
		}
		b += "\n" + table([]string{"PARKED", "REASON"}, rows)
	}
	if len(held.Items) > 0 {
		var rows [][]string
		for _, h := range held.Items {
			rows = append(rows, []string{clean(h.Topic), clean(h.Setting), clean(h.Wish), h.Until.Format(time.RFC3339)})
		}
		b += "\n" + table([]string{"HELD", "SETTING", "WISH", "MADE AT"}, rows)
	}
	_, err = io.WriteString(g.Out, b)
	return told(err, s)
}

// watchStatus follows the server's stream until it is interrupted.
func (g *globals) watchStatus(cmd *cobra.Command, c *client.Client, id mirror.FlowID) error {
	ctx, _, stop := untilSignal(cmd.Context())
	defer stop()
	query := url.Values{}
	if id != (mirror.FlowID{}) {
		query.Set("source", string(id.Source))
		query.Set("target", string(id.Target))
	}
	view := watchView{g: g, terminal: telemetry.IsTerminal(g.Out) && g.Getenv("TERM") != "dumb", last: map[string]string{}}
	return g.follow(ctx, c, client.Request{Path: "/api/v1/status/stream", Query: query}, func(e client.Event) error {
		if g.Output == "json" {
			_, err := fmt.Fprintf(g.Out, "%s\n", e.Data)
			return err
		}
		var list page[statusView]
		if err := json.Unmarshal(e.Data, &list); err != nil {
			return err
		}
		return view.show(list.Items)
	})
}

// followAgain is how long a stream that broke off is left alone.
const followAgain = 2 * time.Second

// follow reads a stream until it is interrupted. One that breaks off, as when the
// server starts anew, is asked again and goes on behind the last event that has a number.
func (g *globals) follow(ctx context.Context, c *client.Client, r client.Request, f func(client.Event) error) error {
	begun, told := false, false
	for ctx.Err() == nil {
		err := c.Stream(ctx, r, func(e client.Event) error {
			if told {
				fmt.Fprintln(g.Err, "note: the server is back")
			}
			begun, told = true, false
			if e.ID != "" {
				r.Query.Set("after", e.ID)
			}
			return f(e)
		})
		if !begun || !brokeOff(err) {
			if interrupted(ctx) {
				return nil
			}
			return err
		}
		if !told {
			told = true
			fmt.Fprintln(g.Err, "note: the server ended the stream; it is asked again until it is back")
		}
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
	return nil
}

// brokeOff says whether a stream ended by itself or with the connection.
func brokeOff(err error) bool {
	_, gone := errors.AsType[*client.UnreachableError](err)
	return gone || errors.Is(err, io.EOF)
}

// interrupted says whether a person ended the verb.
func interrupted(ctx context.Context) bool { return ctx.Err() != nil }

// watchView shows statuses as they change.
type watchView struct {
	g        *globals
	terminal bool
	last     map[string]string // flow to state, elsewhere than on a terminal
}

func (v *watchView) show(statuses []statusView) error {
	if v.terminal {
		const homeAndClear = "\x1b[H\x1b[J"
		_, err := io.WriteString(v.g.Out, homeAndClear+statusTable(statuses))
		return err
	}
	for _, s := range statuses {
		now := fmt.Sprintf("%s %d %s", s.State, s.Parked, s.Reason)
		if v.last[s.Flow] == now {
			continue
		}
		v.last[s.Flow] = now
		line := fmt.Sprintf("flow %s: %s", clean(s.Flow), clean(s.State))
		if s.Reason != "" {
			line += ": " + clean(s.Reason)
		}
		if _, err := fmt.Fprintln(v.g.Out, line); err != nil {
			return err
		}
	}
	return nil
}
