package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// A person decides two things of a flow that runs: where a parked partition goes
// on, and whether a held change of a setting is made. run takes such decisions
// from its command line, for one start: each is used once, when it is asked for.

// decideEvery is how often a decision is offered until a flow takes it.
const decideEvery = time.Second

// decision is one that waits to be asked for.
type decision struct {
	said string // as on the command line
	flow mirror.FlowID

	partition kafka.TopicPartition // of the source, with choice
	choice    plan.Choice          // empty: accept the setting of the topic

	topic, setting string // of the target
}

func decisionFlags(cmd *cobra.Command, answers, accepts *[]string) {
	f := cmd.Flags()
	f.StringArrayVar(answers, "answer", nil, "[S->T:]TOPIC:PARTITION=scan|end|start|keep: where a partition goes on if it is parked and asks")
	f.StringArrayVar(accepts, "accept", nil, "[S->T:]COPY:SETTING: make a held change of a copy's setting without its wait")
}

// decisions reads what --answer and --accept were given.
func decisions(dep *config.Deployment, answers, accepts []string) ([]decision, error) {
	var all []decision
	for _, said := range answers {
		d, err := answerOf(dep, said)
		if err != nil {
			return nil, exit(exitUsage, fmt.Errorf("--answer %q: %w", said, err))
		}
		all = append(all, d)
	}
	for _, said := range accepts {
		id, rest, err := flowBefore(dep, said)
		topic, setting, ok := strings.Cut(rest, ":")
		if err == nil && (!ok || topic == "" || setting == "") {
			err = fmt.Errorf("want COPY:SETTING, for example A.orders:retention.ms")
		}
		if err != nil {
			return nil, exit(exitUsage, fmt.Errorf("--accept %q: %w", said, err))
		}
		all = append(all, decision{said: said, flow: id, topic: topic, setting: setting})
	}
	return all, nil
}

func answerOf(dep *config.Deployment, said string) (decision, error) {
	id, rest, err := flowBefore(dep, said)
	if err != nil {
		return decision{}, err
	}
	place, choice, _ := strings.Cut(rest, "=")
	topic, number, _ := strings.Cut(place, ":")
	n, err := strconv.ParseInt(number, 10, 32)
	if topic == "" || err != nil || n < 0 {
		return decision{}, fmt.Errorf("want TOPIC:PARTITION=CHOICE, for example orders:3=scan")
	}
	if !slices.Contains([]plan.Choice{plan.ChoiceScan, plan.ChoiceEnd, plan.ChoiceStart, plan.ChoiceKeep}, plan.Choice(choice)) {
		return decision{}, fmt.Errorf("%q is no choice: scan, end, start or keep", choice)
	}
	return decision{
		said: said, flow: id, partition: kafka.TopicPartition{Topic: topic, Partition: int32(n)}, choice: plan.Choice(choice),
	}, nil
}

// flowBefore splits "S->T:" off. Without it the file must have one flow that copies.
func flowBefore(dep *config.Deployment, said string) (mirror.FlowID, string, error) {
	var enabled []mirror.FlowID
	for i := range dep.Flows {
		f := &dep.Flows[i]
		if !f.Enabled {
			continue
		}
		if rest, ok := strings.CutPrefix(said, f.ID.String()+":"); ok {
			return f.ID, rest, nil
		}
		enabled = append(enabled, f.ID)
	}
	switch {
	case strings.Contains(said, "->"):
		return mirror.FlowID{}, "", fmt.Errorf("no such flow copies topics in the file: it has %v", enabled)
	case len(enabled) == 0:
		return mirror.FlowID{}, "", fmt.Errorf("no flow of the file copies topics")
	case len(enabled) > 1:
		return mirror.FlowID{}, "", fmt.Errorf("say which flow, as in %s:%s", enabled[0], said)
	}
	return enabled[0], said, nil
}

// decide offers decisions to the flows until each is taken.
func decide(ctx context.Context, log *slog.Logger, d *daemon.Daemon, waiting []decision) {
	tick := time.NewTicker(decideEvery)
	defer tick.Stop()
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			for _, w := range waiting {
				log.Info("a decision of the command line was not asked for", telemetry.KeyFlow, w.flow.String(), "decision", w.said)
			}
			return
		case <-tick.C:
		}
		waiting = slices.DeleteFunc(waiting, func(w decision) bool {
			err := w.offer(d)
			if err == nil {
				log.Info("decided as the command line says", telemetry.KeyFlow, w.flow.String(), "decision", w.said)
			}
			return err == nil // any error means: not yet, or not here
		})
	}
}

func (w *decision) offer(d *daemon.Daemon) error {
	if w.choice != "" {
		return d.Answer(w.flow, w.partition, string(w.choice))
	}
	return d.Decide(w.flow, w.topic, w.setting, true)
}
