package plan

import (
	"cmp"
	"fmt"
	"slices"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Topic is one topic as its cluster tells it.
type Topic struct {
	Name       string
	ID         kafka.TopicID
	Partitions int32
	Internal   bool  // flagged by the broker; never copied
	Err        error // why metadata could not describe it

	Configs    []kafka.ConfigEntry // nil where they were not asked for
	ConfigsErr error               // why they could not be read
}

// Observed is what both clusters hold.
type Observed struct {
	Source, Target []Topic
}

// Desired is what the flow's configuration asks for.
type Desired struct {
	Flow              mirror.FlowID
	Selection         mirror.TopicSelection
	ReplicationFactor int16 // -1 is the target's default
	Configs           ConfigRules
	// Reserved are names on the target that somebody else writes: MirrorMaker's
	// internal topics, the remote topics of other flows. The value says who.
	Reserved map[string]string
	// Known are the setting names the target's brokers know; nil allows all.
	Known map[string]bool
}

// Pair is a source topic and its copy, which may not exist yet.
type Pair struct {
	Source Topic
	Remote string
	Target Topic // zero unless Exists
	Exists bool
}

// Skipped is a source topic that is not copied, with the reason in MirrorMaker's terms.
type Skipped struct {
	Topic, Reason string
}

// Matched tells for every source topic what becomes of it. All parts are ordered by name.
type Matched struct {
	Pairs   []Pair
	Parked  []Park
	Skipped []Skipped
}

// Total is how many source topics were looked at.
func (m Matched) Total() int { return len(m.Pairs) + len(m.Parked) + len(m.Skipped) }

// Missing are the source names of pairs whose copy does not exist.
func (m Matched) Missing() []string {
	var names []string
	for _, p := range m.Pairs {
		if !p.Exists {
			names = append(names, p.Source.Name)
		}
	}
	return names
}

// Match decides for every source topic whether it is copied and to which name,
// and parks what cannot be copied. It needs no settings.
func Match(o Observed, d Desired) Matched {
	source := slices.SortedFunc(slices.Values(o.Source), func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	names := newNameCheck(o.Target, d.Reserved)
	var m Matched
	for _, t := range source {
		if t.Internal {
			m.Skipped = append(m.Skipped, Skipped{t.Name, "internal topic of the broker"})
			continue
		}
		if ok, reason := d.Selection.Replicates(t.Name); !ok {
			m.Skipped = append(m.Skipped, Skipped{t.Name, reason})
			continue
		}
		remote := d.Selection.Policy.RemoteTopic(d.Flow.Source, t.Name)
		p := Pair{Source: t, Remote: remote}
		p.Target, p.Exists = names.existing(remote)
		if park, bad := unusable(p, d.Flow); bad {
			m.Parked = append(m.Parked, park)
			continue
		}
		if reason, hint := names.claim(t.Name, remote); reason != "" {
			m.Parked = append(m.Parked, Park{Topic: t.Name, Remote: remote, Reason: reason, Hint: hint})
			continue
		}
		m.Pairs = append(m.Pairs, p)
	}
	return m
}

// unusable parks a pair that a cluster does not let us describe.
func unusable(p Pair, flow mirror.FlowID) (Park, bool) {
	for _, side := range []struct {
		topic   Topic
		cluster mirror.ClusterAlias
		rights  string
	}{{p.Source, flow.Source, "READ, DESCRIBE and DESCRIBE_CONFIGS"}, {p.Target, flow.Target, "DESCRIBE and WRITE"}} {
		err := side.topic.Err
		if err == nil {
			continue
		}
		hint := "it is looked at again in the next round"
		if kafka.CodeOf(err) == kafka.CodeTopicAuthorizationFailed {
			hint = fmt.Sprintf("grant %s on topic %s of cluster %s", side.rights, side.topic.Name, side.cluster)
		}
		return Park{
			Topic: p.Source.Name, Remote: p.Remote, Hint: hint,
			Reason: fmt.Sprintf("topic %s of cluster %s cannot be described: %s", side.topic.Name, side.cluster, kafka.CauseOf(err)),
		}, true
	}
	return Park{}, false
}

// Topics plans creation and growth for the matched topics. Pairs without a copy
// need their source's settings filled in. Parked topics come out as actions too,
// so that the result is all there is to do and to say.
func Topics(m Matched, d Desired) []Action {
	var actions []Action
	for _, p := range m.Pairs {
		switch {
		case !p.Exists:
			actions = append(actions, create(p, d))
		case p.Target.Partitions < p.Source.Partitions:
			actions = append(actions, AddPartitions{
				Source: p.Source.Name, Topic: p.Remote, From: p.Target.Partitions, To: p.Source.Partitions,
				Reason: fmt.Sprintf("topic %s of %s has %d", p.Source.Name, d.Flow.Source, p.Source.Partitions),
			})
		}
	}
	for _, p := range m.Parked {
		actions = append(actions, p)
	}
	return actions
}

// create is the creation of a pair's copy, or a Park where its settings cannot
// be read although they should be copied: a topic that should be compacted and
// is not would lose records.
func create(p Pair, d Desired) Action {
	a := CreateTopic{
		Source: p.Source.Name, Topic: p.Remote,
		Partitions: p.Source.Partitions, ReplicationFactor: d.ReplicationFactor,
		Reason: fmt.Sprintf("topic %s of %s has no copy on %s", p.Source.Name, d.Flow.Source, d.Flow.Target),
	}
	if err := p.Source.ConfigsErr; err != nil {
		reason := fmt.Sprintf("the settings of topic %s of cluster %s cannot be read: %s", p.Source.Name, d.Flow.Source, kafka.CauseOf(err))
		hint := fmt.Sprintf("grant DESCRIBE_CONFIGS on topic %s of cluster %s", p.Source.Name, d.Flow.Source)
		if d.Configs.Sync {
			return Park{
				Topic: p.Source.Name, Remote: p.Remote, Reason: reason,
				Hint: hint + ", or set sync.topic.configs.enabled=false to have it created with the target's defaults",
			}
		}
		a.Notes = []string{reason + ", so it gets the target's defaults (" + hint + ")"}
		return a
	}
	a.Configs, a.Notes = d.Configs.ForCreation(p.Source.Configs, d.Known)
	return a
}
