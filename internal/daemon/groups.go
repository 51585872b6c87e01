package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/plan"
	"heliograph/internal/syncer"
)

// groupsTimeout bounds all questions about one flow's groups, of which there may be thousands.
const groupsTimeout = 5 * time.Minute

// GroupsOptions say which groups are told.
type GroupsOptions struct {
	Flow   string   // "A->B"; empty means all that copy topics
	Groups []string // patterns of group names; none means all
}

// FlowGroups are the consumer groups of one flow's source.
type FlowGroups struct {
	Flow  string `json:"flow"`
	Error string `json:"error,omitempty"` // why there is no more
	// NotSynced is why the flow moves no group at all; empty where it does.
	NotSynced string         `json:"not_synced,omitempty"`
	Groups    []GroupReport  `json:"groups"`
	Skipped   []SkippedGroup `json:"skipped"`
	// Notes say what could not be learnt.
	Notes []string `json:"notes"`
}

// SkippedGroup is a group that is not followed.
type SkippedGroup struct {
	Group  string `json:"group"`
	Reason string `json:"reason"`
}

// GroupReport is how one followed group stands.
type GroupReport struct {
	Group string `json:"group"`
	// State is the group's on the target: EMPTY, DEAD (not there), STABLE, ….
	State      string           `json:"state_on_target,omitempty"`
	Error      string           `json:"error,omitempty"`
	Partitions []GroupPartition `json:"partitions"`
}

// GroupPartition is a group's place in one partition.
type GroupPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Remote    string `json:"remote"`
	// Position is the next source offset that the group reads; End is the
	// partition's. Unset where the source did not tell.
	Position int64  `json:"source_position"`
	End      *int64 `json:"source_end"`
	Lag      *int64 `json:"source_lag"`
	// Translated is the place on the target that Position means.
	Translated *int64 `json:"target_position_translated"`
	Quality    string `json:"quality"`
	Why        string `json:"quality_reason"`
	// Target is the group's position on the target now; unset where it has none.
	Target *int64 `json:"target_position_now"`
	// NotCopied and ReadTwice are records at risk if the group moved now, at most
	// (offsets, which may have no record): what it has not read and the target has
	// not got, and what it has read and would read again.
	NotCopied *int64 `json:"not_on_target_at_most"`
	ReadTwice *int64 `json:"read_twice_at_most"`
	// Synced says that the target's position is the translated one; NotSynced why
	// it is not.
	Synced    bool   `json:"synced"`
	NotSynced string `json:"not_synced,omitempty"`
}

// Groups tells how the consumer groups that the flows follow stand on both
// sides. It writes nothing. The error is about the options; what a cluster
// refuses is in the report.
func Groups(ctx context.Context, dep *config.Deployment, o GroupsOptions, log *slog.Logger) ([]FlowGroups, error) {
	groups, err := mirror.CompilePatterns(o.Groups)
	if err != nil {
		return nil, fmt.Errorf("--group: %w", err)
	}
	flows, err := copying(dep, o.Flow)
	if err != nil {
		return nil, err
	}
	var all []FlowGroups
	for _, f := range flows {
		r := FlowGroups{Flow: f.ID.String(), NotSynced: notSynced(f), Groups: []GroupReport{}, Skipped: []SkippedGroup{}, Notes: []string{}}
		g := grouping{f: f, log: log, out: &r, wanted: func(group string) bool { return len(o.Groups) == 0 || groups.Match(group) }}
		if err := g.look(ctx); err != nil {
			r.Error = err.Error()
		}
		all = append(all, r)
	}
	return all, nil
}

// notSynced says why a flow moves no group.
func notSynced(f *config.Flow) string {
	switch {
	case !f.Checkpoints.Emit.On():
		return "checkpoints are off (emit.checkpoints.enabled = false)"
	case !f.OffsetSyncs.Enabled:
		return "offset syncs are off (emit.offset-syncs.enabled = false)"
	case !f.Checkpoints.SyncGroups.On():
		return "group offsets are not synced (sync.group.offsets.enabled = false)"
	}
	return ""
}

// grouping reports on one flow's groups.
type grouping struct {
	f      *config.Flow
	log    *slog.Logger
	out    *FlowGroups
	wanted func(group string) bool

	from                 storedTranslator
	sourceEnd, copyStart map[kafka.TopicPartition]kafka.PartitionOffset
}

