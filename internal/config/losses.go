package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"heliograph/internal/mirror"
)

// policiesKey names the policies of some topics, in the order in which they are
// tried; what they say stands in keys below it.
const policiesKey = "heliograph.policies"

// policySettings are what a policy may say: the key of the same name that holds
// for the whole flow.
var policySettings = []string{"poison", "missing.position", "retention.overtaken", "foreign.writer", "source.recreated", "target.recreated"}

// policyName is what a policy may be called: no dot, so that its keys can be
// taken apart.
var policyName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// losses reads what happens where records cannot be copied.
func (b *builder) losses(f *Flow, r *reader) {
	poison := PoisonStop
	if strings.EqualFold(r.word("errors.tolerance"), "all") {
		poison = PoisonSkipAndRecord
	}
	f.Losses = Losses{
		Policy: r.policy("heliograph.", Policy{
			Poison: poison, Missing: MissingPark, Overtaken: OvertakenContinue, ForeignWriter: foreignDefault(f.Naming),
			SourceRecreated: RecreatedPark, TargetRecreated: RecreatedPark,
		}),
		DeadLetters: r.text("heliograph.dead.letter.topic", mirror.DeadLettersTopic(f.ID.Source)),
	}
	if val, ok := r.get("heliograph.dead.letter.topic"); ok {
		if err := mirror.CheckTopicName(f.Losses.DeadLetters); err != nil {
			b.errorf(val.Origin, "", "not a topic's name: %v", err)
		}
	}
	if _, ok := r.get("heliograph.poison"); !ok && poison == PoisonSkipAndRecord {
		r.note("heliograph.poison", string(poison), r.view["errors.tolerance"].Origin)
	}
	if _, ok := r.get(policiesKey); !ok {
		return
	}
	for _, name := range r.items(policiesKey, "", "") {
		key := policiesKey + "." + name + "."
		if val, ok := r.get(key + "topics"); !ok || len(val.list()) == 0 {
			b.errorf(r.view[policiesKey].Origin, "write "+key+"topics = ... with patterns of source topics", "policy %q of %s names no topics", name, f.ID)
			continue
		}
		f.Losses.Topics = append(f.Losses.Topics, TopicPolicy{
			Name: name, Topics: b.patterns(r, key+"topics", "", ""), Policy: r.policy(key, f.Losses.Policy),
		})
	}
}

// policy reads the settings of a policy; def is where the file is silent.
func (r *reader) policy(prefix string, def Policy) Policy {
	return Policy{
		Poison: Poison(r.choice(prefix+"poison", string(def.Poison),
			string(PoisonStop), string(PoisonSkipAndRecord), string(PoisonDeadLetter))),
		Missing: MissingPosition(r.choice(prefix+"missing.position", string(def.Missing),
			string(MissingPark), string(MissingScan), string(MissingEnd), string(MissingStart))),
		Overtaken: OvertakenRecords(r.choice(prefix+"retention.overtaken", string(def.Overtaken),
			string(OvertakenContinue), string(OvertakenPark))),
		ForeignWriter: ForeignWriter(r.choice(prefix+"foreign.writer", string(def.ForeignWriter),
			string(ForeignPark), string(ForeignNote))),
		SourceRecreated: Recreated(r.choice(prefix+"source.recreated", string(def.SourceRecreated), string(RecreatedPark), string(RecreatedStart))),
		TargetRecreated: Recreated(r.choice(prefix+"target.recreated", string(def.TargetRecreated), string(RecreatedPark), string(RecreatedStart))),
	}
}

// foreignDefault parks where topics keep their names: whoever else writes there
// may be the promoted target's own producers.
func foreignDefault(n Naming) ForeignWriter {
	if n.Identity {
		return ForeignPark
	}
	return ForeignNote
}

// policies checks the list of policies itself.
func (l *linter) policies(val value) {
	seen := map[string]bool{}
	for _, name := range val.list() {
		switch {
		case !policyName.MatchString(name):
			l.errorf(val.Origin, "letters, digits, - and _", "%q cannot be a policy's name", name)
		case seen[name]:
			l.errorf(val.Origin, "remove one", "policy %q stands twice", name)
		}
		seen[name] = true
	}
}

// policy checks one key of one policy.
func (l *linter) policy(p place, val value) {
	name, setting, _ := strings.Cut(strings.TrimPrefix(p.name, policiesKey+"."), ".")
	if !l.declares(p, name) {
		l.errorf(val.Origin, "add it to "+policiesKey, "policy %q is not declared, so it holds for no topic", name)
		return
	}
	if setting == "topics" {
		l.readable(TypePatterns, nil, p.name, val)
		return
	}
	if !slices.Contains(policySettings, setting) {
		hint := fmt.Sprintf("topics, or one of %s", strings.Join(policySettings, ", "))
		if meant := suggest(setting, append([]string{"topics"}, policySettings...)); meant != "" {
			hint = "did you mean " + meant + "? " + hint
		}
		l.errorf(val.Origin, hint, "%q is not a setting of a policy", setting)
		return
	}
	l.readable(TypeString, l.keys.exact["heliograph."+setting].Values, p.name, val)
}

// declares reports whether a list that reaches the key names the policy.
func (l *linter) declares(p place, name string) bool {
	lists := []string{policiesKey, p.prefix() + policiesKey}
	if p.scope == ScopeTop { // a flow may use what stands at the top
		for key := range l.raw {
			if strings.HasSuffix(key, "."+policiesKey) {
				lists = append(lists, key)
			}
		}
	}
	return slices.ContainsFunc(lists, func(key string) bool { return slices.Contains(l.raw[key].list(), name) })
}
