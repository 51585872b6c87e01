package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
	"heliograph/internal/syncer"
)

// The errors of a person's decisions.
var (
	ErrNothingWaits = errors.New("nothing waits for that decision")
	ErrElsewhere    = errors.New("another instance does this part of the flow's work: ask it")
)

// HeldChange is a change of a copy's setting that waits because it could delete records.
type HeldChange struct {
	Topic, Setting string // on the target
	Wish           string // what the source has
	Since, Until   time.Time
	Accepted       bool
	Refused        bool
}

// TopicStatus is one selected topic.
type TopicStatus = syncer.TopicStatus

// Held are the changes that wait, by topic and setting.
func (f *Flow) Held() []HeldChange {
	configs := f.now().configs
	if configs == nil {
		return nil
	}
	var all []HeldChange
	for key, h := range configs.Holds() {
		all = append(all, HeldChange{
			Topic: key.Topic, Setting: key.Config, Wish: h.Wish, Since: h.Since, Until: h.Until, Accepted: h.Accepted, Refused: h.Refused,
		})
	}
	slices.SortFunc(all, func(a, b HeldChange) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Setting, b.Setting))
	})
	return all
}

// Decide lets a waiting change be made now, or keeps it from being made until the source
// wishes something else.
func (f *Flow) Decide(topic, setting string, accept bool) error {
	p := f.now()
	if p.configs == nil || !p.configs.Decide(plan.HoldKey{Topic: topic, Config: setting}, accept) {
		if p.keeper != nil && !p.keeper.Owns(jobLane) {
			return ErrElsewhere
		}
		return ErrNothingWaits
	}
	p.kick()
	return nil
}

// Answer tells where a parked partition goes on: "start", "end", "scan" or "keep".
func (f *Flow) Answer(tp kafka.TopicPartition, choice string) error {
	p := f.now()
	if p.task == nil {
		return ErrNothingWaits
	}
	for _, t := range p.task.Snapshot() {
		if t.Source != tp {
			continue
		}
		if t.State != "parked" {
			return fmt.Errorf("partition %s is %s: %w", tp, t.State, ErrNothingWaits)
		}
		if !p.keeper.Answer(tp, plan.Choice(choice)) {
			return ErrElsewhere
		}
		return nil
	}
	return ErrElsewhere
}

// Topics are the topics that the filters select, as of the last look.
func (f *Flow) Topics() []TopicStatus {
	topics := f.now().topics
	if topics == nil {
		return nil
	}
	return topics.Report().Topics
}

// now are the parts as they are; empty before the flow runs.
func (f *Flow) now() parts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.parts
}
