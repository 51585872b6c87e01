package syncer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

const (
	// A request asks for as many groups as answerOffsets allows, judged by what
	// they had in the last round, within leastGroups and mostGroups.
	answerOffsets = 50_000
	leastGroups   = 10
	mostGroups    = 500
	// checkpointBatch is how many checkpoints are written at once.
	checkpointBatch = 2000
	// snapshotFresh is how old a target's group may be seen before its offsets
	// are written: in between it could have been used.
	snapshotFresh = 10 * time.Second
	// refreshOffsets is when an unchanged offset is committed again, well before
	// the 7 days after which a broker forgets it.
	refreshOffsets = 24 * time.Hour
	// refreshSpread is the time after a start over which what an earlier life wrote
	// is committed again.
	refreshSpread = 6 * time.Hour
	// loadAttempts and loadPause bound how long Load waits for a cluster.
	loadAttempts = 30
	loadPause    = time.Second
)

// GroupOptions are what a GroupSync needs besides its clusters.
type GroupOptions struct {
	Flow   mirror.FlowID
	Policy mirror.ReplicationPolicy
	Topics mirror.TopicFilter // a group is followed if it has committed for one of them
	Groups mirror.GroupFilter
	// Own are groups of the replicators themselves, such as the lane group; they
	// are never followed.
	Own        map[string]bool
	Translator Translator
	// TargetPartitions tells the target's topics; nil, or a nil map, checks nothing.
	TargetPartitions func() map[string]int32
	// Followed is called when other groups than before are followed, Emitted when
	// checkpoints were written: the moments to kick the next job. Nil calls nobody.
	Followed, Emitted func()
	// EmitEvery is how often all groups are looked at; rounds of Emit in between
	// are for those that are not exact yet. Zero looks at all each time.
	EmitEvery time.Duration
	// CommitEvery is the interval of Commit, over which a round spreads its
	// requests; Deletions has groups follow that were deleted on the source.
	CommitEvery                time.Duration
	Deletions                  bool
	SourceBudget, TargetBudget *Budget
	Now                        func() time.Time
	// Random returns a number in [0,1) that spreads work over time; nil does not.
	Random func() float64
	Log    *slog.Logger
}

// GroupSync follows the source's consumer groups: it finds them, writes
// checkpoints that tell where they stand on the target, and moves the target's
// groups there. Its three jobs may run at the same time; each by itself is for
// one goroutine.
type GroupSync struct {
	source     GroupSource
	target     GroupTarget
	books      CheckpointLog
	o          GroupOptions
	topic      kafka.TopicPartition
	conditions *Conditions
	filters    atomic.Pointer[groupFilters]

	mu struct {
		sync.Mutex
		listed  bool     // Discover has had an answer
		groups  []string // followed, in order
		skipped map[string]string
		last    checkpoints // nil until Load
		states  map[string]GroupStatus
		written map[string]map[kafka.TopicPartition]plan.GroupWrite
		// looked is how a group of the source was last found, coarse are those that
		// are not exact; allAt is when the last look at all of them began.
		looked map[string]look
		coarse map[string]coarseGroup
		allAt  time.Time
		// changed is how often a group's checkpoints have changed, settled when and at
		// which change all of it stood on the target.
		changed map[string]int
		settled map[string]settledGroup
		offsets int // that a group had on average in the last round
		gone    map[string]bool
	}
	latency latency
}

// settledGroup is a group of which nothing is left to be written.
type settledGroup struct {
	change int
	at     time.Time
}

// CheckpointLog is the target as the place of the checkpoints topic.
type CheckpointLog interface {
	LogReader
	LogWriter
}

// GroupStatus is one group of the source as it stands.
type GroupStatus struct {
	Group    string
	Followed bool
	Reason   string // why it is not followed, or not synced; empty when all is well

	Partitions   int // with a committed offset, of topics that are copied
	Checkpoints  int // partitions with a translated offset
	CheckpointAt time.Time

	Synced   int // partitions whose offset stands on the target
	SyncedAt time.Time
	Withheld []plan.Withheld // offsets that were not written, in the last round
}

