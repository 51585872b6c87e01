package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

const (
	describeBatch = 100 // topics in one DescribeConfigs
	createBatch   = 50  // topics in one CreateTopics, CreatePartitions or AlterConfigs
	// settleSteps and settleWait bound how long a round waits until a topic it
	// has created can be seen.
	settleSteps = 10
	settleWait  = 50 * time.Millisecond
	// namedTopics is how many matched topics the first line names.
	namedTopics = 10
)

// Replica is one replicated partition: what the data plane copies where.
type Replica struct {
	Source   kafka.TopicPartition
	SourceID kafka.TopicID
	Target   kafka.TopicPartition
	TargetID kafka.TopicID
	Settings TargetSettings
	// Born says that the partition came to be after the first round, while the
	// flow was running.
	Born bool
}

// TargetSettings are the settings of a target topic that decide how batches are
// written to it. The zero value means that they are not known.
type TargetSettings struct {
	MaxMessageBytes int32
	LogAppendTime   bool
	Compacted       bool
	Compression     string // compression.type
	// message.timestamp.before.max.ms and .after.max.ms, in whose place Kafka
	// before 3.6 has message.timestamp.difference.max.ms.
	TimestampBeforeMax, TimestampAfterMax int64
}

// settingsOf picks the settings the data plane needs.
func settingsOf(entries []kafka.ConfigEntry) TargetSettings {
	var s TargetSettings
	var difference int64
	for _, e := range entries {
		switch e.Name {
		case "max.message.bytes":
			if n, err := strconv.ParseInt(e.Value, 10, 32); err == nil {
				s.MaxMessageBytes = int32(n)
			}
		case "message.timestamp.type":
			s.LogAppendTime = e.Value == "LogAppendTime"
		case "cleanup.policy":
			s.Compacted = slices.Contains(strings.Split(strings.ReplaceAll(e.Value, " ", ""), ","), "compact")
		case "compression.type":
			s.Compression = e.Value
		case "message.timestamp.before.max.ms":
			s.TimestampBeforeMax = millis(e.Value)
		case "message.timestamp.after.max.ms":
			s.TimestampAfterMax = millis(e.Value)
		case "message.timestamp.difference.max.ms":
			difference = millis(e.Value)
		}
	}
	s.TimestampBeforeMax = cmp.Or(s.TimestampBeforeMax, difference)
	s.TimestampAfterMax = cmp.Or(s.TimestampAfterMax, difference)
	return s
}

// millis is a number of milliseconds, 0 where it is none.
func millis(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// TopicOptions are what a TopicSync needs besides its clusters.
type TopicOptions struct {
	Desired plan.Desired
	// SettingsAge is how old the settings of a target topic may be before they
	// are asked for again, unless [TopicSync.Observe] brings them.
	SettingsAge time.Duration
	// LookOnly makes and grows nothing.
	LookOnly bool
	// SourceBudget and TargetBudget bound the requests; nil does not.
	SourceBudget, TargetBudget *Budget
	// Publish gets the whole list whenever it changes, and once at first. It is
	// called from RunOnce and must not block.
	Publish func([]Replica)
	// Created is told of each topic made and its settings; nil tells nobody.
	Created func(topic string, configs map[string]string)
	Log     *slog.Logger
}

// TopicSync discovers topics, makes and grows their copies, and publishes what
// is to be replicated. RunOnce is for one goroutine; the rest for any.
type TopicSync struct {
	source Describer
	target TopicTarget
	o      TopicOptions

	conditions         *Conditions // by source topic
	settingsConditions *Conditions // by target topic

	wanted    atomic.Pointer[plan.Desired] // taken over by the next round; nil where nothing changed
	published []Replica                    // nil before the first list
	first     map[string]int32             // source partition counts of the first round; nil before
	matched   int                          // topics selected in the last round; -1 before

	mu struct {
		sync.Mutex
		pairs    []plan.Pair
		counts   map[string]int32 // partition counts of the target's topics
		settings map[string]settings
		report   TopicReport
	}
}

type settings struct {
	TargetSettings
	id kafka.TopicID
	at time.Time
}

// TopicReport is how discovery stands.
type TopicReport struct {
	At      time.Time
	Total   int // topics of the source that were looked at
	Topics  []TopicStatus
	Skipped []plan.Skipped
}

// TopicStatus is one selected topic.
type TopicStatus struct {
	Source, Remote string
	Partitions     int32
	State          TopicState
	Reason, Hint   string // why it is parked, or what its copy lacks
}

// TopicState is where a selected topic stands.
type TopicState string

// The states of a topic.
const (
	TopicReplicated TopicState = "replicated"
	TopicCreating   TopicState = "creating" // its copy is not there yet
	TopicParked     TopicState = "parked"   // only a person can help
)

// NewTopicSync makes the job.
func NewTopicSync(source Describer, target TopicTarget, o TopicOptions) *TopicSync {
	s := &TopicSync{
		source: source, target: target, o: o, matched: -1,
		conditions: NewConditions(o.Log), settingsConditions: NewConditions(o.Log),
	}
	s.mu.settings = map[string]settings{}
	return s
}

// SetDesired changes what the rounds to come ask for. Partitions that stay selected are
// published as they were.
func (s *TopicSync) SetDesired(d plan.Desired) { s.wanted.Store(&d) }

// Pairs are the topics of the last round whose copies exist.
func (s *TopicSync) Pairs() []plan.Pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.pairs
}

