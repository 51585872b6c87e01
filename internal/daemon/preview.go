package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
)

// Preview is what a deployment would do now. Nothing was written to find out.
type Preview struct {
	Flows []FlowPreview `json:"flows"`
}

// FlowPreview is what one flow would do.
type FlowPreview struct {
	Flow    string        `json:"flow"`
	Enabled bool          `json:"enabled"`
	Source  ClusterSurvey `json:"source"`
	Target  ClusterSurvey `json:"target"`
	// Error is why there is no preview: a cluster that did not answer, or the
	// same cluster on both sides.
	Error string `json:"error,omitempty"`

	// TopicsEvery and GroupsEvery are how often new ones are looked for; zero is
	// at the start only.
	TopicsEvery time.Duration `json:"topics_every_ns"`
	GroupsEvery time.Duration `json:"groups_every_ns"`

	Topics  []TopicPreview `json:"topics"`
	Total   int            `json:"total_topics"`
	Skipped []plan.Skipped `json:"skipped"`
	Parked  []string       `json:"parked"`
	// Creates, Changes, ACLs and Books are one line per action.
	Creates []string `json:"creates"`
	Changes []string `json:"changes"`
	ACLs    []string `json:"acls"`
	Books   []string `json:"bookkeeping_topics"` // to be created
	Groups  []string `json:"groups"`             // followed
	// Unknown says what could not be learnt, and why.
	Unknown []string `json:"unknown"`
}

// TopicPreview is one topic that is copied.
type TopicPreview struct {
	Source     string `json:"source"`
	Remote     string `json:"remote"`
	Partitions int32  `json:"partitions"`
	Exists     bool   `json:"exists"`
	// Places says for a copy that exists where each partition would go on.
	Places []PlacePreview `json:"places,omitempty"`
}

// PlacePreview is where one partition would start.
type PlacePreview struct {
	Partition int32  `json:"partition"`
	Kind      string `json:"kind"`
	Text      string `json:"text"`
	Records   int64  `json:"target_offsets"` // between the copy's first offset and its end
}

// Foresee computes what the flows would do. The error is about the deployment's
// own settings; what a cluster refuses is in the preview.
func Foresee(ctx context.Context, dep *config.Deployment, targets []mirror.ClusterAlias, log *slog.Logger) (*Preview, error) {
	v, err := visit(ctx, dep, targets, log)
	if err != nil {
		return nil, err
	}
	defer v.close()
	p := &Preview{}
	for i := range v.flows {
		f := &v.flows[i]
		fp := FlowPreview{
			Flow: f.ID.String(), Enabled: f.Enabled, Source: v.answers[f.ID.Source], Target: v.answers[f.ID.Target],
			TopicsEvery: f.Topics.Refresh.Interval, GroupsEvery: f.Checkpoints.RefreshGroups.Interval,
		}
		switch {
		case fp.Source.Error != "":
			fp.Error = fmt.Sprintf("cluster %s cannot be reached: %s", f.ID.Source, fp.Source.Error)
		case fp.Target.Error != "":
			fp.Error = fmt.Sprintf("cluster %s cannot be reached: %s", f.ID.Target, fp.Target.Error)
		case fp.Source.ID != "" && fp.Source.ID == fp.Target.ID:
			fp.Error = fmt.Sprintf("%s and %s are the same cluster (id %s): the flow is refused", f.ID.Source, f.ID.Target, fp.Source.ID)
		default:
			fo := &foresight{f: f, spec: specOf(f), sides: v.sides[f.ID], log: log, out: &fp}
			fo.look(ctx)
		}
		p.Flows = append(p.Flows, fp)
	}
	return p, nil
}

// foresight computes one flow's preview.
type foresight struct {
	f              *config.Flow
	spec           flow.Spec // the same that run would have
	sides          pair
	log            *slog.Logger
	out            *FlowPreview
	source, target []kafka.TopicDetail
}

