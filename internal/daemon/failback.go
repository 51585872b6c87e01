package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"heliograph/internal/config"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// BackOptions say which groups are told their way back to the source.
type BackOptions struct {
	Flow   string   // "A->B"; empty means all that copy topics
	Groups []string // patterns of group names; none means all
	// Apply commits the offsets on the source; Rewind also those that lie before
	// what the group has committed there.
	Apply, Rewind bool
}

// GroupBack is a group's place in one partition of a copy, told in the source's terms.
type GroupBack struct {
	Flow      string `json:"flow"`
	Group     string `json:"group"`
	Topic     string `json:"topic"` // on the source
	Partition int32  `json:"partition"`
	Target    int64  `json:"target_position"`
	// Source is what the group has committed on the source now, and Back where it
	// goes on there; unset where there is none.
	Source  *int64 `json:"source_position_now"`
	Back    *int64 `json:"source_position_back"`
	Quality string `json:"quality"`
	Reason  string `json:"quality_reason"`
	// Applied says that the source stands at Back; NotApplied why it does not.
	Applied    bool   `json:"applied"`
	NotApplied string `json:"not_applied,omitempty"`
}

// Back tells where groups of the targets go on at the sources, and moves them
// there if asked: the way back after a fail-over. It answers as Translate does.
func Back(ctx context.Context, dep *config.Deployment, o BackOptions, log *slog.Logger) ([]GroupBack, error) {
	wanted, err := mirror.CompilePatterns(o.Groups)
	if err != nil {
		return nil, fmt.Errorf("--group: %w", err)
	}
	flows, err := copying(dep, o.Flow)
	if err != nil {
		return nil, err
	}
	all := []GroupBack{}
	for _, f := range flows {
		w := wayBack{f: f, o: o, log: log, wanted: func(group string) bool {
			ok, _ := f.Groups.Explain(group)
			return ok && group != f.Positions.GroupID && !mirror.IsProgressGroup(group) && (len(o.Groups) == 0 || wanted.Match(group))
		}}
		some, err := w.run(ctx)
		all = append(all, some...)
		if err != nil {
			return all, fmt.Errorf("flow %s: %w", f.ID, err)
		}
	}
	return all, nil
}

// wayBack is the work for one flow.
type wayBack struct {
	f      *config.Flow
	o      BackOptions
	log    *slog.Logger
	wanted func(group string) bool

	sides pair
	from  storedTranslator
}

// backBatch is how many groups are asked for at once.
const backBatch = 50

func (w *wayBack) run(ctx context.Context) ([]GroupBack, error) {
	ctx, cancel := context.WithTimeout(ctx, groupsTimeout)
	defer cancel()
	var err error
	if w.sides, err = askingBoth(w.f, w.log); err != nil {
		return nil, err
	}
	defer w.sides.close()
	topics, err := w.sides.target.Topics(ctx)
	if err != nil {
		return nil, err
	}
	b := books(w.f, w.sides.target, topics, w.log)
	sources, err := w.sources(ctx, b)
	if err != nil {
		return nil, err
	}
	listed, err := w.sides.target.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, l := range listed {
		if (l.ProtocolType == "" || l.ProtocolType == "consumer") && w.wanted(l.Group) {
			groups = append(groups, l.Group)
		}
	}
	slices.Sort(groups)
	var all []GroupBack
	for some := range slices.Chunk(groups, backBatch) {
		told := w.tell(ctx, sources, some)
		if w.o.Apply {
			w.apply(ctx, told)
		}
		all = append(all, told...)
	}
	return all, nil
}

// sources reads the maps, and tells the source topic of each copy.
func (w *wayBack) sources(ctx context.Context, b coord.Books) (map[string]string, error) {
	positions, err := b.Positions(ctx)
	if err != nil {
		return nil, err
	}
	byCopy := map[string]string{}
	var tps []kafka.TopicPartition
	for tp := range positions {
		byCopy[w.f.Policy.RemoteTopic(w.f.ID.Source, tp.Topic)] = tp.Topic
		tps = append(tps, tp)
	}
	if w.from.maps, err = b.Maps(ctx, tps); err != nil {
		return nil, err
	}
	w.from.syncs, _ = readSyncs(ctx, w.f, w.sides)
	w.from = w.from.readingLogs(ctx, newExactly(w.f, w.sides))
	return byCopy, nil
}