// TargetPartitions are the partition counts of the target's topics in the last
// round; nil before the first.
func (s *TopicSync) TargetPartitions() map[string]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.counts
}

// Report tells how each topic stands.
func (s *TopicSync) Report() TopicReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.report
}

// Observe takes a target topic's settings that somebody else has read at now.
func (s *TopicSync) Observe(topic string, id kafka.TopicID, entries []kafka.ConfigEntry, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.settings[topic] = settings{TargetSettings: settingsOf(entries), id: id, at: now}
}

// RunOnce does one round. Its error means that a cluster could not be listed;
// single topics that fail are parked by name and named in the report.
func (s *TopicSync) RunOnce(ctx context.Context, now time.Time) error {
	if d := s.wanted.Swap(nil); d != nil {
		s.o.Desired = *d
	}
	source, err := listTopics(ctx, s.source, s.o.SourceBudget)
	if err != nil {
		return located("list topics", s.o.Desired.Flow.Source, err)
	}
	target, err := listTopics(ctx, s.target, s.o.TargetBudget)
	if err != nil {
		return located("list topics", s.o.Desired.Flow.Target, err)
	}
	matched := plan.Match(plan.Observed{Source: source, Target: target}, s.o.Desired)
	s.announce(ctx, matched)
	var parked map[string]plan.Park
	var changed map[string]int32
	var applyErr error
	if !s.o.LookOnly {
		parked, changed, applyErr = s.apply(ctx, now, &matched, target)
	}
	if len(changed) > 0 {
		if target, err = s.settled(ctx, changed); err != nil {
			return located("list topics", s.o.Desired.Flow.Target, err)
		}
		// Parked topics keep their reasons; only what exists now may differ.
		matched.Pairs = plan.Match(plan.Observed{Source: source, Target: target}, s.o.Desired).Pairs
	}
	// What cannot be made or read now does not keep other records from being copied.
	settingsErr := s.learnSettings(ctx, now, matched.Pairs)
	s.remember(now, matched, parked, target)
	s.publish(matched, source)
	return errors.Join(applyErr, settingsErr)
}

func listTopics(ctx context.Context, d Describer, budget *Budget) ([]plan.Topic, error) {
	if err := budget.Take(ctx); err != nil {
		return nil, err
	}
	details, err := d.Topics(ctx)
	if err != nil {
		return nil, err
	}
	topics := make([]plan.Topic, len(details))
	for i, t := range details {
		topics[i] = plan.Topic{Name: t.Name, ID: t.ID, Internal: t.Internal, Err: t.Code.Err(), Partitions: int32(len(t.Partitions))}
	}
	return topics, nil
}

// announce says what the filters choose, at the start and when it changes.
func (s *TopicSync) announce(ctx context.Context, m plan.Matched) {
	selected := len(m.Pairs) + len(m.Parked)
	if selected == s.matched {
		return
	}
	s.matched = selected
	names := make([]string, 0, namedTopics)
	for _, p := range m.Pairs[:min(namedTopics, len(m.Pairs))] {
		names = append(names, p.Source.Name+" -> "+p.Remote)
	}
	level, hint := slog.LevelInfo, []slog.Attr{}
	if selected == 0 {
		level, hint = slog.LevelWarn, []slog.Attr{slog.String(telemetry.KeyHint, "check topics, topics.exclude and the right to DESCRIBE topics")}
	}
	s.o.Log.LogAttrs(ctx, level, "topics matched", append([]slog.Attr{
		slog.String("matches", fmt.Sprintf("%d of %s", selected, counted(m.Total(), "topic"))),
		slog.String("topics", strings.Join(names, ", ")),
	}, hint...)...)
}