func (fo *foresight) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var err error
	if fo.source, err = fo.sides.source.Topics(ctx); err != nil {
		fo.unknown("the topics of %s: %v", fo.f.ID.Source, err)
		return
	}
	if fo.target, err = fo.sides.target.Topics(ctx); err != nil {
		fo.unknown("the topics of %s: %v", fo.f.ID.Target, err)
		return
	}
	fo.books()
	if !fo.f.Enabled {
		return
	}
	fo.topics(ctx)
	fo.acls(ctx)
	fo.groups(ctx)
}

func (fo *foresight) unknown(format string, args ...any) {
	fo.out.Unknown = append(fo.out.Unknown, fmt.Sprintf(format, args...))
}

// books lists the bookkeeping topics that would be created.
func (fo *foresight) books() {
	for _, b := range fo.spec.Books() {
		have := fo.target
		if b.On == fo.f.ID.Source {
			have = fo.source
		}
		if slices.ContainsFunc(have, func(t kafka.TopicDetail) bool { return t.Name == b.Name }) {
			continue
		}
		factor := fmt.Sprintf("replication factor %d", b.ReplicationFactor)
		if b.ReplicationFactor < 0 {
			factor = "the cluster's default replication factor"
		}
		fo.out.Books = append(fo.out.Books, fmt.Sprintf("create topic %s on %s: %s, %s, cleanup.policy=compact",
			b.Name, b.On, countNoun(int(b.Partitions), "partition"), factor))
	}
}

func (fo *foresight) topics(ctx context.Context) {
	f := fo.f
	desired := fo.spec.Desired()
	m := plan.Match(plan.Observed{Source: planTopics(fo.source), Target: planTopics(fo.target)}, desired)
	fo.out.Total, fo.out.Skipped = m.Total(), m.Skipped
	fo.describe(ctx, m.Pairs)
	targets := make([]plan.Topic, 0, len(m.Pairs))
	for _, p := range m.Pairs {
		if p.Exists {
			targets = append(targets, p.Target)
		}
	}
	desired.Known = plan.Known(targets)
	for _, a := range plan.Topics(m, desired) {
		switch a.(type) {
		case plan.CreateTopic:
			fo.out.Creates = append(fo.out.Creates, a.String())
		case plan.Park:
			fo.out.Parked = append(fo.out.Parked, a.String())
		default:
			fo.out.Changes = append(fo.out.Changes, a.String())
		}
	}
	if f.Topics.SyncConfigs.On() {
		changes := plan.Configs(plan.ConfigInput{
			Flow: f.ID, Pairs: m.Pairs, Rules: desired.Configs, Inherited: plan.Inherited(targets),
			HoldFor: f.Topics.HoldDeletions, Now: time.Now(),
		})
		for _, a := range changes.Actions {
			fo.out.Changes = append(fo.out.Changes, a.String())
		}
	}
	fo.places(ctx, m.Pairs)
}

func planTopics(details []kafka.TopicDetail) []plan.Topic {
	topics := make([]plan.Topic, len(details))
	for i, d := range details {
		topics[i] = plan.Topic{
			Name: d.Name, ID: d.ID, Partitions: int32(len(d.Partitions)),
			Internal: d.Internal, Err: d.Code.Err(),
		}
	}
	return topics
}

// describe fills in the settings of both sides.
func (fo *foresight) describe(ctx context.Context, pairs []plan.Pair) {
	var sources, copies []string
	for _, p := range pairs {
		sources = append(sources, p.Source.Name)
		if p.Exists {
			copies = append(copies, p.Remote)
		}
	}
	source := fo.configs(ctx, fo.sides.source, fo.f.ID.Source, sources)
	target := fo.configs(ctx, fo.sides.target, fo.f.ID.Target, copies)
	for i := range pairs {
		p := &pairs[i]
		p.Source.Configs, p.Source.ConfigsErr = source[p.Source.Name].Entries, source[p.Source.Name].Err
		if p.Exists {
			p.Target.Configs, p.Target.ConfigsErr = target[p.Remote].Entries, target[p.Remote].Err
		}
	}
}

