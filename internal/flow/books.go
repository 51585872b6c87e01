package flow

import (
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/syncer"
)

// Book is a bookkeeping topic of a flow, on the cluster where it lies.
type Book struct {
	On mirror.ClusterAlias
	syncer.InternalTopic
}

// Books are the bookkeeping topics that the flow makes where they are missing.
// The loss ledger is not among them: its topic is made with the first loss.
func (s Spec) Books() []Book {
	var books []Book
	onTarget := func(t syncer.InternalTopic) { books = append(books, Book{s.ID.Target, t}) }
	if s.Heartbeats.Every > 0 {
		onTarget(syncer.HeartbeatsTopic(s.Policy, s.Heartbeats.ReplicationFactor))
	}
	if !s.Enabled {
		return books
	}
	positions := syncer.PositionsTopic(s.ID.Source, s.Positions.Partitions, s.Positions.ReplicationFactor)
	runs := positions
	positions.Name, runs.Name = s.Positions.Topic, mirror.OffsetRunsTopic(s.ID.Source)
	onTarget(positions)
	onTarget(runs)
	if s.Checkpoints.EmitEvery > 0 {
		onTarget(syncer.CheckpointsTopic(s.Policy, s.ID.Source, s.Checkpoints.ReplicationFactor))
	}
	if o := s.OffsetSyncs; o.Enabled {
		on := s.ID.Target
		if o.OnSource {
			on = s.ID.Source
		}
		books = append(books, Book{on, syncer.OffsetSyncsTopic(s.Policy, s.ID, o.OnSource, o.ReplicationFactor)})
	}
	return books
}

// booksOn are the flow's books on one of its clusters.
func (s Spec) booksOn(c mirror.ClusterAlias) []syncer.InternalTopic {
	var topics []syncer.InternalTopic
	for _, b := range s.Books() {
		if b.On == c {
			topics = append(topics, b.InternalTopic)
		}
	}
	return topics
}

// Desired is what the flow asks of the target's topics.
func (s Spec) Desired() plan.Desired {
	reserved := plan.InternalNames(s.ID, s.Policy)
	reserved[s.Positions.Topic] = "the positions of this flow"
	reserved[s.Losses.DeadLetters] = "the dead letters of this flow"
	return plan.Desired{
		Flow: s.ID, Selection: s.Selection, ReplicationFactor: s.Topics.ReplicationFactor, Reserved: reserved,
		Configs: plan.ConfigRules{
			Filter: s.Configs, DefaultsFromSource: s.Topics.DefaultsFromSource, Sync: s.Topics.SyncConfigsEvery > 0,
		},
	}
}
