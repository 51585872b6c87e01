package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// learnSettings asks for the settings of target topics that are not known, have
// been made again, or were not looked at for a while.
func (s *TopicSync) learnSettings(ctx context.Context, now time.Time, pairs []plan.Pair) error {
	ids := map[string]kafka.TopicID{}
	var names []string
	s.mu.Lock()
	for _, p := range pairs {
		if !p.Exists {
			continue
		}
		have, ok := s.mu.settings[p.Remote]
		if !ok || have.id != p.Target.ID || now.Sub(have.at) >= s.o.SettingsAge {
			names = append(names, p.Remote)
			ids[p.Remote] = p.Target.ID
		}
	}
	s.mu.Unlock()
	configs := map[string]kafka.TopicConfigs{}
	err := describeInto(ctx, s.target, s.o.TargetBudget, names, configs)
	for name, c := range configs {
		s.noteSettings(now, name, ids[name], c)
	}
	return located("read topic configs", s.o.Desired.Flow.Target, err)
}

func (s *TopicSync) noteSettings(now time.Time, name string, id kafka.TopicID, c kafka.TopicConfigs) {
	if kafka.Heals(c.Err) {
		return // not there yet; asked again in the next round
	}
	err := c.Err
	if err != nil {
		err = fmt.Errorf("settings of topic %s of cluster %s cannot be read, so batches are sent as if it had none: %s (grant DESCRIBE_CONFIGS on it)",
			name, s.o.Desired.Flow.Target, kafka.CauseOf(err))
	}
	s.settingsConditions.Report(now, name, err, slog.String(telemetry.KeyRemoteTopic, name))
	s.Observe(name, id, c.Entries, now)
}

// remember keeps what this round saw for those who ask.
func (s *TopicSync) remember(now time.Time, m plan.Matched, parked map[string]plan.Park, target []plan.Topic) {
	report := TopicReport{At: now, Total: m.Total(), Skipped: m.Skipped}
	var existing []plan.Pair
	remotes := map[string]bool{}
	for _, p := range m.Pairs {
		t := TopicStatus{Source: p.Source.Name, Remote: p.Remote, Partitions: p.Source.Partitions, State: TopicReplicated}
		if p.Exists {
			existing = append(existing, p)
		} else {
			t.State = TopicCreating
		}
		if park, bad := parked[p.Source.Name]; bad {
			t.State, t.Reason, t.Hint = TopicParked, park.Reason, park.Hint
		}
		remotes[p.Remote] = true
		report.Topics = append(report.Topics, t)
	}
	for _, p := range m.Parked {
		report.Topics = append(report.Topics, TopicStatus{Source: p.Topic, Remote: p.Remote, State: TopicParked, Reason: p.Reason, Hint: p.Hint})
	}
	slices.SortFunc(report.Topics, func(a, b TopicStatus) int {
		return kafka.TopicPartition{Topic: a.Source}.Compare(kafka.TopicPartition{Topic: b.Source})
	})
	counts := make(map[string]int32, len(target))
	for _, t := range target {
		counts[t.Name] = t.Partitions
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.report, s.mu.pairs, s.mu.counts = report, existing, counts
	for name := range s.mu.settings {
		if !remotes[name] {
			delete(s.mu.settings, name)
		}
	}
}

// publish hands the list of replicas on if it changed. A topic that is parked in
// this round and was replicated before stays in the list: the data plane finds
// out for itself what it may still do.
func (s *TopicSync) publish(m plan.Matched, source []plan.Topic) {
	s.noteFirst(source)
	list := []Replica{}
	s.mu.Lock()
	for _, p := range m.Pairs {
		if p.Exists {
			list = s.appendReplicasLocked(list, p)
		}
	}
	s.mu.Unlock()
	parked := make(map[string]bool, len(m.Parked))
	for _, p := range m.Parked {
		parked[p.Topic] = true
	}
	for _, r := range s.published {
		if parked[r.Source.Topic] {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Replica) int { return a.Source.Compare(b.Source) })
	if s.published != nil && slices.Equal(s.published, list) {
		return
	}
	s.published = list
	s.o.Publish(slices.Clone(list))
}

// noteFirst remembers which partitions the source had in the first round.
func (s *TopicSync) noteFirst(source []plan.Topic) {
	if s.first != nil {
		return
	}
	s.first = make(map[string]int32, len(source))
	for _, t := range source {
		s.first[t.Name] = t.Partitions
	}
}

func (s *TopicSync) appendReplicasLocked(list []Replica, p plan.Pair) []Replica {
	old, was := s.first[p.Source.Name]
	for n := range min(p.Source.Partitions, p.Target.Partitions) {
		list = append(list, Replica{
			Source: kafka.TopicPartition{Topic: p.Source.Name, Partition: n}, SourceID: p.Source.ID,
			Target: kafka.TopicPartition{Topic: p.Remote, Partition: n}, TargetID: p.Target.ID,
			Settings: s.mu.settings[p.Remote].TargetSettings,
			Born:     !was || n >= old,
		})
	}
	return list
}
