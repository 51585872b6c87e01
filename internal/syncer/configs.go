package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// ConfigOptions are what a ConfigSync needs besides its clusters.
type ConfigOptions struct {
	Flow    mirror.FlowID
	Rules   plan.ConfigRules
	HoldFor time.Duration // how long a change that could delete records waits; 0 does not hold
	Pairs   func() []plan.Pair
	// Refused says whether somebody refused a change before this process began; nil: nobody did.
	Refused                    func(key plan.HoldKey, wish string) bool
	Observe                    func(topic string, id kafka.TopicID, entries []kafka.ConfigEntry, now time.Time) // nil tells nobody
	SourceBudget, TargetBudget *Budget
	Log                        *slog.Logger
}

// ConfigSync keeps the settings of existing copies in step with their sources.
type ConfigSync struct {
	source     Describer
	target     ConfigTarget
	o          ConfigOptions
	conditions *Conditions
	wanted     atomic.Pointer[plan.ConfigRules]
	mu         struct {
		sync.Mutex
		holds  plan.Holds
		report ConfigReport
	}
}

// ConfigReport is how the settings stand.
type ConfigReport struct {
	At      time.Time
	Held    []plan.HoldConfig
	Refused map[string]string // target topic -> why its settings are not in step
}

// NewConfigSync makes the job.
func NewConfigSync(source Describer, target ConfigTarget, o ConfigOptions) *ConfigSync {
	return &ConfigSync{source: source, target: target, o: o, conditions: NewConditions(o.Log)}
}

// Created takes note of a topic that was made with these settings.
func (s *ConfigSync) Created(topic string, configs map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.holds = s.mu.holds.Created(topic, configs)
}

// Accept lets a held change pass in the next round; false if none is held.
func (s *ConfigSync) Accept(key plan.HoldKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	holds, ok := s.mu.holds.Accept(key)
	s.mu.holds = holds
	return ok
}

// Report tells what is held and what failed.
func (s *ConfigSync) Report() ConfigReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.report
}

// Holds are the changes that wait because they could delete records.
func (s *ConfigSync) Holds() map[plan.HoldKey]plan.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.holds.Held()
}

// Decide lets a waiting change pass in the next round, or keeps it from passing at all. It
// reports whether there is such a change.
func (s *ConfigSync) Decide(key plan.HoldKey, accept bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	decide := s.mu.holds.Refuse
	if accept {
		decide = s.mu.holds.Accept
	}
	next, ok := decide(key)
	s.mu.holds = next
	return ok
}

// SetRules changes which settings the rounds to come keep in step.
func (s *ConfigSync) SetRules(r plan.ConfigRules) { s.wanted.Store(&r) }

// RunOnce does one round.
func (s *ConfigSync) RunOnce(ctx context.Context, now time.Time) error {
	if r := s.wanted.Swap(nil); r != nil {
		s.o.Rules = *r
	}
	pairs, refused, err := s.observe(ctx, now)
	if err != nil {
		return err
	}
	var target []plan.Topic
	for _, p := range pairs {
		target = append(target, p.Target)
	}
	inherited, err := s.inherited(ctx, target)
	if err != nil {
		return err
	}
	s.mu.Lock()
	planned := plan.Configs(plan.ConfigInput{
		Flow: s.o.Flow, Pairs: pairs, Rules: s.o.Rules, Inherited: inherited,
		HoldFor: s.o.HoldFor, Holds: s.mu.holds, Now: now,
	})
	s.mu.holds = s.recall(planned.Holds)
	s.mu.Unlock()

	var alter []plan.AlterConfig
	report := ConfigReport{At: now, Refused: refused}
	for _, a := range planned.Actions {
		switch a := a.(type) {
		case plan.AlterConfig:
			alter = append(alter, a)
		case plan.HoldConfig:
			report.Held = append(report.Held, a)
			if a.New {
				s.o.Log.LogAttrs(ctx, slog.LevelWarn, "topic setting held", slog.String(telemetry.KeyRemoteTopic, a.Topic), slog.String("change", a.Change.String()),
					slog.Time("until", a.Hold.Until), slog.String(telemetry.KeyReason, a.Reason))
			}
		}
	}
	err = everyBatch(alter, createBatch, func(batch []plan.AlterConfig) error { return s.alter(ctx, batch, refused) })
	s.reportRefused(now, pairs, refused)
	s.markStale(pairs, alter)
	s.mu.Lock()
	s.mu.report = report
	s.mu.Unlock()
	return err
}

// recall refuses what somebody has refused before.
func (s *ConfigSync) recall(holds plan.Holds) plan.Holds {
	if s.o.Refused == nil {
		return holds
	}
	for key, hold := range holds.Held() {
		if !hold.Accepted && !hold.Refused && s.o.Refused(key, hold.Wish) {
			holds, _ = holds.Refuse(key)
		}
	}
	return holds
}