func (fo *foresight) configs(ctx context.Context, c *cluster.Client, on mirror.ClusterAlias, topics []string) map[string]kafka.TopicConfigs {
	if len(topics) == 0 {
		return nil
	}
	configs, err := c.TopicConfigs(ctx, topics...)
	if err != nil {
		fo.unknown("the topic settings of %s: %v", on, err)
	}
	return configs
}

func (fo *foresight) acls(ctx context.Context) {
	f := fo.f
	if !f.Topics.SyncACLs.On() {
		return
	}
	source, err := fo.sides.source.DescribeACLs(ctx)
	if err != nil {
		if kafka.CodeOf(err) != kafka.CodeSecurityDisabled {
			fo.unknown("the ACLs of %s: %v", f.ID.Source, err)
		}
		return
	}
	target, err := fo.sides.target.DescribeACLs(ctx)
	if err != nil && kafka.CodeOf(err) != kafka.CodeSecurityDisabled {
		fo.unknown("the ACLs of %s: %v", f.ID.Target, err)
	}
	for _, a := range plan.ACLs(plan.ACLInput{Flow: f.ID, Selection: f.Selection, Source: source, Target: target}) {
		fo.out.ACLs = append(fo.out.ACLs, a.String())
	}
}

func (fo *foresight) groups(ctx context.Context) {
	if !fo.f.Checkpoints.Emit.On() {
		return
	}
	groups, err := fo.sides.source.ListGroups(ctx)
	if err != nil {
		fo.unknown("the consumer groups of %s: %v", fo.f.ID.Source, err)
		return
	}
	for _, g := range groups {
		if fo.f.Groups.Accepts(g.Group) {
			fo.out.Groups = append(fo.out.Groups, g.Group)
		}
	}
	slices.Sort(fo.out.Groups)
}

// places tells for every pair where its partitions would start.
func (fo *foresight) places(ctx context.Context, pairs []plan.Pair) {
	stored, err := fo.positions(ctx)
	if err != nil {
		fo.unknown("the positions in %s: %v", fo.f.Positions.Topic, err)
	}
	var sources, copies []kafka.TopicPartition
	for _, p := range pairs {
		if p.Exists {
			sources = append(sources, partitionsOf(p.Source.Name, p.Source.Partitions)...)
			copies = append(copies, partitionsOf(p.Remote, min(p.Target.Partitions, p.Source.Partitions))...)
		}
	}
	logs := logBounds{
		start: fo.sides.source.ListOffsets(ctx, sources, kafka.Earliest, kafka.ReadUncommitted),
		end:   fo.sides.source.ListOffsets(ctx, sources, kafka.Latest, fo.f.Data.Isolation),
		// The copy counts to its last record, whoever may read it.
		copyStart: fo.sides.target.ListOffsets(ctx, copies, kafka.Earliest, kafka.ReadUncommitted),
		copyEnd:   fo.sides.target.ListOffsets(ctx, copies, kafka.Latest, kafka.ReadUncommitted),
	}
	synced := fo.synced(ctx, pairs, logs, stored)
	for _, p := range pairs {
		t := TopicPreview{Source: p.Source.Name, Remote: p.Remote, Partitions: p.Source.Partitions, Exists: p.Exists}
		if p.Exists {
			for _, tp := range partitionsOf(p.Source.Name, min(p.Source.Partitions, p.Target.Partitions)) {
				t.Places = append(t.Places, fo.placeOf(p, tp, logs, stored, synced[tp]))
			}
		}
		fo.out.Topics = append(fo.out.Topics, t)
	}
}

