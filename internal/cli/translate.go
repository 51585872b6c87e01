package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/daemon"
	"heliograph/internal/kafka"
)

// exitUnknown is translate's code when an offset has no answer.
const exitUnknown = 3

// translateOptions is translate's command line.
type translateOptions struct {
	File   string
	Strict bool
	daemon.TranslateOptions
	Rebuild bool
	Wait    time.Duration
}

func newTranslate(g *globals) *cobra.Command {
	var o translateOptions
	cmd := &cobra.Command{
		Use:   "translate FILE (GROUP | TOPIC:PARTITION:OFFSET [--reverse] | --rebuild) [--flow A->B]",
		Short: "Tell what offsets of the source are on the target, or the other way round",
		Long: `translate answers from the offset map that heliograph keeps on the target: where a
reader goes on there that wants this source offset next. For a group it answers for
every offset the group has committed. Where the map does not tell, both logs are
read from the nearest offset that it or the offset syncs know; where one of them
has let the range go, the offset syncs answer, with MirrorMaker's precision. With --reverse, TOPIC is a topic of
the target, and the group's offsets there are told in the source's terms.

The quality of an answer:
  exact    the record at the one offset is the record at the other
  next     the offset has no copied record; the answer is the next one that was
  before   further back than it could be: records are read again, none is missed
  unknown  no answer; the reason tells why

With --rebuild the map is made to reach back over what was copied before it was
begun, by MirrorMaker usually: both logs are matched record by record, and the
map is written. The flow must not run meanwhile; a worker that is alive is refused.

Nothing that runs is asked: the answer is as old as the flow's last position, a
few seconds. Without --rebuild it writes nothing.

Exit codes:
  0  every offset has an answer
  1  the file is bad, or a cluster could not be read
  2  the command line is bad
  3  an offset has no answer; with --rebuild: a worker is alive
`,
		Example: `  heliograph translate mm2.properties billing
  heliograph translate mm2.properties orders:0:123456
  heliograph translate mm2.properties --rebuild
  heliograph translate mm2.properties A.orders:0:120011 --reverse --output json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.Rebuild {
				return fileArg(cmd, args)
			}
			return fileAnd("GROUP or TOPIC:PARTITION:OFFSET")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if o.Rebuild {
				return runRebuild(cmd, g, o)
			}
			if err := o.parse(args[1]); err != nil {
				return err
			}
			return runTranslate(cmd, g, o)
		},
	}
	flowFlag(cmd, &o.Flow)
	cmd.Flags().BoolVar(&o.Rebuild, "rebuild", false, "make the map reach back over what was copied before it was begun")
	waitFlag(cmd, &o.Wait)
	cmd.Flags().BoolVar(&o.Reverse, "reverse", false, "from the target's offsets to the source's")
	strictFlag(cmd, &o.Strict)
	return cmd
}

// placePattern is TOPIC:PARTITION:OFFSET. Kafka allows no colon in a topic.
var placePattern = regexp.MustCompile(`^([^:]+):(\d+):(-?\d+)$`)

// parse reads what is to be translated.
func (o *translateOptions) parse(what string) error {
	m := placePattern.FindStringSubmatch(what)
	if m == nil {
		o.Group = what
		return nil
	}
	partition, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil {
		return fmt.Errorf("partition %s: too large", m[2])
	}
	if o.Offset, err = strconv.ParseInt(m[3], 10, 64); err != nil {
		return fmt.Errorf("offset %s: too large", m[3])
	}
	if o.Offset < 0 {
		return fmt.Errorf("offset %s: offsets begin at 0", m[3])
	}
	o.At = kafka.TopicPartition{Topic: m[1], Partition: int32(partition)}
	return nil
}

// translateReport is what translate tells, in the form of its JSON.
type translateReport struct {
	File    string              `json:"file"`
	Answers []daemon.Translated `json:"answers"`
}

func runTranslate(cmd *cobra.Command, g *globals, o translateOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	log, flush := g.quietLog()
	answers, err := daemon.Translate(cmd.Context(), dep, o.TranslateOptions, log)
	flush()
	if err != nil {
		return exit(exitFile, err)
	}
	return g.tellTranslated(translateReport{o.File, answers}, answers)
}

// tellTranslated prints answers, as the report or for people.
func (g *globals) tellTranslated(report any, answers []daemon.Translated) error {
	var err error
	if g.Output == "json" {
		err = g.writeJSON(report)
	} else {
		_, err = fmt.Fprint(g.Out, translateText(answers))
	}
	if err != nil {
		return err
	}
	for _, a := range answers {
		if !a.Known() {
			return exitSaid(exitUnknown)
		}
	}
	return nil
}

// rebuildReport is what translate --rebuild tells, in the form of its JSON.
type rebuildReport struct {
	File       string           `json:"file"`
	Partitions []daemon.Rebuilt `json:"partitions"`
}

func runRebuild(cmd *cobra.Command, g *globals, o translateOptions) error {
	dep, err := g.loadSound(o.File, o.Strict)
	if err != nil {
		return err
	}
	if err := g.refuseWorkers(cmd.Context(), dep, nil, o.Wait); err != nil {
		return err
	}
	log, flush := g.quietLog()
	rebuilt, err := daemon.Rebuild(cmd.Context(), dep, o.Flow, log)
	flush()
	if err != nil {
		return exit(exitFile, err)
	}
	if g.Output == "json" {
		return g.writeJSON(rebuildReport{o.File, rebuilt})
	}
	rows := make([][]string, len(rebuilt))
	for i, r := range rebuilt {
		rows[i] = []string{r.Flow, fmt.Sprintf("%s-%d", r.Topic, r.Partition), number(r.From), fmt.Sprint(r.Runs), r.Reason}
	}
	_, err = fmt.Fprint(g.Out, table([]string{"FLOW", "PARTITION", "KNOWN FROM", "RUNS", "REASON"}, rows))
	return err
}

func translateText(answers []daemon.Translated) string {
	rows := make([][]string, len(answers))
	for i, a := range answers {
		by := a.By
		if by == "" {
			by = "-"
		}
		rows[i] = []string{a.Flow, placeText(a.From), placeText(a.To), a.Quality, by, a.Reason}
	}
	return table([]string{"FLOW", "FROM", "TO", "QUALITY", "BY", "REASON"}, rows)
}

func placeText(p daemon.TranslatedPlace) string {
	if p.Offset == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s:%d:%d", p.Cluster, p.Topic, p.Partition, *p.Offset)
}
