package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
)

// planOptions is plan's command line.
type planOptions struct {
	File     string
	Clusters []string
	Strict   bool
}

func newPlan(g *globals) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Tell what would be created and changed, without doing it",
		Long: `plan reaches the clusters of a file and tells what run would do now: the exact
name of every copy, what would be created and changed, and for every copy that
exists where each of its partitions would go on. It writes nothing.

` + exitHelp,
		Example: `  heliograph plan mm2.properties
  heliograph plan mm2.properties --clusters B
  heliograph plan mm2.properties --output json`,
		Args: fileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			return runPlan(cmd, g, o)
		},
	}
	strictFlag(cmd, &o.Strict)
	clustersFlag(cmd, &o.Clusters)
	return cmd
}

func runPlan(cmd *cobra.Command, g *globals, o planOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	into, err := targets(dep, o.Clusters)
	if err != nil {
		return err
	}
	log, flush := g.quietLog()
	p, err := daemon.Foresee(cmd.Context(), dep, into, log)
	flush()
	if err != nil {
		return exit(exitFile, err)
	}
	if g.Output == "json" {
		err = g.writeJSON(p)
	} else {
		_, err = fmt.Fprint(g.Out, planText(dep, p))
	}
	if err != nil {
		return err
	}
	for _, f := range p.Flows {
		if f.Error != "" || len(f.Unknown) > 0 {
			return exitSaid(exitClusters)
		}
	}
	return nil
}

func planText(dep *config.Deployment, p *daemon.Preview) string {
	var b strings.Builder
	for i := range p.Flows {
		writePlanFlow(&b, dep, &p.Flows[i])
	}
	b.WriteString("nothing was written\n")
	return b.String()
}

func writePlanFlow(b *strings.Builder, dep *config.Deployment, f *daemon.FlowPreview) {
	fmt.Fprintf(b, "flow %s\n", f.Flow)
	if f.Enabled {
		fmt.Fprintf(b, "  reads from %s\n", clusterText(dep, f.Source))
	}
	fmt.Fprintf(b, "  writes to %s\n", clusterText(dep, f.Target))
	if f.Error != "" {
		fmt.Fprintf(b, "  error: %s\n\n", f.Error)
		return
	}
	if f.Enabled {
		fmt.Fprintf(b, "  copies %d of %s\n", len(f.Topics), plural(f.Total, "topic"))
		fmt.Fprintf(b, "  looks for new topics %s, for new groups %s\n", every(f.TopicsEvery), every(f.GroupsEvery))
		if len(f.Topics) == 0 && f.Total > 0 {
			b.WriteString("  warning: the filter selects no topic that exists now\n")
		}
	} else {
		b.WriteString("  copies nothing, writes heartbeats only\n")
	}
	for _, t := range f.Topics {
		writePlanTopic(b, t)
	}
	writeList(b, "would be created", append(append([]string{}, f.Creates...), f.Books...))
	writeList(b, "would be changed", f.Changes)
	writeList(b, "ACLs", f.ACLs)
	writeList(b, "needs a person", f.Parked)
	writeList(b, "consumer groups followed", f.Groups)
	skipped := make([]string, len(f.Skipped))
	for i, s := range f.Skipped {
		skipped[i] = s.Topic + ": " + s.Reason
	}
	writeList(b, "not copied", skipped)
	writeList(b, "could not be learnt", f.Unknown)
	b.WriteByte('\n')
}

// every says how often a job runs.
func every(interval time.Duration) string {
	if interval <= 0 {
		return "at the start only"
	}
	return "every " + exactDuration(interval)
}

func writePlanTopic(b *strings.Builder, t daemon.TopicPreview) {
	fmt.Fprintf(b, "    %s -> %s  %s", t.Source, t.Remote, plural(int(t.Partitions), "partition"))
	if !t.Exists {
		b.WriteString(", new\n")
		return
	}
	var held int64
	for _, p := range t.Places {
		held += p.Records
	}
	if held == 0 {
		b.WriteString(", the copy exists and is empty\n")
	} else {
		fmt.Fprintf(b, ", the copy exists and is not empty (%s)\n", plural(int(held), "offset"))
	}
	for _, p := range t.Places {
		fmt.Fprintf(b, "      partition %d: %s\n", p.Partition, p.Text)
	}
}

func writeList(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "  %s\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "    %s\n", l)
	}
}

func clusterText(dep *config.Deployment, c daemon.ClusterSurvey) string {
	text := fmt.Sprintf("%s: %s", c.Alias, strings.Join(dep.Clusters[c.Alias].BootstrapServers, ", "))
	if c.Error == "" {
		text += fmt.Sprintf(" (cluster id %s, Kafka %s, %s)", c.ID, c.Version, plural(c.Brokers, "broker"))
	}
	return text
}