// synced tells of which partitions that have a copy and no position MirrorMaker's
// offset syncs tell, as a takeover asks it.
func (fo *foresight) synced(ctx context.Context, pairs []plan.Pair, logs logBounds, stored map[kafka.TopicPartition]plan.Stored) map[kafka.TopicPartition]bool {
	var tps []kafka.TopicPartition
	for _, p := range pairs {
		if !p.Exists {
			continue
		}
		for _, tp := range partitionsOf(p.Source.Name, min(p.Source.Partitions, p.Target.Partitions)) {
			_, known := stored[tp]
			if !known && logs.copyEnd[kafka.TopicPartition{Topic: p.Remote, Partition: tp.Partition}].Offset > 0 {
				tps = append(tps, tp)
			}
		}
	}
	if len(tps) == 0 || !fo.hasSyncs() {
		return nil
	}
	mapped, err := books(fo.f, fo.sides.target, fo.target, fo.log).HasRuns(ctx, tps)
	if err != nil {
		fo.unknown("the offset map of %s: %v", fo.f.ID, err)
		return nil
	}
	syncs, why := readSyncs(ctx, fo.f, fo.sides)
	if why != "" {
		fo.unknown("%s", why)
		return nil
	}
	found := map[kafka.TopicPartition]bool{}
	for _, tp := range tps {
		found[tp] = !mapped[tp] && len(syncs.Syncs(tp)) > 0
	}
	return found
}

// hasSyncs reports whether there are offset syncs to ask.
func (fo *foresight) hasSyncs() bool {
	topics, other := fo.target, fo.f.ID.Source
	if fo.f.OffsetSyncs.OnSource {
		topics, other = fo.source, fo.f.ID.Target
	}
	name := fo.f.Policy.OffsetSyncsTopic(other)
	return fo.f.OffsetSyncs.Enabled && slices.ContainsFunc(topics, func(t kafka.TopicDetail) bool { return t.Name == name })
}

type logBounds struct {
	start, end, copyStart, copyEnd map[kafka.TopicPartition]kafka.PartitionOffset
}

func (fo *foresight) placeOf(p plan.Pair, tp kafka.TopicPartition, logs logBounds, stored map[kafka.TopicPartition]plan.Stored, synced bool) PlacePreview {
	copyTP := kafka.TopicPartition{Topic: p.Remote, Partition: tp.Partition}
	out := PlacePreview{Partition: tp.Partition}
	if err := errors.Join(logs.start[tp].Err, logs.end[tp].Err, logs.copyStart[copyTP].Err, logs.copyEnd[copyTP].Err); err != nil {
		out.Kind, out.Text = "unknown", "unknown: "+err.Error()
		return out
	}
	policy := fo.spec.Losses.For(tp.Topic)
	in := plan.PlaceInput{
		Source: tp, Target: copyTP,
		SourceCluster: fo.out.Source.ID, TargetCluster: fo.out.Target.ID,
		SourceID: p.Source.ID, TargetID: p.Target.ID,
		SourceLog: plan.SourceLog{Start: mirror.UpstreamOffset(logs.start[tp].Offset), End: mirror.UpstreamOffset(logs.end[tp].Offset)},
		TargetLog: plan.TargetLog{Start: mirror.DownstreamOffset(logs.copyStart[copyTP].Offset), End: mirror.DownstreamOffset(logs.copyEnd[copyTP].Offset)},
		Synced:    synced,
		Reset:     fo.spec.Data.Reset(), Missing: policy.Missing, ParkOvertaken: policy.ParkOvertaken,
		RestartSource: policy.RestartSource, RestartTarget: policy.RestartTarget,
	}
	if s, ok := stored[tp]; ok {
		in.Stored = &s
	}
	place := plan.Place(in)
	out.Kind, out.Text = string(place.Kind), place.String()
	out.Records = int64(in.TargetLog.End - in.TargetLog.Start)
	return out
}

// positions reads every stored position of the flow, as a takeover does.
func (fo *foresight) positions(ctx context.Context) (map[kafka.TopicPartition]plan.Stored, error) {
	return books(fo.f, fo.sides.target, fo.target, fo.log).Positions(ctx)
}

func partitionsOf(topic string, n int32) []kafka.TopicPartition {
	tps := make([]kafka.TopicPartition, n)
	for i := range tps {
		tps[i] = kafka.TopicPartition{Topic: topic, Partition: int32(i)}
	}
	return tps
}