// Why says in one line why the group is not followed, or not wholly synced;
// empty when all is well.
func (s GroupStatus) Why() string {
	parts := []string{}
	if s.Reason != "" {
		parts = append(parts, s.Reason)
	}
	byReason := map[plan.Reason]int{}
	for _, w := range s.Withheld {
		byReason[w.Reason]++
	}
	for _, reason := range s.Reasons() {
		parts = append(parts, fmt.Sprintf("%s (%d)", reason, byReason[reason]))
	}
	return strings.Join(parts, "; ")
}

// Reasons are those for which something of the group was not written, in order.
func (s GroupStatus) Reasons() []plan.Reason {
	var reasons []plan.Reason
	for _, w := range s.Withheld {
		reasons = append(reasons, w.Reason)
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// NewGroupSync makes the jobs. books is the cluster that holds the checkpoints
// topic: the target.
func NewGroupSync(source GroupSource, target GroupTarget, books CheckpointLog, o GroupOptions) *GroupSync {
	g := &GroupSync{
		source: source, target: target, books: books, o: o, conditions: NewConditions(o.Log),
		topic: kafka.TopicPartition{Topic: o.Policy.CheckpointsTopic(o.Flow.Source)},
	}
	g.SetFilters(o.Groups, o.Topics)
	g.mu.skipped = map[string]string{}
	g.mu.states = map[string]GroupStatus{}
	g.mu.written = map[string]map[kafka.TopicPartition]plan.GroupWrite{}
	g.mu.looked, g.mu.coarse, g.mu.changed = map[string]look{}, map[string]coarseGroup{}, map[string]int{}
	g.mu.settled, g.mu.gone = map[string]settledGroup{}, map[string]bool{}
	return g
}

// groupFilters choose groups, and of their offsets those of some topics.
type groupFilters struct {
	groups mirror.GroupFilter
	topics mirror.TopicFilter
}

// SetFilters changes which groups the rounds to come follow, and for which topics.
func (g *GroupSync) SetFilters(groups mirror.GroupFilter, topics mirror.TopicFilter) {
	g.filters.Store(&groupFilters{groups, topics})
}

// Load reads the checkpoints written before, at the start and whenever the jobs
// are taken over from another process. Errors that pass are waited out for a
// while. complete is false where the checkpoints cannot be read; then the jobs go
// on with none, and the translation must trust only the newest offset syncs.
func (g *GroupSync) Load(ctx context.Context) (complete bool) {
	var loaded checkpoints
	var err error
	for range loadAttempts {
		loaded, err = loadCheckpoints(ctx, g.books, g.topic, func(group string) bool {
			ok, _ := g.follows(group)
			return ok
		})
		if err == nil || !kafka.Heals(err) || pause(ctx, loadPause) != nil {
			break
		}
	}
	if err != nil {
		loaded = checkpoints{}
		g.o.Log.LogAttrs(ctx, slog.LevelWarn, "checkpoints of earlier runs not read", slog.String(telemetry.KeyTopic, g.topic.Topic), slog.Any(telemetry.KeyError, err),
			slog.String(telemetry.KeyHint, "groups are translated from the newest offset syncs only; grant READ on the topic"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.last = loaded
	// Where the target stands at a checkpoint that was written before, we were the
	// last to write.
	g.mu.written = map[string]map[kafka.TopicPartition]plan.GroupWrite{}
	for group, of := range loaded {
		g.mu.written[group] = map[kafka.TopicPartition]plan.GroupWrite{}
		at := g.writtenBefore()
		for tp, c := range of {
			g.mu.written[group][tp] = plan.GroupWrite{Offset: c.Downstream, At: at}
		}
	}
	clear(g.mu.settled)
	g.mu.allAt = time.Time{}
	return err == nil
}

// writtenBefore is when a group is taken to have been written by an earlier life,
// so that those which stand still are committed again soon and not all at once.
func (g *GroupSync) writtenBefore() time.Time {
	if g.o.Random == nil {
		return time.Time{}
	}
	return g.o.Now().Add(time.Duration(g.o.Random()*float64(refreshSpread)) - refreshOffsets)
}

// follows applies everything that can be said by a group's name.
func (g *GroupSync) follows(group string) (bool, string) {
	if g.o.Own[group] {
		return false, "the replicator's own group"
	}
	if mirror.IsProgressGroup(group) {
		return false, progressOf
	}
	return g.filters.Load().groups.Explain(group)
}

// Discover finds the groups to follow.
func (g *GroupSync) Discover(ctx context.Context, now time.Time) error {
	if err := g.o.SourceBudget.Take(ctx); err != nil {
		return err
	}
	listed, listErr := g.source.ListGroups(ctx)
	if listErr != nil && len(listed) == 0 {
		return located("list groups", g.o.Flow.Source, listErr)
	}
	skipped := map[string]string{}
	var named []string
	for _, l := range listed {
		if why := otherKind(l); why != "" {
			skipped[l.Group] = why
			continue
		}
		if ok, reason := g.follows(l.Group); !ok {
			skipped[l.Group] = reason
			continue
		}
		named = append(named, l.Group)
	}
	slices.Sort(named)
	followed, err := g.withTopics(ctx, now, named, skipped)
	if err != nil {
		return err
	}
	if g.take(ctx, followed, skipped, listErr != nil) && g.o.Followed != nil {
		g.o.Followed()
	}
	if listErr == nil {
		g.noteGone(listed)
	}
	if listErr != nil {
		return fmt.Errorf("some brokers did not tell their groups: %w", located("list groups", g.o.Flow.Source, listErr))
	}
	return nil
}

// otherKind says why a group is no consumer group; empty where it is one.
func otherKind(l kafka.GroupListing) string {
	switch {
	case l.GroupType == "share" || l.ProtocolType == "share":
		return "a share group: not supported, it acknowledges single records and has no offset to translate"
	case l.ProtocolType == "" || l.ProtocolType == "consumer":
		return ""
	}
	return "no consumer group but of protocol " + l.ProtocolType
}

// batch is how many groups one request asks for.
func (g *GroupSync) batch() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(max(answerOffsets/max(g.mu.offsets, 1), leastGroups), mostGroups)
}

// withTopics keeps the groups that have committed for a topic the filter
// accepts. A group whose offsets cannot be read is skipped by name.
func (g *GroupSync) withTopics(ctx context.Context, now time.Time, groups []string, skipped map[string]string) ([]string, error) {
	var followed []string
	total := 0
	err := everyBatch(groups, g.batch(), func(batch []string) error {
		if err := g.o.SourceBudget.Take(ctx); err != nil {
			return err
		}
		got := g.source.FetchGroupOffsets(ctx, batch...)
		for _, group := range batch {
			total += len(got[group].Offsets)
			err := got[group].Err
			g.reportGroup(now, group, "offsets", err)
			switch {
			case err != nil:
				skipped[group] = g.unreadable(group, err)
			case tellsProgress(got[group].Offsets):
				skipped[group] = progressOf
			case len(g.relevant(got[group].Offsets)) == 0:
				skipped[group] = "nothing committed for a topic that is copied"
			default:
				followed = append(followed, group)
			}
		}
		return nil
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.offsets = total / max(len(groups), 1)
	return followed, err
}

const progressOf = "the progress of a replicator, no consumer's"

// tellsProgress reports whether a group of any name is a replicator's progress.
func tellsProgress(committed []kafka.GroupOffset) bool {
	for _, o := range committed {
		if o.Metadata != mirror.ProgressMetadata {
			return false
		}
	}
	return len(committed) > 0
}

func (g *GroupSync) unreadable(group string, err error) string {
	if kafka.CodeOf(err) == kafka.CodeGroupAuthorizationFailed {
		return fmt.Sprintf("its offsets cannot be read: %s (grant DESCRIBE on group %s of cluster %s)", kafka.CauseOf(err), group, g.o.Flow.Source)
	}
	return "its offsets cannot be read: " + kafka.CauseOf(err)
}

// reportGroup names what a group's broker refuses, once. Troubles that pass are
// left to the job.
func (g *GroupSync) reportGroup(now time.Time, group, what string, err error) {
	if kafka.Heals(err) {
		return
	}
	if err != nil {
		err = fmt.Errorf("%s of group %s: %s", what, group, kafka.CauseOf(err))
	}
	g.conditions.Report(now, what+" "+group, err, slog.String(telemetry.KeyGroup, group))
}

// relevant are the offsets that can be translated: committed, of a topic that
// the filter accepts and that is not internal.
func (g *GroupSync) relevant(all []kafka.GroupOffset) []kafka.GroupOffset {
	var some []kafka.GroupOffset
	topics := g.filters.Load().topics
	for _, o := range all {
		if o.Err == nil && o.Offset >= 0 && topics.Accepts(o.Topic) && !g.o.Policy.IsInternalTopic(o.Topic) {
			some = append(some, o)
		}
	}
	return some
}

// take makes the found groups the followed ones, and reports whether they are
// others than before. An incomplete listing takes nothing away.
func (g *GroupSync) take(ctx context.Context, followed []string, skipped map[string]string, incomplete bool) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if incomplete {
		for _, group := range g.mu.groups {
			if _, now := skipped[group]; !now {
				followed = append(followed, group)
			}
		}
		slices.Sort(followed)
		followed = slices.Compact(followed)
	}
	changed = !g.mu.listed || !slices.Equal(g.mu.groups, followed)
	if changed {
		g.o.Log.LogAttrs(ctx, slog.LevelInfo, "groups matched",
			slog.String("matches", fmt.Sprintf("%d of %s", len(followed), counted(len(followed)+len(skipped), "group"))))
	}
	g.mu.listed, g.mu.groups, g.mu.skipped = true, followed, skipped
	keep := make(map[string]bool, len(followed))
	for _, group := range followed {
		keep[group] = true
	}
	maps.DeleteFunc(g.mu.states, func(group string, _ GroupStatus) bool { return !keep[group] })
	maps.DeleteFunc(g.mu.looked, func(group string, _ look) bool { return !keep[group] })
	maps.DeleteFunc(g.mu.coarse, func(group string, _ coarseGroup) bool { return !keep[group] })
	maps.DeleteFunc(g.mu.changed, func(group string, _ int) bool { return !keep[group] })
	maps.DeleteFunc(g.mu.settled, func(group string, _ settledGroup) bool { return !keep[group] })
	g.latency.keep(keep)
	return changed
}

// targetName is the partition's name on the target. A topic that came from there
// goes by its own name.
func (g *GroupSync) targetName(tp kafka.TopicPartition) kafka.TopicPartition {
	if source, ok := g.o.Policy.TopicSource(tp.Topic); ok && source == g.o.Flow.Target {
		tp.Topic = mirror.OriginalTopic(g.o.Policy, tp.Topic)
		return tp
	}
	tp.Topic = g.o.Policy.RemoteTopic(g.o.Flow.Source, tp.Topic)
	return tp
}

func (g *GroupSync) setStatus(group string, change func(*GroupStatus)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.mu.states[group]
	s.Group, s.Followed = group, true
	change(&s)
	g.mu.states[group] = s
}

// Report tells how each group stands, followed or not, by name.
func (g *GroupSync) Report() []GroupStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	var report []GroupStatus
	for _, group := range g.mu.groups {
		s, ok := g.mu.states[group]
		if !ok {
			s = GroupStatus{Group: group, Followed: true, Reason: "not looked at yet"}
		}
		report = append(report, s)
	}
	for group, reason := range g.mu.skipped {
		report = append(report, GroupStatus{Group: group, Reason: reason})
	}
	slices.SortFunc(report, func(a, b GroupStatus) int { return cmp.Compare(a.Group, b.Group) })
	return report
}
