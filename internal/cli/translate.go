package cli

import (
	"fmt"
	"regexp"
	"strconv"

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
}

func newTranslate(g *globals) *cobra.Command {
	var o translateOptions
	cmd := &cobra.Command{
		Use:   "translate FILE GROUP | TOPIC:PARTITION:OFFSET [--reverse] [--flow A->B]",
		Short: "Tell what offsets of the source are on the target, or the other way round",
		Long: `translate answers from the offset map that heliograph keeps on the target: where a
reader goes on there that wants this source offset next. For a group it answers for
every offset the group has committed. Where the map does not tell, the offset
syncs answer, with MirrorMaker's precision. With --reverse, TOPIC is a topic of
the target, and the group's offsets there are told in the source's terms.

The quality of an answer:
  exact    the record at the one offset is the record at the other
  next     the offset has no copied record; the answer is the next one that was
  before   further back than it could be: records are read again, none is missed
  unknown  no answer; the reason tells why

Nothing that runs is asked: the answer is as old as the flow's last position, a
few seconds. The source must be up only for its groups, and for offset syncs that
lie there. It writes nothing.

Exit codes:
  0  every offset has an answer
  1  the file is bad, or a cluster could not be read
  2  the command line is bad
  3  an offset has no answer
`,
		Example: `  heliograph translate mm2.properties billing
  heliograph translate mm2.properties orders:0:123456
  heliograph translate mm2.properties A.orders:0:120011 --reverse --output json`,
		Args: fileAnd("GROUP or TOPIC:PARTITION:OFFSET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.File = args[0]
			if err := o.parse(args[1]); err != nil {
				return err
			}
			return runTranslate(cmd, g, o)
		},
	}
	flowFlag(cmd, &o.Flow)
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
	if g.Output == "json" {
		err = g.writeJSON(translateReport{o.File, answers})
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