func (g *grouping) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, groupsTimeout)
	defer cancel()
	f := g.f
	sides, err := askingBoth(f, g.log)
	if err != nil {
		return err
	}
	defer sides.close()
	sources, err := sides.source.Topics(ctx)
	if err != nil {
		return err
	}
	copies, err := sides.target.Topics(ctx)
	if err != nil {
		return err
	}
	var tps []kafka.TopicPartition
	for _, t := range sources {
		if ok, _ := f.Selection.Replicates(t.Name); ok && !t.Internal {
			tps = append(tps, partitionsOf(t.Name, int32(len(t.Partitions)))...)
		}
	}
	if g.from.maps, err = books(f, sides.target, copies, g.log).Maps(ctx, tps); err != nil {
		return err
	}
	var note string
	if g.from.syncs, note = readSyncs(ctx, f, sides); note != "" {
		g.out.Notes = append(g.out.Notes, note)
	}
	g.from = g.from.readingLogs(ctx, newExactly(f, sides))
	counts := make(map[string]int32, len(copies))
	for _, t := range copies {
		counts[t.Name] = int32(len(t.Partitions))
	}
	sync := syncer.NewGroupSync(sides.source, sides.target, sides.target, syncer.GroupOptions{
		Flow: f.ID, Policy: f.Policy, Topics: f.Selection.Filter, Groups: f.Groups,
		Own: map[string]bool{f.Positions.GroupID: true}, Translator: g.from,
		TargetPartitions: func() map[string]int32 { return counts }, Now: time.Now, Log: g.log,
	})
	if err := sync.Discover(ctx, time.Now()); err != nil {
		g.out.Notes = append(g.out.Notes, err.Error())
	}
	for _, s := range sync.Report() {
		if !s.Followed && g.wanted(s.Group) {
			g.out.Skipped = append(g.out.Skipped, SkippedGroup{s.Group, s.Reason})
		}
	}
	standings, err := sync.Standing(ctx)
	if err != nil {
		return err
	}
	g.bounds(ctx, sides, standings)
	for _, s := range standings {
		if g.wanted(s.Group) {
			g.out.Groups = append(g.out.Groups, g.report(s))
		}
	}
	return nil
}

// bounds learns where the logs end that the groups read, and where the copies begin.
func (g *grouping) bounds(ctx context.Context, sides pair, standings []syncer.GroupStanding) {
	var sources, copies []kafka.TopicPartition
	seen := map[kafka.TopicPartition]bool{}
	for _, s := range standings {
		for _, p := range s.Partitions {
			if !seen[p.Source] {
				seen[p.Source] = true
				sources, copies = append(sources, p.Source), append(copies, p.Target)
			}
		}
	}
	g.sourceEnd = sides.source.ListOffsets(ctx, sources, kafka.Latest, g.f.Data.Isolation)
	g.copyStart = sides.target.ListOffsets(ctx, copies, kafka.Earliest, kafka.ReadUncommitted)
}

func (g *grouping) report(s syncer.GroupStanding) GroupReport {
	r := GroupReport{Group: s.Group, State: string(s.State), Partitions: []GroupPartition{}}
	if s.Err != nil {
		r.Error = s.Err.Error()
	}
	for _, p := range s.Partitions {
		r.Partitions = append(r.Partitions, g.partition(s, p))
	}
	return r
}

func (g *grouping) partition(s syncer.GroupStanding, p syncer.PartitionStanding) GroupPartition {
	got, b := g.from.answer(p.Source, p.Committed)
	out := GroupPartition{
		Topic: p.Source.Topic, Partition: p.Source.Partition, Remote: p.Target.Topic,
		Position: int64(p.Committed), Quality: qualityName(got.Quality), Why: b.reason,
	}
	m, stored := g.from.maps[p.Source]
	if end := g.sourceEnd[p.Source]; end.Err == nil {
		out.End, out.Lag = &end.Offset, new(max(end.Offset-out.Position, 0))
		copied := mirror.UpstreamOffset(0)
		if stored {
			copied = m.Position()
		}
		out.NotCopied = new(max(end.Offset-int64(max(copied, p.Committed)), 0))
	}
	if p.There.Offset >= 0 {
		out.Target = &p.There.Offset
	}
	if got.Known() {
		out.Translated = new(int64(got.Offset))
		out.ReadTwice = g.readTwice(p, got, b)
	}
	out.Synced = p.Withheld.Reason == plan.InPlace || got.Known() && out.Target != nil && *out.Target == *out.Translated
	if !out.Synced {
		out.NotSynced = g.notSynced(s, p)
	}
	return out
}

// readTwice is how many records at most the group has read on the source and
// would read again, going on where it stands on the target now: without a
// position there, from the copy's start.
func (g *grouping) readTwice(p syncer.PartitionStanding, got offsets.Translation, b basis) *int64 {
	from := p.There.Offset
	if from < 0 {
		start := g.copyStart[p.Target]
		if start.Err != nil {
			return nil
		}
		from = start.Offset
	}
	return new(max(int64(got.Offset)-from, 0) + b.atMost)
}

// notSynced says why the group's offset does not stand on the target.
func (g *grouping) notSynced(s syncer.GroupStanding, p syncer.PartitionStanding) string {
	switch w := p.Withheld; {
	case g.out.NotSynced != "":
		return g.out.NotSynced
	case w.Reason == "" && s.Withheld.Reason != "":
		return withheldText(s.Withheld)
	case w.Reason != "":
		return withheldText(w)
	case p.Due != "":
		return "waits for the next sync: " + p.Due
	}
	return ""
}

func withheldText(w plan.Withheld) string {
	if w.Detail == "" {
		return string(w.Reason)
	}
	return string(w.Reason) + ": " + w.Detail
}
