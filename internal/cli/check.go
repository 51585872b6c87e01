package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/mirror"
)

// checkOptions is check's command line.
type checkOptions struct {
	File     string
	Clusters []string
	Strict   bool
	Connect  bool
	Defaults bool
}

func newCheck(g *globals) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE [--connect] [--strict]",
		Short: "Tell what a file says and what is wrong with it",
		Long: `check reads a file, resolves it as run would, and tells what it means: the
flows, every effective setting with the line that it comes from, what is wrong,
and where heliograph differs from MirrorMaker. It contacts nobody.

With --connect it reaches every cluster and tells who they are, what the targets
can do, which permissions are needed and which are refused, and which
replication factors cannot be met. It writes nothing.

` + exitHelp,
		Example: `  heliograph check mm2.properties
  heliograph check mm2.properties --connect
  heliograph check mm2.properties --strict --output json`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return runCheck(cmd, g, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Connect, "connect", false, "reach the clusters and ask them")
	f.BoolVar(&o.Defaults, "defaults", false, "list settings that are at their default too")
	strictFlag(cmd, &o.Strict)
	clustersFlag(cmd, &o.Clusters)
	return cmd
}

// checkReport is what check tells, in the form of its JSON.
type checkReport struct {
	File     string          `json:"file"`
	OK       bool            `json:"ok"`
	Problems config.Problems `json:"problems"`
	Process  *checkProcess   `json:"process,omitempty"`
	Clusters []checkCluster  `json:"clusters"`
	Flows    []checkFlow     `json:"flows"`
	Survey   *daemon.Survey  `json:"survey,omitempty"` // with --connect
}

// checkProcess is what holds for the whole process. Caps of zero are none.
type checkProcess struct {
	MemoryBytes    int64  `json:"memory_bytes"`
	BytesPerSecond int64  `json:"bytes_per_second,omitempty"`
	MetricsAddress string `json:"metrics_address"` // empty: off
}

type checkCluster struct {
	Alias            mirror.ClusterAlias `json:"alias"`
	BootstrapServers []string            `json:"bootstrap_servers"`
	Protocol         string              `json:"protocol"`
	Mechanism        string              `json:"sasl_mechanism,omitempty"`
	BytesPerSecond   int64               `json:"bytes_per_second,omitempty"`
}

type checkFlow struct {
	Flow     string         `json:"flow"`
	Enabled  bool           `json:"enabled"`
	Summary  string         `json:"summary"`
	Settings []checkSetting `json:"settings"`
	Notes    []string       `json:"notes"`
}

type checkSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"` // "file:line" or "default"
}

func runCheck(cmd *cobra.Command, g *globals, o checkOptions) error {
	dep, err := load(o.File, o.Strict)
	if err != nil {
		return err
	}
	var into []mirror.ClusterAlias
	if dep.Err() == nil {
		if into, err = targets(dep, o.Clusters); err != nil {
			return err
		}
	}
	r := newCheckReport(o.File, dep, into)
	code := exitOK
	if !r.OK {
		code = exitFile
	} else if o.Connect {
		log, flush := g.quietLog()
		r.Survey, err = daemon.Look(cmd.Context(), dep, into, log)
		flush()
		if err != nil {
			return exit(exitFile, err)
		}
		if r.Survey.Findings.HasErrors() {
			r.OK, code = false, exitClusters
		}
	}
	if g.Output == "json" {
		err = g.writeJSON(r)
	} else {
		_, err = fmt.Fprint(g.Out, r.text(o.Defaults))
	}
	if err != nil || code == exitOK {
		return err
	}
	return exitSaid(code)
}

func newCheckReport(file string, dep *config.Deployment, targets []mirror.ClusterAlias) *checkReport {
	r := &checkReport{File: file, OK: dep.Err() == nil, Problems: dep.Problems, Clusters: []checkCluster{}, Flows: []checkFlow{}}
	if r.Problems == nil {
		r.Problems = config.Problems{}
	}
	if !r.OK {
		return r // what has errors must not be relied on, so nothing of it is shown
	}
	p := dep.Process
	r.Process = &checkProcess{MemoryBytes: p.MemoryBytes, BytesPerSecond: p.BytesPerSecond, MetricsAddress: p.MetricsAddress}
	for _, alias := range dep.Aliases {
		c := dep.Clusters[alias]
		cc := checkCluster{Alias: alias, BootstrapServers: c.BootstrapServers, Protocol: string(c.Protocol), BytesPerSecond: c.BytesPerSecond}
		if c.SASL != nil {
			cc.Mechanism = c.SASL.Mechanism
		}
		r.Clusters = append(r.Clusters, cc)
	}
	flows := dep.Targeting(targets...)
	for i := range flows {
		r.Flows = append(r.Flows, newCheckFlow(&flows[i]))
	}
	return r
}

func newCheckFlow(f *config.Flow) checkFlow {
	cf := checkFlow{Flow: f.ID.String(), Enabled: f.Enabled, Summary: summary(f)}
	if f.Enabled {
		cf.Notes = notes(f)
	}
	for _, s := range f.Effective() {
		cf.Settings = append(cf.Settings, checkSetting{Key: s.Key, Value: s.Value, From: s.Origin.String()})
	}
	return cf
}

// summary says in a sentence what a flow does.
func summary(f *config.Flow) string {
	if !f.Enabled {
		return fmt.Sprintf("writes heartbeats to %s every %s, copies nothing", f.ID.Target, exactDuration(f.Heartbeats.Every.Interval))
	}
	const example = "orders"
	if remote := f.Policy.RemoteTopic(f.ID.Source, example); remote != example {
		return fmt.Sprintf("copies topics of %s to %s; %s becomes %s", f.ID.Source, f.ID.Target, example, remote)
	}
	return fmt.Sprintf("copies topics of %s to %s under the same names", f.ID.Source, f.ID.Target)
}

