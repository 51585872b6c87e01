package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/verify"
)

// VerifyOptions say which copies are compared with their sources, and how.
type VerifyOptions struct {
	// Flow is the one flow to verify, "A->B"; empty means all that copy topics.
	Flow string
	// Topics are patterns of source topics; none means all that are copied.
	Topics []string
	// Wait is how long a target may make no progress before what it lacks counts
	// as missing; zero does not wait.
	Wait           time.Duration
	BytesPerSecond int64
	ShowRecords    bool
	// Canary compares MirrorMaker's copies with those of a canary beside it.
	Canary bool
	// Begin is told what a flow's verification is going to read, Watch how far it is.
	Begin func(flow mirror.FlowID, e verify.Estimate)
	Watch func(flow mirror.FlowID, p verify.Progress)
}

// Verify compares every copy with its source and reports flow by flow. It writes
// nothing to any cluster. The error says why there is no report.
func Verify(ctx context.Context, dep *config.Deployment, o VerifyOptions, log *slog.Logger) ([]*verify.Report, error) {
	topics, err := mirror.CompilePatterns(o.Topics)
	if err != nil {
		return nil, fmt.Errorf("--topic: %w", err)
	}
	flows, err := copying(dep, o.Flow)
	if err != nil {
		return nil, err
	}
	var reports []*verify.Report
	for _, f := range flows {
		look := verifyFlow
		if o.Canary {
			look = verifyCanary
		}
		r, err := look(ctx, f, o, topics, log)
		if err != nil {
			return reports, fmt.Errorf("flow %s: %w", f.ID, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// copying are the flows that copy topics: all of them, or the named one.
func copying(dep *config.Deployment, name string) ([]*config.Flow, error) {
	var flows []*config.Flow
	var have []string
	for i := range dep.Flows {
		f := &dep.Flows[i]
		if !f.Enabled {
			continue
		}
		have = append(have, f.ID.String())
		if name == "" || name == f.ID.String() {
			flows = append(flows, f)
		}
	}
	switch {
	case len(have) == 0:
		return nil, errors.New("no flow of the file copies topics")
	case len(flows) == 0:
		return nil, fmt.Errorf("no flow %s copies topics: the file has %s", name, strings.Join(have, ", "))
	}
	return flows, nil
}

func verifyFlow(ctx context.Context, f *config.Flow, o VerifyOptions, topics mirror.Patterns, log *slog.Logger) (*verify.Report, error) {
	from, to := Sides(f)
	sides, err := openPair(f.ID, from, to, nil, log)
	if err != nil {
		return nil, err
	}
	defer sides.close()
	v := verification{f: f, pair: sides, log: log}
	pairs, notes, err := v.pairs(ctx, topics, len(o.Topics) > 0)
	if err != nil {
		return nil, err
	}
	vo := verify.Options{
		Flow: f.ID, Pairs: pairs, Isolation: f.Data.Isolation, StartAtLatest: f.Data.StartAtLatest,
		Wait: o.Wait, BytesPerSecond: o.BytesPerSecond, ShowRecords: o.ShowRecords, Positions: v.positions, Losses: v.losses,
	}
	if f.OffsetSyncs.Enabled {
		vo.SyncsOnSource = f.OffsetSyncs.OnSource
		other := f.ID.Source
		if vo.SyncsOnSource {
			other = f.ID.Target
		}
		vo.SyncsTopic = f.Policy.OffsetSyncsTopic(other)
	}
	o.watch(f, &vo)
	r, err := verify.Run(ctx, reader{v.source}, reader{v.target}, vo)
	if err != nil {
		return nil, err
	}
	r.Notes = append(notes, r.Notes...)
	for range notes {
		r.Verdict = verify.Worse(r.Verdict, verify.Unknown)
	}
	return r, nil
}

// watch passes on how far the verification of a flow is.
func (o *VerifyOptions) watch(f *config.Flow, vo *verify.Options) {
	if o.Begin != nil {
		vo.Begin = func(e verify.Estimate) { o.Begin(f.ID, e) }
	}
	if o.Watch != nil {
		vo.Watch = func(p verify.Progress) { o.Watch(f.ID, p) }
	}
}

// verification is one flow's, with the clients of both sides.
type verification struct {
	pair
	f   *config.Flow
	log *slog.Logger
}

// pairs are the topics to compare, and what keeps others from being compared.
func (v *verification) pairs(ctx context.Context, topics mirror.Patterns, chosen bool) ([]verify.Pair, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sources, err := v.source.Topics(ctx)
	if err != nil {
		return nil, nil, err
	}
	targets, err := v.target.Topics(ctx)
	if err != nil {
		return nil, nil, err
	}
	m := plan.Match(plan.Observed{Source: planTopics(sources), Target: planTopics(targets)}, plan.Desired{Flow: v.f.ID, Selection: v.f.Selection})
	var pairs []verify.Pair
	var names, copies, notes []string
	for _, p := range m.Pairs {
		if chosen && !topics.Match(p.Source.Name) {
			continue
		}
		names = append(names, p.Source.Name)
		pair := verify.Pair{Source: p.Source.Name, Target: p.Remote, Partitions: p.Source.Partitions}
		if p.Exists {
			pair.TargetPartitions = p.Target.Partitions
			copies = append(copies, p.Remote)
		}
		pairs = append(pairs, pair)
	}
	for _, p := range m.Parked {
		if !chosen || topics.Match(p.Topic) {
			notes = append(notes, p.String())
		}
	}
	if len(pairs) == 0 && len(notes) == 0 {
		return nil, nil, errors.New("no topic to compare: none is copied that the patterns match")
	}
	source, err := policies(ctx, v.source, names)
	if err != nil {
		return nil, nil, err
	}
	target, err := policies(ctx, v.target, copies)
	if err != nil {
		return nil, nil, err
	}
	for i := range pairs {
		policy := source[pairs[i].Source] + "," + target[pairs[i].Target]
		pairs[i].Compacted = strings.Contains(policy, "compact")
		pairs[i].Deletes = strings.Contains(policy, "delete")
	}
	return pairs, notes, nil
}

// policies are the topics' cleanup policies. A topic whose settings cannot be
// read is an error: as a sequence, a compacted one would look as if it had lost.
func policies(ctx context.Context, c *cluster.Client, topics []string) (map[string]string, error) {
	out := map[string]string{}
	if len(topics) == 0 {
		return out, nil
	}
	configs, err := c.TopicConfigs(ctx, topics...)
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		if err := configs[topic].Err; err != nil {
			return nil, err
		}
		for _, e := range configs[topic].Entries {
			if e.Name == "cleanup.policy" {
				out[topic] = e.Value
			}
		}
	}
	return out, nil
}

// positions are the first source offsets that the flow has not copied, as far as
// it has committed.
func (v *verification) positions(ctx context.Context) (map[kafka.TopicPartition]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	targets, err := v.target.Topics(ctx)
	if err != nil {
		return nil, err
	}
	fo := foresight{f: v.f, sides: pair{v.source, v.target}, log: v.log, out: &FlowPreview{}, target: targets}
	stored, err := fo.positions(ctx)
	if err != nil {
		return nil, err
	}
	next := make(map[kafka.TopicPartition]int64, len(stored))
	for tp, s := range stored {
		if s.Committed {
			next[tp] = int64(s.Last) + 1
		}
	}
	return next, nil
}

// losses are the entries of the target's loss ledger, of all flows into it.
func (v *verification) losses(ctx context.Context) ([]losses.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	targets, err := v.target.Topics(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(targets, func(t kafka.TopicDetail) bool { return t.Name == mirror.LossesTopic })
	if i < 0 {
		return nil, nil
	}
	tps := partitionsOf(mirror.LossesTopic, int32(len(targets[i].Partitions)))
	starts := v.target.ListOffsets(ctx, tps, kafka.Earliest, kafka.ReadCommitted)
	ends := v.target.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadCommitted)
	var entries []losses.Entry
	for _, tp := range tps {
		if err := errors.Join(starts[tp].Err, ends[tp].Err); err != nil {
			return entries, err
		}
		err := v.target.ReadRecords(ctx, tp, starts[tp].Offset, ends[tp].Offset, kafka.ReadCommitted, func(r kafka.Record) error {
			if e, err := losses.Decode(r); err == nil {
				entries = append(entries, e)
			}
			return nil
		})
		if err != nil {
			return entries, err
		}
	}
	return entries, nil
}

// reader is a cluster's client in the shape of verify's port.
type reader struct{ *cluster.Client }

// DialFetch opens a connection to a broker for reading.
func (r reader) DialFetch(ctx context.Context, node int32) (verify.Fetcher, error) {
	c, err := r.Client.DialFetch(ctx, node)
	if err != nil {
		return nil, err
	}
	return c, nil
}
