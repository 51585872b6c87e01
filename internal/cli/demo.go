package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/config"
	"heliograph/internal/demo"
	"heliograph/internal/flow"
)

// demoOptions is demo's command line.
type demoOptions struct {
	Seconds  int
	Rate     int
	Admin    string
	LogLevel string
}

func newDemo(g *globals) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Replicate between two embedded clusters, to see it work without Kafka",
		Long: `demo starts two embedded clusters in this process, makes traffic with consumer
groups on A, and replicates A to B with a real flow. It prints the addresses of
both clusters and the commands to look at them with any Kafka tool, and runs
until Ctrl-C. Everything is forgotten at its end.

` + exitHelp,
		Example: `  heliograph demo
  heliograph demo --seconds 20 --rate 5000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), g, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.Seconds, "seconds", 0, "end after this many seconds; 0 runs until Ctrl-C")
	f.IntVar(&o.Rate, "rate", 200, "records per second on A")
	f.StringVar(&o.Admin, "admin-address", "", "host:port of /metrics and /healthz, or off")
	logLevelFlag(cmd, &o.LogLevel)
	return cmd
}

// errDemoOver is why a demo with a time limit ends.
var errDemoOver = errors.New("the demo's time is over")

func runDemo(ctx context.Context, g *globals, o demoOptions) error {
	if o.Seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(o.Seconds)*time.Second, errDemoOver)
		defer cancel()
	}
	ctx, received, stop := untilSignal(ctx)
	defer stop()
	s, err := g.newSession(o.LogLevel)
	if err != nil {
		return err
	}
	d, err := demo.Open(ctx, demo.Options{RecordsPerSecond: o.Rate})
	if err != nil {
		return exit(exitFailed, err)
	}
	defer d.Close()
	file := d.File()
	dep := config.Load(config.Source{Name: "demo.properties", Bytes: []byte(file)})
	if err := dep.Err(); err != nil {
		return exit(exitFile, err)
	}
	if _, err := fmt.Fprint(g.Out, demoText(d)); err != nil {
		return err
	}
	s.view = demoView
	stopTraffic := d.Start(ctx)
	end := s.serve(ctx, received, dep, serveOptions{Admin: o.Admin, StopWithin: stopWithin})
	if err := stopTraffic(); err != nil {
		return exit(exitFailed, err)
	}
	if err := endOf(end); err != nil {
		return err
	}
	_, err = fmt.Fprintln(g.Out, "demo over: both clusters and their data are gone")
	return err
}

// demoText tells where the clusters are and how to look at them.
func demoText(d *demo.Demo) string {
	a, b := d.Addresses()
	var t strings.Builder
	fmt.Fprintf(&t, "two embedded clusters: A on %s with traffic, B on %s\n\n", a, b)
	fmt.Fprintf(&t, "replicated by this file:\n%s\n\n", indent(d.File()))
	fmt.Fprintf(&t, `look at both with any Kafka tool, for example:
  kafka-topics.sh --bootstrap-server %[1]s --list
  kafka-topics.sh --bootstrap-server %[2]s --list
  kafka-console-consumer.sh --bootstrap-server %[2]s --topic A.%[3]s --from-beginning --max-messages 5
  kafka-consumer-groups.sh --bootstrap-server %[1]s --describe --group %[4]s
  kafka-consumer-groups.sh --bootstrap-server %[2]s --describe --group %[4]s
  kcat -b %[2]s -t A.%[3]s -C -o beginning -c 5

Ctrl-C ends it.

`, a, b, demo.TopicOrders, demo.GroupBilling)
	return t.String()
}

// demoView is the terminal's live view: a line per topic, the groups, the progress line.
func demoView(r *reading, flows []flow.Status) string {
	type row struct {
		remote              string
		partitions          int
		source, copied, lag int64
	}
	var order []string
	rows := map[string]*row{}
	var b strings.Builder
	for i := range flows {
		f := &flows[i]
		for j := range f.Partitions {
			p := &f.Partitions[j]
			t := rows[p.Source.Topic]
			if t == nil {
				t = &row{remote: p.Target.Topic}
				rows[p.Source.Topic] = t
				order = append(order, p.Source.Topic)
			}
			t.partitions++
			t.source += int64(p.SourceEnd)
			t.copied += p.Records
			t.lag += p.LagRecords
		}
	}
	fmt.Fprintf(&b, "%-14s %-18s %10s %12s %12s %8s\n", "topic on A", "copy on B", "partitions", "end on A", "copied", "lag")
	for _, topic := range order {
		t := rows[topic]
		fmt.Fprintf(&b, "%-14s %-18s %10d %12d %12d %8d\n", topic, t.remote, t.partitions, t.source, t.copied, t.lag)
	}
	var groups []string
	for i := range flows {
		for _, g := range flows[i].Groups {
			if g.Synced == 0 {
				continue // not yet, or not followed
			}
			groups = append(groups, fmt.Sprintf("%s (%d)", g.Group, g.Synced))
		}
	}
	fmt.Fprintf(&b, "groups on B, with synced partitions: %s\n", cmp.Or(strings.Join(groups, ", "), "none yet"))
	b.WriteString(r.String())
	return b.String()
}