// apply creates and grows. It returns the topics that are parked by source name,
// and the target topics that changed with the partition count each should have.
func (s *TopicSync) apply(ctx context.Context, now time.Time, m *plan.Matched, target []plan.Topic) (map[string]plan.Park, map[string]int32, error) {
	d := s.o.Desired
	var young map[string]bool
	if missing := m.Missing(); len(missing) > 0 {
		var err error
		if young, err = s.describeMissing(ctx, m, missing); err != nil {
			return nil, nil, err
		}
		d.Known = s.known(ctx, target)
	}
	var create []plan.CreateTopic
	var grow []plan.AddPartitions
	parked := map[string]plan.Park{}
	for _, a := range plan.Topics(*m, d) {
		switch a := a.(type) {
		case plan.CreateTopic:
			if !young[a.Source] {
				create = append(create, a)
			}
		case plan.AddPartitions:
			grow = append(grow, a)
		case plan.Park:
			if !young[a.Topic] {
				parked[a.Topic] = a
			}
		}
	}
	changed := map[string]int32{}
	err := everyBatch(create, createBatch, func(batch []plan.CreateTopic) error { return s.create(ctx, batch, parked, changed) })
	if err == nil {
		err = everyBatch(grow, createBatch, func(batch []plan.AddPartitions) error { return s.grow(ctx, batch, parked, changed) })
	}
	s.reportParked(now, *m, parked)
	return parked, changed, err
}

// describeMissing fills in the settings of the sources of missing copies. Topics
// whose settings will be there in a moment, because not every broker has heard
// of the topic, are young: they wait for the next round.
func (s *TopicSync) describeMissing(ctx context.Context, m *plan.Matched, missing []string) (young map[string]bool, err error) {
	configs := map[string]kafka.TopicConfigs{}
	if err := describeInto(ctx, s.source, s.o.SourceBudget, missing, configs); err != nil {
		return nil, located("read topic configs", s.o.Desired.Flow.Source, err)
	}
	young = map[string]bool{}
	for i := range m.Pairs {
		p := &m.Pairs[i]
		if c, ok := configs[p.Source.Name]; ok && !p.Exists {
			p.Source.Configs, p.Source.ConfigsErr = c.Entries, c.Err
			young[p.Source.Name] = c.Err != nil && kafka.Heals(c.Err)
		}
	}
	return young, nil
}

func describeInto(ctx context.Context, d Describer, budget *Budget, names []string, into map[string]kafka.TopicConfigs) error {
	return everyBatch(names, describeBatch, func(batch []string) error {
		if err := budget.Take(ctx); err != nil {
			return err
		}
		got, err := d.TopicConfigs(ctx, batch...)
		maps.Copy(into, got)
		return err
	})
}

// known learns which settings the target's brokers have, from any topic that may
// be described. Nil, which allows all, where none may.
func (s *TopicSync) known(ctx context.Context, target []plan.Topic) map[string]bool {
	for _, t := range target {
		if t.Err != nil {
			continue
		}
		got := map[string]kafka.TopicConfigs{}
		if err := describeInto(ctx, s.target, s.o.TargetBudget, []string{t.Name}, got); err != nil {
			return nil
		}
		return plan.Known([]plan.Topic{{Configs: got[t.Name].Entries}})
	}
	return nil
}

func (s *TopicSync) create(ctx context.Context, batch []plan.CreateTopic, parked map[string]plan.Park, changed map[string]int32) error {
	if err := s.o.TargetBudget.Take(ctx); err != nil {
		return err
	}
	ask := make([]kafka.NewTopic, len(batch))
	for i, a := range batch {
		ask[i] = kafka.NewTopic{Name: a.Topic, Partitions: a.Partitions, ReplicationFactor: a.ReplicationFactor, Configs: a.Configs}
	}
	outcome := s.target.CreateTopics(ctx, ask, false)
	var passing error
	for _, a := range batch {
		err := outcome[a.Topic]
		switch {
		case kafka.Heals(err):
			passing = err
		case err == nil:
			changed[a.Topic] = a.Partitions
			s.sayCreated(ctx, a)
			if s.o.Created != nil {
				s.o.Created(a.Topic, a.Configs)
			}
		case kafka.CodeOf(err) == kafka.CodeTopicAlreadyExists:
			changed[a.Topic] = a.Partitions
		default:
			err = explainFactor(ctx, s.target, s.o.Desired.Flow.Target, askedFactor{a.Topic, a.ReplicationFactor, "replication.factor"}, err)
			parked[a.Source] = plan.Park{Topic: a.Source, Remote: a.Topic, Reason: err.Error(), Hint: s.hint(err, "CREATE", a.Topic)}
		}
	}
	return located("create topics", s.o.Desired.Flow.Target, passing)
}