// observe reads the settings of both sides. Topics that do not tell are refused by name.
func (s *ConfigSync) observe(ctx context.Context, now time.Time) (pairs []plan.Pair, refused map[string]string, err error) {
	pairs = append(pairs, s.o.Pairs()...)
	refused = map[string]string{}
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source.Name, p.Remote
	}
	source, target := map[string]kafka.TopicConfigs{}, map[string]kafka.TopicConfigs{}
	if err := describeInto(ctx, s.source, s.o.SourceBudget, sources, source); err != nil {
		return nil, nil, located("read topic configs", s.o.Flow.Source, err)
	}
	if err := describeInto(ctx, s.target, s.o.TargetBudget, targets, target); err != nil {
		return nil, nil, located("read topic configs", s.o.Flow.Target, err)
	}
	for i := range pairs {
		p := &pairs[i]
		for _, side := range []struct {
			cluster mirror.ClusterAlias
			topic   *plan.Topic
			got     kafka.TopicConfigs
		}{{s.o.Flow.Source, &p.Source, source[p.Source.Name]}, {s.o.Flow.Target, &p.Target, target[p.Remote]}} {
			side.topic.Configs, side.topic.ConfigsErr = side.got.Entries, side.got.Err
			if side.got.Err != nil {
				refused[p.Remote] = fmt.Sprintf("settings of topic %s of cluster %s cannot be read: %s (grant DESCRIBE_CONFIGS on it)", side.topic.Name, side.cluster, kafka.CauseOf(side.got.Err))
			}
		}
		if p.Target.ConfigsErr == nil && s.o.Observe != nil {
			s.o.Observe(p.Remote, p.Target.ID, p.Target.Configs, now)
		}
	}
	return pairs, refused, nil
}

// inherited learns what a topic of the target has without overrides, if need be
// from topics that are no copies.
func (s *ConfigSync) inherited(ctx context.Context, copies []plan.Topic) (map[string]string, error) {
	values := plan.Inherited(copies)
	if len(copies) == 0 || values["retention.ms"] != "" && values["retention.bytes"] != "" && values["cleanup.policy"] != "" {
		return values, nil
	}
	others, err := listTopics(ctx, s.target, s.o.TargetBudget)
	if err != nil {
		return nil, located("list topics", s.o.Flow.Target, err)
	}
	var names []string
	for _, t := range others[:min(len(others), describeBatch)] {
		names = append(names, t.Name)
	}
	configs := map[string]kafka.TopicConfigs{}
	if err := describeInto(ctx, s.target, s.o.TargetBudget, names, configs); err != nil {
		return nil, located("read topic configs", s.o.Flow.Target, err)
	}
	var more []plan.Topic
	for _, c := range configs {
		more = append(more, plan.Topic{Configs: c.Entries})
	}
	maps.Copy(values, plan.Inherited(more))
	return values, nil
}

func (s *ConfigSync) alter(ctx context.Context, batch []plan.AlterConfig, refused map[string]string) error {
	if err := s.o.TargetBudget.Take(ctx); err != nil {
		return err
	}
	changes := make(map[string][]kafka.ConfigChange, len(batch))
	for _, a := range batch {
		for _, c := range a.Changes {
			changes[a.Topic] = append(changes[a.Topic], c.Wire())
		}
	}
	outcome := s.target.AlterTopicConfigs(ctx, changes)
	var passing error
	for _, a := range batch {
		err := outcome[a.Topic]
		if kafka.Heals(err) || kafka.CodeOf(err) == kafka.CodeUnsupportedVersion {
			passing = err
			continue
		}
		if err != nil {
			refused[a.Topic] = fmt.Sprintf("settings of topic %s of cluster %s cannot be changed: %s (grant ALTER_CONFIGS on it, or exclude the setting with config.properties.exclude)", a.Topic, s.o.Flow.Target, kafka.CauseOf(err))
			continue
		}
		for _, c := range a.Changes {
			s.o.Log.LogAttrs(ctx, slog.LevelInfo, "topic setting changed", slog.String(telemetry.KeyRemoteTopic, a.Topic),
				slog.String("change", c.String()), slog.String(telemetry.KeyReason, a.Reason))
		}
	}
	return located("alter topic configs", s.o.Flow.Target, passing)
}

// markStale has the data plane's settings of altered topics read again soon.
func (s *ConfigSync) markStale(pairs []plan.Pair, alter []plan.AlterConfig) {
	if s.o.Observe == nil {
		return
	}
	altered := make(map[string]bool, len(alter))
	for _, a := range alter {
		altered[a.Topic] = true
	}
	for _, p := range pairs {
		if altered[p.Remote] {
			s.o.Observe(p.Remote, p.Target.ID, p.Target.Configs, time.Time{})
		}
	}
}

func (s *ConfigSync) reportRefused(now time.Time, pairs []plan.Pair, refused map[string]string) {
	known := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		known[p.Remote] = true
		var err error
		if reason, bad := refused[p.Remote]; bad {
			err = fmt.Errorf("%s", reason)
		}
		s.conditions.Report(now, p.Remote, err, slog.String(telemetry.KeyRemoteTopic, p.Remote))
	}
	s.conditions.Forget(func(topic string) bool { return known[topic] })
}
