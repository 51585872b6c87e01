package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// An Action is one thing to do, or to say, on the target cluster. Its String is
// one line: what, with what, and in brackets why.
type Action interface {
	fmt.Stringer
	action()
}

// CreateTopic makes a remote topic with the settings it needs from its first
// moment: a compacted topic must never have lived as one that deletes.
type CreateTopic struct {
	Source            string // name on the source
	Topic             string // name on the target
	Partitions        int32
	ReplicationFactor int16 // -1 is the target's default
	Configs           map[string]string
	Reason            string
	Notes             []string // settings that are not taken along, and why
}

// AddPartitions grows a remote topic to its source's partition count.
type AddPartitions struct {
	Source, Topic string
	From, To      int32
	Reason        string
}

// AlterConfig sets and deletes settings of one remote topic in one request.
type AlterConfig struct {
	Source, Topic string
	Changes       []Change
	Reason        string
}

// Change is one setting's way from what the target has to what it should have.
type Change struct {
	Name   string
	Old    string // effective value on the target before
	New    string // ignored when Delete
	Delete bool   // remove the override, so that the target's default holds
	Why    string
}

// String writes the change as name: old -> new.
func (c Change) String() string {
	switch {
	case c.Delete:
		return fmt.Sprintf("%s: %s -> the target's default", c.Name, orUnset(c.Old))
	case c.Old == c.New:
		return fmt.Sprintf("%s: %s, now set on the topic", c.Name, orUnset(c.Old))
	}
	return fmt.Sprintf("%s: %s -> %s", c.Name, orUnset(c.Old), orUnset(c.New))
}

// Wire is the change as the admin request takes it.
func (c Change) Wire() kafka.ConfigChange {
	return kafka.ConfigChange{Name: c.Name, Value: c.New, Delete: c.Delete}
}

// HoldConfig says that a change is not made now because it could delete records.
type HoldConfig struct {
	Source, Topic string
	Change        Change
	Hold          Hold
	New           bool // seen for the first time in this round: say it loudly
	Reason        string
}

// GrantACL creates one binding on the target.
type GrantACL struct {
	ACL    kafka.ACL
	Source kafka.ACL
	Reason string
}

// RefuseACL names a binding of the source that is deliberately not copied.
type RefuseACL struct {
	Source kafka.ACL
	Reason string
}

// CommitGroup writes offsets of one group on the target.
type CommitGroup struct {
	Group   string
	Offsets []CommitOffset
}

// CommitOffset is one partition's offset to write, with its reason.
type CommitOffset struct {
	kafka.TopicPartition
	Offset   mirror.DownstreamOffset
	Metadata string
	Reason   string
}

// Park leaves a topic out until somebody has done what Hint says. Others run.
type Park struct {
	Topic  string // on the source
	Remote string
	Reason string
	Hint   string
}

func (CreateTopic) action()   {}
func (AddPartitions) action() {}
func (AlterConfig) action()   {}
func (HoldConfig) action()    {}
func (GrantACL) action()      {}
func (RefuseACL) action()     {}
func (CommitGroup) action()   {}
func (Park) action()          {}

// String names the topic, its shape, its settings and the reason.
func (a CreateTopic) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "create topic %s: %s, %s", a.Topic, count(int(a.Partitions), "partition"), factor(a.ReplicationFactor))
	for _, name := range slices.Sorted(maps.Keys(a.Configs)) {
		fmt.Fprintf(&b, ", %s=%s", name, a.Configs[name])
	}
	fmt.Fprintf(&b, " (%s)", a.Reason)
	for _, note := range a.Notes {
		b.WriteString("; " + note)
	}
	return b.String()
}

// String names the topic and both counts.
func (a AddPartitions) String() string {
	return fmt.Sprintf("add partitions to topic %s: %d -> %d (%s)", a.Topic, a.From, a.To, a.Reason)
}

// String names the topic and each change.
func (a AlterConfig) String() string {
	parts := make([]string, len(a.Changes))
	for i, c := range a.Changes {
		parts[i] = c.String()
	}
	return fmt.Sprintf("alter topic %s: %s (%s)", a.Topic, strings.Join(parts, ", "), a.Reason)
}

// String names the topic, the change and until when it waits.
func (a HoldConfig) String() string {
	return fmt.Sprintf("hold topic %s: %s until %s (%s)", a.Topic, a.Change,
		a.Hold.Until.UTC().Format("2006-01-02T15:04:05Z"), a.Reason)
}

// String names the binding.
func (a GrantACL) String() string {
	return fmt.Sprintf("grant %s (%s)", describeACL(a.ACL), a.Reason)
}

// String names the binding that stays behind.
func (a RefuseACL) String() string {
	return fmt.Sprintf("do not copy %s (%s)", describeACL(a.Source), a.Reason)
}

// String names the group and each offset.
func (a CommitGroup) String() string {
	parts := make([]string, len(a.Offsets))
	for i, o := range a.Offsets {
		parts[i] = fmt.Sprintf("%s=%d (%s)", o.TopicPartition, int64(o.Offset), o.Reason)
	}
	return fmt.Sprintf("commit group %s: %s", a.Group, strings.Join(parts, ", "))
}

// String names the topic, the reason and the way out.
func (a Park) String() string {
	s := fmt.Sprintf("park topic %s: %s", a.Topic, a.Reason)
	if a.Hint != "" {
		s += " (" + a.Hint + ")"
	}
	return s
}

func describeACL(a kafka.ACL) string {
	return fmt.Sprintf("%s %s on %s %s %s to %s from host %s",
		a.Permission, a.Operation, a.PatternType, a.ResourceType, a.ResourceName, a.Principal, a.Host)
}

func factor(n int16) string {
	if n < 0 {
		return "the target's default replication factor"
	}
	return fmt.Sprintf("replication factor %d", n)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orUnset(v string) string {
	if v == "" {
		return "(empty)"
	}
	return v
}
