package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/daemon"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// inspectCount is how many batches of a partition are shown by default.
const inspectCount = 20

// inspectOptions is inspect's command line.
type inspectOptions struct {
	File   string
	Strict bool
	daemon.InspectOptions
}

func newInspect(g *globals) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect FILE CLUSTER TOPIC [--partition N] [--from O] [--count N] [--hex] [--contents]",
		Short: "Show a topic's batches as they lie in the log, and what internal records mean",
		Long: `inspect shows every batch of a topic of one of the file's clusters: offsets, size,
compression, times, producer, markers. Records of MirrorMaker's and heliograph's
own topics (heartbeats, checkpoints, offset syncs, positions, the offset map, the
loss ledger) are told in words. Of other records only sizes are shown, unless
--contents asks for more; MirrorMaker's mm2-configs and mm2-status topics may hold
passwords and are never opened. It writes nothing.

Exit codes:
  0  shown
  1  the file is bad, or the topic could not be read
  2  the command line is bad
`,
		Example: `  heliograph inspect mm2.properties B mm2-offsets.A.internal
  heliograph inspect mm2.properties A orders --partition 0 --from -100
  heliograph inspect mm2.properties B A.orders --partition 0 --count 1 --hex`,
		Args: fileAnd("CLUSTER", "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File, o.Cluster, o.Topic = args[0], mirror.ClusterAlias(args[1]), args[2]
			o.FromSet = cmd.Flags().Changed("from")
			if o.Count < 0 {
				return fmt.Errorf("--count %d: want a number of batches, or 0 for all", o.Count)
			}
			return runInspect(cmd, g, o)
		},
	}
	f := cmd.Flags()
	f.Int32Var(&o.Partition, "partition", -1, "only this partition (default: all)")
	f.Int64Var(&o.From, "from", 0, "the first offset; a negative one counts back from the end (default: the log's start)")
	f.IntVar(&o.Count, "count", inspectCount, "at most so many batches of each partition; 0 for all")
	f.BoolVar(&o.Hex, "hex", false, "show the bytes too, explained field by field")
	f.BoolVar(&o.Contents, "contents", false, "show what users' records hold")
	strictFlag(cmd, &o.Strict)
	return cmd
}

// inspectReport is what inspect tells, in the form of its JSON.
type inspectReport struct {
	File    string                   `json:"file"`
	Cluster mirror.ClusterAlias      `json:"cluster"`
	Topic   string                   `json:"topic"`
	Error   string                   `json:"error,omitempty"`
	Batches []*daemon.InspectedBatch `json:"batches"`
}

func runInspect(cmd *cobra.Command, g *globals, o inspectOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	log, flush := g.quietLog()
	defer flush()
	r := inspectReport{File: o.File, Cluster: o.Cluster, Topic: o.Topic, Batches: []*daemon.InspectedBatch{}}
	shown := 0
	err = daemon.Inspect(cmd.Context(), dep, o.InspectOptions, log, func(b *daemon.InspectedBatch) error {
		shown++
		if g.Output == "json" {
			r.Batches = append(r.Batches, b)
			return nil
		}
		_, err := fmt.Fprint(g.Out, batchText(o.Topic, b))
		return err
	})
	if g.Output == "json" {
		if err != nil {
			r.Error = err.Error()
		}
		if err := g.writeJSON(r); err != nil {
			return err
		}
		if err != nil {
			return exitSaid(exitFile)
		}
		return nil
	}
	if err != nil {
		return exit(exitFile, err)
	}
	if shown == 0 {
		_, err = fmt.Fprintln(g.Out, "no records")
	}
	return err
}

func batchText(topic string, b *daemon.InspectedBatch) string {
	var out strings.Builder
	span := fmt.Sprintf("offset %d", b.BaseOffset)
	if b.LastOffset > b.BaseOffset {
		span = fmt.Sprintf("offsets %d to %d", b.BaseOffset, b.LastOffset)
	}
	parts := []string{span}
	if b.Marker != "" {
		parts = append(parts, b.Marker+" marker")
	} else {
		parts = append(parts, plural(int(b.Count), "record"), b.Codec)
	}
	parts = append(parts, fmt.Sprintf("%d bytes", b.Bytes), b.TimestampType+" "+timeText(b.MaxTimestamp))
	if b.LeaderEpoch >= 0 {
		parts = append(parts, fmt.Sprintf("leader epoch %d", b.LeaderEpoch))
	}
	if b.ProducerID >= 0 {
		parts = append(parts, fmt.Sprintf("producer %d epoch %d", b.ProducerID, b.ProducerEpoch))
	}
	if b.BaseSequence >= 0 {
		parts = append(parts, fmt.Sprintf("sequence %d", b.BaseSequence))
	}
	if b.Transactional && b.Marker == "" {
		parts = append(parts, "transactional")
	}
	if b.DeleteHorizon {
		parts = append(parts, "delete horizon")
	}
	if b.Magic < 2 {
		parts = append(parts, fmt.Sprintf("message format %d", b.Magic))
	}
	fmt.Fprintf(&out, "%s-%d  %s\n", topic, b.Partition, strings.Join(parts, ", "))
	if b.Annotated != "" {
		out.WriteString(indent(b.Annotated) + "\n")
	}
	if b.Error != "" {
		fmt.Fprintf(&out, "  cannot be read: %s\n", b.Error)
	}
	for i := range b.Entries {
		out.WriteString(recordText(&b.Entries[i]))
	}
	return out.String()
}

func recordText(r *daemon.InspectedRecord) string {
	head := fmt.Sprintf("  %d  %s  ", r.Offset, timeText(r.Timestamp))
	if r.Meaning != "" {
		return head + r.Meaning + "\n"
	}
	if c := r.Contents; c != nil {
		text := []string{"key " + quoted(c.Key), "value " + quoted(c.Value)}
		for _, h := range c.Headers {
			text = append(text, "header "+h)
		}
		return head + strings.Join(text, "  ") + "\n"
	}
	text := "key " + bytesText(r.KeyBytes) + ", value " + bytesText(r.ValueBytes)
	if r.Headers > 0 {
		text += ", " + plural(r.Headers, "header")
	}
	return head + text + "\n"
}

func quoted(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *s)
}

func bytesText(n int) string {
	if n < 0 {
		return "null"
	}
	return plural(n, "byte")
}

func timeText(ms int64) string {
	if ms == kafka.TimestampNone {
		return "no time"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