// tell translates what some groups have committed on the target.
func (w *wayBack) tell(ctx context.Context, sources map[string]string, groups []string) []GroupBack {
	there := w.sides.target.FetchGroupOffsets(ctx, groups...)
	here := w.sides.source.FetchGroupOffsets(ctx, groups...)
	var told []GroupBack
	for _, group := range groups {
		committed := map[kafka.TopicPartition]int64{}
		for _, o := range here[group].Offsets {
			committed[o.TopicPartition] = o.Offset
		}
		places := slices.Clone(there[group].Offsets)
		slices.SortFunc(places, func(a, b kafka.GroupOffset) int { return a.Compare(b.TopicPartition) })
		for _, o := range places {
			topic, copied := sources[o.Topic]
			if !copied || o.Err != nil || o.Offset < 0 {
				continue
			}
			source := kafka.TopicPartition{Topic: topic, Partition: o.Partition}
			got, basis := w.from.origin(source, mirror.DownstreamOffset(o.Offset))
			g := GroupBack{
				Flow: w.f.ID.String(), Group: group, Topic: topic, Partition: o.Partition, Target: o.Offset,
				Quality: qualityName(got.Quality), Reason: basis.reason,
			}
			if at, ok := committed[source]; ok && at >= 0 {
				g.Source = &at
			}
			if got.Known() {
				g.Back = new(int64(got.Offset))
			}
			g.judge(got, w.o.Rewind, here[group].Err)
			told = append(told, g)
		}
	}
	return told
}

// judge says what stands in the way of moving the group on the source.
func (g *GroupBack) judge(got offsets.Origin, rewind bool, sourceErr error) {
	switch {
	case sourceErr != nil:
		g.NotApplied = "the source does not tell the group's offsets: " + kafka.CauseOf(sourceErr)
	case !got.Known():
		g.NotApplied = "no offset on the source is known"
	case g.Source != nil && *g.Source == *g.Back:
		g.Applied = true
	case g.Source != nil && *g.Source > *g.Back && !rewind:
		g.NotApplied = "the group stands further on at the source; --rewind moves it back"
	default:
		g.NotApplied = notAsked
	}
}

// notAsked is the reason of what apply would commit.
const notAsked = "not asked to: --apply"

// apply commits on the source what was asked for, group by group. A group that has
// members there is refused by its broker.
func (w *wayBack) apply(ctx context.Context, told []GroupBack) {
	byGroup := map[string][]*GroupBack{}
	for i := range told {
		if told[i].NotApplied == notAsked {
			byGroup[told[i].Group] = append(byGroup[told[i].Group], &told[i])
		}
	}
	for group, places := range byGroup {
		var commit []kafka.GroupOffset
		for _, g := range places {
			commit = append(commit, kafka.GroupOffset{
				TopicPartition: kafka.TopicPartition{Topic: g.Topic, Partition: g.Partition}, Offset: *g.Back, LeaderEpoch: kafka.NoLeaderEpoch,
			})
		}
		outcome, err := w.sides.source.CommitGroupOffsets(ctx, group, commit)
		for _, g := range places {
			failed := err
			if failed == nil {
				failed = outcome[kafka.TopicPartition{Topic: g.Topic, Partition: g.Partition}]
			}
			if g.Applied = failed == nil; g.Applied {
				g.NotApplied = ""
				continue
			}
			g.NotApplied = "refused: " + kafka.CauseOf(failed)
			if kafka.CodeOf(failed) == kafka.CodeUnknownMemberID {
				g.NotApplied = "the group is active on the source"
			}
		}
	}
}
