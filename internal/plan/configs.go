package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// ConfigRules say which settings of a source topic its copy gets.
type ConfigRules struct {
	Filter mirror.ConfigFilter
	// DefaultsFromSource copies values that are defaults on the source too
	// (use.defaults.from=source).
	DefaultsFromSource bool
	// Sync says that settings are kept in step (sync.topic.configs.enabled).
	Sync bool
}

// candidate reports whether an entry may be copied at all. What a broker's file
// says is that broker's own matter.
func (r ConfigRules) candidate(e kafka.ConfigEntry) bool {
	return !e.ReadOnly && !e.Sensitive && e.Source != kafka.ConfigStaticBroker && r.Filter.Accepts(e.Name)
}

// inherits reports whether the copy should have no override of the entry. Only
// Kafka's built-in default counts: a dynamic default of the source's brokers is
// a decision that is taken along.
func (r ConfigRules) inherits(e kafka.ConfigEntry) bool {
	return e.Source == kafka.ConfigDefault && !r.DefaultsFromSource
}

// ForCreation selects the settings a new copy is created with, and notes those
// that the target's brokers do not know. A nil known allows all names.
func (r ConfigRules) ForCreation(entries []kafka.ConfigEntry, known map[string]bool) (map[string]string, []string) {
	configs := map[string]string{}
	var unknown []string
	for _, e := range entries {
		switch {
		case !r.candidate(e) || r.inherits(e) || e.Null:
		case known != nil && !known[e.Name]:
			unknown = append(unknown, e.Name)
		default:
			configs[e.Name] = e.Value
		}
	}
	if len(unknown) == 0 {
		return configs, nil
	}
	slices.Sort(unknown)
	return configs, []string{"the target does not know " + strings.Join(unknown, ", ")}
}

// ConfigInput is one round of keeping settings in step.
type ConfigInput struct {
	Flow      mirror.FlowID
	Pairs     []Pair // existing copies, with the settings of both sides
	Rules     ConfigRules
	Inherited map[string]string // see [Inherited]
	HoldFor   time.Duration     // how long a dangerous change waits; 0 does not hold
	Holds     Holds             // what the last round returned
	Now       time.Time
}

// ConfigPlan is what a round has to do and to remember.
type ConfigPlan struct {
	Actions []Action // AlterConfig and HoldConfig, by topic
	Holds   Holds    // for the next round
}

// Inherited collects the values that topics of the target have without an
// override of their own: what deleting an override leads to.
func Inherited(target []Topic) map[string]string {
	values := map[string]string{}
	for _, t := range target {
		for _, e := range t.Configs {
			if e.Source != kafka.ConfigTopic && !e.Null && !e.Sensitive {
				values[e.Name] = e.Value
			}
		}
	}
	return values
}

// Known is the set of setting names in the target's topics; nil where none was described.
func Known(target []Topic) map[string]bool {
	var known map[string]bool
	for _, t := range target {
		for _, e := range t.Configs {
			if known == nil {
				known = map[string]bool{}
			}
			known[e.Name] = true
		}
	}
	return known
}

// Configs plans the changes that bring each copy's settings to its source's.
// Settings that are excluded, or that only the target has and the source's
// brokers do not know, are never touched. A pair whose settings could not be
// read on either side is left alone and keeps its holds.
func Configs(in ConfigInput) ConfigPlan {
	var plan ConfigPlan
	next := in.Holds.clone()
	pairs := slices.SortedFunc(slices.Values(in.Pairs), func(a, b Pair) int { return cmp.Compare(a.Remote, b.Remote) })
	topics := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		topics[p.Remote] = true
		if !p.Exists || p.Source.Configs == nil || p.Target.Configs == nil {
			continue
		}
		apply, held := in.pair(p, next)
		if len(apply) > 0 {
			plan.Actions = append(plan.Actions, AlterConfig{
				Source: p.Source.Name, Topic: p.Remote, Changes: apply,
				Reason: fmt.Sprintf("as topic %s of %s", p.Source.Name, in.Flow.Source),
			})
		}
		plan.Actions = append(plan.Actions, held...)
	}
	next.forgetTopics(topics)
	plan.Holds = next
	return plan
}

// pair splits one topic's changes into those to make and those to hold.
func (in ConfigInput) pair(p Pair, holds Holds) (apply []Change, held []Action) {
	target := make(map[string]kafka.ConfigEntry, len(p.Target.Configs))
	for _, e := range p.Target.Configs {
		target[e.Name] = e
	}
	want := in.wanted(p.Source.Configs, target)
	deletes := in.deletesAfter(target, want)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		c, key := want[name], HoldKey{Topic: p.Remote, Config: name}
		if c.settled {
			holds.settle(key, c.wish())
			continue
		}
		danger := in.danger(c, deletes)
		if danger == "" || in.HoldFor <= 0 || holds.passes(key, c.wish(), in.Now) {
			c.Why = danger
			apply = append(apply, c.Change)
			continue
		}
		h, fresh := holds.hold(key, c.wish(), in.Now, in.HoldFor)
		held = append(held, HoldConfig{
			Source: p.Source.Name, Topic: p.Remote, Change: c.Change, Hold: h, New: fresh,
			Reason: danger + "; accept it to have it made now",
		})
	}
	holds.release(p.Remote, want)
	return apply, held
}

// wantedChange is a change with whether the target already is where it leads.
type wantedChange struct {
	Change
	settled bool
}

// wish is what the source asks for, comparable between rounds.
func (c wantedChange) wish() string {
	if c.Delete {
		return "default"
	}
	return "=" + c.New
}

// wanted is the wish for each setting that is copied and that the target knows.
func (in ConfigInput) wanted(source []kafka.ConfigEntry, target map[string]kafka.ConfigEntry) map[string]wantedChange {
	want := map[string]wantedChange{}
	for _, e := range source {
		have, known := target[e.Name]
		if !known || !in.Rules.candidate(e) {
			continue
		}
		c := wantedChange{Change: Change{Name: e.Name, Old: have.Value}}
		overridden := have.Source == kafka.ConfigTopic
		switch {
		case in.Rules.inherits(e):
			c.Delete = true
			c.settled = !overridden
		case e.Null:
			continue
		default:
			c.New = e.Value
			c.settled = overridden && !have.Null && have.Value == e.Value
		}
		want[e.Name] = c
	}
	return want
}