// sayCreated names a new topic, and loudly what it lacks.
func (s *TopicSync) sayCreated(ctx context.Context, a plan.CreateTopic) {
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String(telemetry.KeyTopic, a.Source), slog.String(telemetry.KeyRemoteTopic, a.Topic), slog.Int("partitions", int(a.Partitions)),
	}
	if len(a.Notes) > 0 {
		level, attrs = slog.LevelWarn, append(attrs, slog.String(telemetry.KeyReason, strings.Join(a.Notes, "; ")))
	}
	s.o.Log.LogAttrs(ctx, level, "topic created", attrs...)
}

func (s *TopicSync) grow(ctx context.Context, batch []plan.AddPartitions, parked map[string]plan.Park, changed map[string]int32) error {
	if err := s.o.TargetBudget.Take(ctx); err != nil {
		return err
	}
	counts := make(map[string]int32, len(batch))
	for _, a := range batch {
		counts[a.Topic] = a.To
	}
	outcome := s.target.CreatePartitions(ctx, counts)
	var passing error
	for _, a := range batch {
		err := outcome[a.Topic]
		switch {
		case kafka.Heals(err):
			passing = err
		case err == nil:
			changed[a.Topic] = a.To
			s.o.Log.LogAttrs(ctx, slog.LevelInfo, "partitions added", slog.String(telemetry.KeyTopic, a.Source), slog.String(telemetry.KeyRemoteTopic, a.Topic),
				slog.Int("from", int(a.From)), slog.Int("to", int(a.To)))
		case kafka.CodeOf(err) == kafka.CodeInvalidPartitions:
			changed[a.Topic] = a.To // somebody else was faster
		default:
			parked[a.Source] = plan.Park{
				Topic: a.Source, Remote: a.Topic, Hint: s.hint(err, "ALTER", a.Topic),
				Reason: fmt.Sprintf("partitions cannot be added to topic %s of cluster %s: %s", a.Topic, s.o.Desired.Flow.Target, kafka.CauseOf(err)),
			}
		}
	}
	return located("add partitions", s.o.Desired.Flow.Target, passing)
}

func (s *TopicSync) hint(err error, right, topic string) string {
	switch kafka.CodeOf(err) {
	case kafka.CodeTopicAuthorizationFailed, kafka.CodeClusterAuthorizationFailed:
		return fmt.Sprintf("grant %s on topic %s of cluster %s", right, topic, s.o.Desired.Flow.Target)
	}
	return "it is tried again in the next round"
}

// reportParked says each parked topic once, and when it is over.
func (s *TopicSync) reportParked(now time.Time, m plan.Matched, parked map[string]plan.Park) {
	for name, p := range parked {
		s.conditions.Report(now, name, fmt.Errorf("%s (%s)", p.Reason, p.Hint), slog.String(telemetry.KeyTopic, name), slog.String(telemetry.KeyRemoteTopic, p.Remote))
	}
	selected := map[string]bool{}
	for _, p := range m.Parked {
		selected[p.Topic] = true
	}
	for _, p := range m.Pairs {
		selected[p.Source.Name] = true
		if _, bad := parked[p.Source.Name]; !bad {
			s.conditions.Report(now, p.Source.Name, nil, slog.String(telemetry.KeyTopic, p.Source.Name))
		}
	}
	s.conditions.Forget(func(topic string) bool { return selected[topic] })
}

// settled lists the target again until what was made can be seen, for a while.
func (s *TopicSync) settled(ctx context.Context, changed map[string]int32) ([]plan.Topic, error) {
	var target []plan.Topic
	for range settleSteps {
		var err error
		if target, err = listTopics(ctx, s.target, s.o.TargetBudget); err != nil {
			return nil, err
		}
		seen := 0
		for _, t := range target {
			if want, ok := changed[t.Name]; ok && t.Err == nil && t.Partitions >= want {
				seen++
			}
		}
		if seen == len(changed) {
			break
		}
		if err := pause(ctx, settleWait); err != nil {
			return nil, err
		}
	}
	return target, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
