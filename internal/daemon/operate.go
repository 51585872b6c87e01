package daemon

import (
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// operated is a flow that a person can decide things of.
type operated interface {
	Held() []flow.HeldChange
	Decide(topic, setting string, accept bool) error
	Answer(tp kafka.TopicPartition, choice string) error
	Topics() []flow.TopicStatus
}

// operate is a flow that runs, or nil.
func (d *Daemon) operate(id mirror.FlowID) operated {
	d.mu.Lock()
	s := d.mu.byID[id]
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, _ := s.mu.flow.(operated)
	return f
}

// Held are the changes of settings that wait in a flow.
func (d *Daemon) Held(id mirror.FlowID) []flow.HeldChange {
	if f := d.operate(id); f != nil {
		return f.Held()
	}
	return nil
}

// Decide accepts or refuses one of them.
func (d *Daemon) Decide(id mirror.FlowID, topic, setting string, accept bool) error {
	if f := d.operate(id); f != nil {
		return f.Decide(topic, setting, accept)
	}
	return errUnknownFlow
}

// Answer tells where a parked partition goes on.
func (d *Daemon) Answer(id mirror.FlowID, tp kafka.TopicPartition, choice string) error {
	if f := d.operate(id); f != nil {
		return f.Answer(tp, choice)
	}
	return errUnknownFlow
}

// Topics are the topics that a flow selects, as of its last look.
func (d *Daemon) Topics(id mirror.FlowID) []flow.TopicStatus {
	if f := d.operate(id); f != nil {
		return f.Topics()
	}
	return nil
}
