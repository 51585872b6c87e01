package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
	"heliograph/internal/verify"
)

// The exit codes of verify, which are its verdict.
const (
	verifyEqual     = 0
	verifyUnknown   = 1
	verifyDifferent = 3
)

// verifyWait is how long a target may make no progress by default.
const verifyWait = time.Minute

// verifyOptions is verify's command line.
type verifyOptions struct {
	File        string
	Strict      bool
	Flow        string
	Topics      []string
	Live        bool
	AtRest      bool
	Wait        time.Duration
	Rate        string
	Report      string
	ShowRecords bool
	Canary      bool
}

func newVerify(g *globals) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify FILE [--flow A->B] [--topic REGEX ...]",
		Short: "Prove that copies hold what their sources hold, record for record",
		Long: `verify reads the topics of a file's flows and their copies and compares them
record for record: key, value, headers and timestamp, in order, for the range
that both sides still have. Compacted topics are compared by the last value of
each key. It writes nothing to any cluster and needs a bounded amount of memory.

Offsets are not compared; they differ by nature. What differs is told by its
place on both sides: missing, extra, duplicate, foreign (written by somebody
else), changed and reordered records. Their contents are told only with
--show-records.

Where the sources end is fixed at the start. With --live (the default) a target
that lags is waited for, as long as it makes progress at least every --wait;
with --at-rest it is not, and a lag is an answer.

With --canary the copies that Java MirrorMaker makes are compared with those that
'run --canary' makes beside them, on the target alone.

Exit codes:
  0  equal: proved for every partition
  1  it could not be shown: the file is bad, a cluster or a log could not be read,
     no place was found that both sides hold, or the flow has not copied all yet
  2  the command line is bad
  3  different
`,
		Example: `  heliograph verify mm2.properties
  heliograph verify mm2.properties --flow 'A->B' --topic 'orders.*' --rate 50MiB
  heliograph verify mm2.properties --at-rest --report proof.json`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return runVerify(cmd, g, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Flow, "flow", "", "only this flow, written A->B (default: every flow that copies topics)")
	f.StringArrayVar(&o.Topics, "topic", nil, "only source topics whose whole name matches; may be repeated")
	f.BoolVar(&o.Live, "live", false, "wait for a target that lags (the default)")
	f.BoolVar(&o.AtRest, "at-rest", false, "do not wait: everything must have been copied")
	f.DurationVar(&o.Wait, "wait", verifyWait, "how long a target may make no progress, with --live")
	f.StringVar(&o.Rate, "rate", "", "most bytes to read per second on both sides together, such as 50MiB")
	f.StringVar(&o.Report, "report", "", "write the report as JSON to this file too")
	f.BoolVar(&o.ShowRecords, "show-records", false, "tell the contents of differing records")
	f.BoolVar(&o.Canary, "canary", false, "compare MirrorMaker's copies with those of run --canary beside it")
	cmd.MarkFlagsMutuallyExclusive("live", "at-rest")
	strictFlag(cmd, &o.Strict)
	return cmd
}

// verifyReport is what verify tells, in the form of its JSON.
type verifyReport struct {
	File    string           `json:"file"`
	Verdict verify.Verdict   `json:"verdict"`
	Error   string           `json:"error,omitempty"`
	Flows   []*verify.Report `json:"flows"`
}

func runVerify(cmd *cobra.Command, g *globals, o verifyOptions) error {
	vo := daemon.VerifyOptions{Flow: o.Flow, Topics: o.Topics, Wait: o.Wait, ShowRecords: o.ShowRecords, Canary: o.Canary}
	if o.AtRest {
		vo.Wait = 0
	}
	if o.Rate != "" {
		var err error
		if vo.BytesPerSecond, err = readRate(o.Rate); err != nil {
			return err
		}
	}
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	v := g.newVerifyView()
	vo.Begin, vo.Watch = v.begin, v.watch
	log, flush := g.quietLog()
	ctx, _, stop := untilSignal(cmd.Context())
	defer stop()
	flows, err := daemon.Verify(ctx, dep, vo, log)
	v.clear()
	flush()
	if ctx.Err() != nil {
		err = errors.New("interrupted: nothing was shown")
	}
	return g.tellVerify(o.File, flows, err, o.Report)
}

// readRate reads --rate.
func readRate(text string) (int64, error) {
	rate, err := config.ParseSize(strings.TrimSuffix(text, "/s"))
	if err != nil || rate <= 0 {
		return 0, fmt.Errorf("--rate %q: write bytes per second, such as 1048576 or 50MiB", text)
	}
	return rate, nil
}

// tellVerify reports on a file, or on a flow of a server, and ends with the verdict. A failed
// verification may have reports of what it had compared.
func (g *globals) tellVerify(name string, flows []*verify.Report, failed error, path string) error {
	r := newVerifyReport(name, flows, failed)
	if err := g.writeVerify(r, path); err != nil {
		return exit(verifyUnknown, err)
	}
	switch {
	case failed != nil && len(flows) == 0 && g.Output != "json":
		return exit(verifyUnknown, failed)
	case r.Verdict == verify.Different:
		return exitSaid(verifyDifferent)
	case r.Verdict == verify.Unknown:
		return exitSaid(verifyUnknown)
	}
	return nil
}

