package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
)

// LossesOptions say which entries of the loss ledgers are told.
type LossesOptions struct {
	Flow   string   // "A->B"; empty means all
	Topics []string // patterns of source topics; none means all
}

// Loss is one entry of a loss ledger.
type Loss struct {
	Time      time.Time `json:"time"`
	Flow      string    `json:"flow"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Remote    string    `json:"remote"`
	Kind      string    `json:"kind"`
	// From and To are source offsets, To behind the last one; equal where no record is lost.
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Records int64  `json:"records_at_most"`
	Action  string `json:"action"`
	Reason  string `json:"reason"`
}

// ReadLosses reads the ledger of every target and returns its entries by time.
// The error names the ledgers that could not be read; the entries of the others
// come with it.
func ReadLosses(ctx context.Context, dep *config.Deployment, o LossesOptions, log *slog.Logger) ([]Loss, error) {
	topics, err := mirror.CompilePatterns(o.Topics)
	if err != nil {
		return nil, fmt.Errorf("--topic: %w", err)
	}
	flows, err := copying(dep, o.Flow)
	if err != nil {
		return nil, err
	}
	var entries []losses.Entry
	var failed []error
	read := map[mirror.ClusterAlias]bool{}
	for _, f := range flows {
		if read[f.ID.Target] {
			continue // one ledger a cluster
		}
		read[f.ID.Target] = true
		some, err := readLedger(ctx, f, log)
		if err != nil {
			failed = append(failed, fmt.Errorf("the ledger on cluster %s was not read: %w", f.ID.Target, err))
		}
		entries = append(entries, some...)
	}
	slices.SortStableFunc(entries, func(a, b losses.Entry) int { return a.At.Compare(b.At) })
	found := []Loss{}
	for _, e := range entries {
		if o.Flow != "" && e.Flow.String() != o.Flow || len(o.Topics) > 0 && !topics.Match(e.Source.Topic) {
			continue
		}
		found = append(found, Loss{
			Time: e.At.UTC(), Flow: e.Flow.String(), Topic: e.Source.Topic, Partition: e.Source.Partition, Remote: e.Target.Topic,
			Kind: string(e.Kind), From: int64(e.From), To: int64(e.To), Records: e.Records, Action: string(e.Action), Reason: e.Reason,
		})
	}
	return found, errors.Join(failed...)
}

// readLedger reads the ledger on a flow's target; a cluster without one has lost nothing.
func readLedger(ctx context.Context, f *config.Flow, log *slog.Logger) ([]losses.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, to := Sides(f)
	c, err := asking(f, to, log)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	topics, err := c.Topics(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(topics, func(t kafka.TopicDetail) bool { return t.Name == mirror.LossesTopic })
	if i < 0 {
		return nil, nil
	}
	var entries []losses.Entry
	var bad []string
	for _, tp := range partitionsOf(mirror.LossesTopic, int32(len(topics[i].Partitions))) {
		err := readLog(ctx, c, tp, func(r kafka.Record) error {
			e, err := losses.Decode(r)
			if err != nil {
				bad = append(bad, err.Error())
				return nil
			}
			entries = append(entries, e)
			return nil
		})
		if err != nil {
			return entries, err
		}
	}
	if len(bad) > 0 {
		return entries, fmt.Errorf("%s not understood: %s", countNoun(len(bad), "record"), strings.Join(bad, "; "))
	}
	return entries, nil
}