// notes are where heliograph differs from what MirrorMaker would make of the same flow.
func notes(f *config.Flow) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, e := range []struct {
		what string
		ours config.Every
		java string
	}{
		{"new topics", f.Topics.Refresh, "10m"},
		{"topic settings", f.Topics.SyncConfigs, "10m"},
		{"topic ACLs", f.Topics.SyncACLs, "10m"},
		{"consumer groups", f.Checkpoints.RefreshGroups, "10m"},
		{"positions", f.Positions.Commit, "1m"},
	} {
		if e.ours.On() && !e.ours.Set {
			add("%s: every %s, where MirrorMaker's default is %s", e.what, exactDuration(e.ours.Interval), e.java)
		}
	}
	if f.TasksMax.Set {
		add("tasks.max = %d is a hint: all partitions are copied at once whatever it says", f.TasksMax.Value)
	}
	if f.Topics.SyncConfigs.On() && f.Topics.HoldDeletions > 0 {
		add("a synced setting that can delete data on %s waits %s", f.ID.Target, exactDuration(f.Topics.HoldDeletions))
	}
	if f.Naming.Identity {
		add("topics keep their names: whoever else writes to them on %s mixes with the copies", f.ID.Target)
	}
	if f.OffsetSyncs.Enabled && f.OffsetSyncs.OnSource {
		add("writes to its source: topic %s on %s (offset-syncs.topic.location = target avoids it)",
			f.Policy.OffsetSyncsTopic(f.ID.Target), f.ID.Source)
	}
	for _, what := range daemon.OtherLogins(f) {
		add("not done: %s", what)
	}
	return out
}

// text is the report for people.
func (r *checkReport) text(defaults bool) string {
	var b strings.Builder
	writeProblems(&b, r.Problems)
	if len(r.Problems) > 0 {
		b.WriteByte('\n')
	}
	if len(r.Clusters) > 0 {
		b.WriteString("clusters\n")
		for _, c := range r.Clusters {
			fmt.Fprintf(&b, "  %s  %s  %s", c.Alias, strings.Join(c.BootstrapServers, ", "), c.Protocol)
			if c.Mechanism != "" {
				fmt.Fprintf(&b, " %s", c.Mechanism)
			}
			if c.BytesPerSecond > 0 {
				fmt.Fprintf(&b, ", at most %s/s", humanBytes(float64(c.BytesPerSecond)))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	if r.Process != nil {
		r.Process.write(&b)
	}
	for _, f := range r.Flows {
		f.write(&b, defaults)
	}
	if r.Survey != nil {
		writeSurvey(&b, r.Survey)
	}
	fmt.Fprintf(&b, "%s: %s", r.File, countProblems(r.Problems))
	if r.Survey != nil {
		fmt.Fprintf(&b, "; on the clusters: %s", countProblems(r.Survey.Findings))
	} else {
		b.WriteString("; nothing was contacted")
	}
	b.WriteByte('\n')
	return b.String()
}

func (p *checkProcess) write(b *strings.Builder) {
	fmt.Fprintf(b, "process\n  %s for records in flight", humanBytes(float64(p.MemoryBytes)))
	if p.BytesPerSecond > 0 {
		fmt.Fprintf(b, ", at most %s/s", humanBytes(float64(p.BytesPerSecond)))
	}
	if p.MetricsAddress == "" {
		b.WriteString(", no metrics and health\n\n")
	} else {
		fmt.Fprintf(b, ", metrics and health on %s\n\n", p.MetricsAddress)
	}
}

func (f *checkFlow) write(b *strings.Builder, defaults bool) {
	fmt.Fprintf(b, "flow %s\n  %s\n", f.Flow, f.Summary)
	if f.Enabled || defaults {
		width := 0
		shown := f.Settings[:0:0]
		for _, s := range f.Settings {
			if defaults || s.From != (config.Origin{}).String() {
				shown = append(shown, s)
				width = max(width, len(s.Key)+len(s.Value)+3)
			}
		}
		for _, s := range shown {
			fmt.Fprintf(b, "    %-*s  %s\n", min(width, 72), s.Key+" = "+s.Value, s.From)
		}
	}
	for _, n := range f.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
	b.WriteByte('\n')
}

func writeSurvey(b *strings.Builder, s *daemon.Survey) {
	b.WriteString("on the clusters\n")
	for _, c := range s.Clusters {
		if c.Error != "" {
			fmt.Fprintf(b, "  %s  not reached: %s\n", c.Alias, c.Error)
			continue
		}
		fmt.Fprintf(b, "  %s  id %s, Kafka %s, %s; as a target it fences by %s", c.Alias, c.ID, c.Version, plural(c.Brokers, "broker"), c.Fence)
		if c.TransactionProtocol > 0 {
			fmt.Fprintf(b, ", exactly-once by transaction protocol %d", c.TransactionProtocol)
		}
		b.WriteByte('\n')
	}
	if len(s.Permissions) > 0 {
		b.WriteString("permissions needed\n")
	}
	for _, p := range s.Permissions {
		answer := string(p.Answer)
		if p.Why != "" {
			answer += ": " + p.Why
		}
		fmt.Fprintf(b, "  %s  %s on %s, to %s: %s\n", p.Cluster, p.Operations, p.Resource, p.For, answer)
	}
	writeProblems(b, s.Findings)
	b.WriteByte('\n')
}