func newVerifyReport(file string, flows []*verify.Report, err error) *verifyReport {
	r := &verifyReport{File: file, Verdict: verify.Equal, Flows: flows}
	for _, f := range flows {
		r.Verdict = verify.Worse(r.Verdict, f.Verdict)
	}
	if err != nil {
		r.Error = err.Error()
		r.Verdict = verify.Worse(r.Verdict, verify.Unknown)
	}
	return r
}

// writeVerify prints the report and writes it to the file, if there is one.
func (g *globals) writeVerify(r *verifyReport, path string) error {
	if path != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if g.Output == "json" {
		return g.writeJSON(r)
	}
	var b strings.Builder
	for _, f := range r.Flows {
		b.WriteString(f.Text())
	}
	if r.Error != "" && len(r.Flows) > 0 {
		fmt.Fprintf(&b, "error: %s\n", r.Error)
	}
	if len(r.Flows) > 0 {
		fmt.Fprintf(&b, "%s: %s\n", r.File, r.Verdict)
	}
	_, err := fmt.Fprint(g.Out, b.String())
	return err
}

const (
	verifyDrawEvery = 200 * time.Millisecond // on a terminal
	verifyTellEvery = 10 * time.Second       // elsewhere
	verifyBarWidth  = 30
)

// verifyView tells on the error stream how far verify is: a bar that stays in
// place on a terminal, a line now and then elsewhere.
type verifyView struct {
	g      *globals
	screen *screen // nil unless on a terminal
	told   time.Time
}

func (g *globals) newVerifyView() *verifyView {
	v := &verifyView{g: g}
	if f, ok := g.Err.(*os.File); ok && telemetry.IsTerminal(g.Err) && g.Getenv("TERM") != "dumb" {
		v.screen = &screen{out: f, width: func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return w
		}}
	}
	return v
}

func (v *verifyView) begin(id mirror.FlowID, e verify.Estimate) {
	out := v.g.Err
	if v.screen != nil {
		out = v.screen // above the bar of the flow before
	}
	fmt.Fprintf(out, "flow %s: going to read %s\n", id, estimateText(e))
	v.told = time.Now()
}

func estimateText(e verify.Estimate) string {
	text := fmt.Sprintf("%s, %s: at most %s records on both sides", plural(e.Topics, "topic"), plural(e.Partitions, "partition"), humanCount(float64(e.Offsets)))
	switch {
	case e.Unsized == 0:
		return text + ", " + humanBytes(float64(e.Bytes))
	case e.Bytes > 0:
		return text + fmt.Sprintf(", %s and what %s of unknown size have", humanBytes(float64(e.Bytes)), plural(e.Unsized, "log"))
	}
	return text + ", the brokers do not tell how many bytes"
}

func (v *verifyView) watch(id mirror.FlowID, p verify.Progress) {
	now := time.Now()
	every := verifyTellEvery
	if v.screen != nil {
		every = verifyDrawEvery
	}
	if now.Sub(v.told) < every {
		return
	}
	v.told = now
	line := progressText(p, now)
	if v.screen != nil {
		v.screen.show(line)
		return
	}
	fmt.Fprintf(v.g.Err, "flow %s: %s\n", id, line)
}

func (v *verifyView) clear() {
	if v.screen != nil {
		v.screen.show("")
	}
}

// progressText is the bar with what was read and how long the rest takes.
func progressText(p verify.Progress, now time.Time) string {
	e := p.Estimate
	part := float64(p.Partitions) / float64(max(e.Partitions, 1))
	if e.Unsized == 0 && e.Bytes > 0 {
		part = min(float64(p.Bytes)/float64(e.Bytes), 1)
	}
	filled := int(part * verifyBarWidth)
	seconds := now.Sub(p.Since).Seconds()
	text := fmt.Sprintf("[%s%s] %3.0f%%  %s", strings.Repeat("=", filled), strings.Repeat(" ", verifyBarWidth-filled), 100*part, humanBytes(float64(p.Bytes)))
	if seconds > 0 {
		text += fmt.Sprintf("  %s/s", humanBytes(float64(p.Bytes)/seconds))
	}
	if left := seconds * (1 - part) / part; part > 0 && part < 1 && seconds > 1 {
		text += "  " + humanDuration(time.Duration(left*float64(time.Second))) + " left"
	}
	text += fmt.Sprintf("  %d/%d partitions", p.Partitions, e.Partitions)
	if p.Different > 0 {
		text += fmt.Sprintf(", %d different", p.Different)
	}
	if p.Waiting != "" {
		text += "  " + p.Waiting
	}
	return text
}
