package config

import (
	"strings"
	"testing"
)

const policies = base + `
heliograph.poison = dead-letter
heliograph.dead.letter.topic = sick
A->B.heliograph.policies = money, clicks
heliograph.policies.money.topics = payments.*, ledger
heliograph.policies.money.poison = stop
heliograph.policies.money.retention.overtaken = park
A->B.heliograph.policies.clicks.topics = clicks-.*, payments-test
A->B.heliograph.policies.clicks.poison = skip-and-record
A->B.heliograph.policies.clicks.foreign.writer = park
A->B.heliograph.policies.clicks.source.recreated = start
`

func TestPoliciesOfTopics(t *testing.T) {
	d := load(policies)
	wantProblems(t, d.Problems, Info, nil)
	l := flowOf(t, d, "A->B").Losses
	whole := Policy{Poison: PoisonDeadLetter, Missing: MissingPark, Overtaken: OvertakenContinue, ForeignWriter: ForeignNote, SourceRecreated: RecreatedPark, TargetRecreated: RecreatedPark}
	money, clicks := whole, whole
	money.Poison, money.Overtaken = PoisonStop, OvertakenPark
	clicks.Poison, clicks.ForeignWriter, clicks.SourceRecreated = PoisonSkipAndRecord, ForeignPark, RecreatedStart
	if l.Policy != whole || l.DeadLetters != "sick" || len(l.Topics) != 2 {
		t.Fatalf("%+v", l)
	}
	for i, want := range []TopicPolicy{{Name: "money", Policy: money}, {Name: "clicks", Policy: clicks}} {
		if got := l.Topics[i]; got.Name != want.Name || got.Policy != want.Policy {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if !l.Topics[0].Topics.Match("payments-eu") || l.Topics[0].Topics.Match("clicks-eu") || !l.Topics[1].Topics.Match("clicks-eu") {
		t.Error("the patterns do not match what they name")
	}
	quiet := flowOf(t, load(base), "A->B").Losses
	if quiet.Poison != PoisonStop || quiet.DeadLetters != "mm2-dead-letters.A.internal" || len(quiet.Topics) != 0 {
		t.Errorf("defaults: %+v", quiet)
	}
}

func TestBadPoliciesAreRefused(t *testing.T) {
	const good = base + "heliograph.policies = a\nheliograph.policies.a.topics = x\n"
	for _, row := range []struct{ text, want string }{
		{base + "heliograph.policies = a\n", `policy "a" of A->B names no topics`},
		{base + "heliograph.policies = a\nheliograph.policies.a.topics =\n", "names no topics"},
		{base + "heliograph.policies = a.b\nheliograph.policies.a.b.topics = x\n", "cannot be a policy's name"},
		{base + "heliograph.policies = a, a\nheliograph.policies.a.topics = x\n", "stands twice"},
		{base + "heliograph.policies.a.topics = x\n", "is not declared"},
		{base + "A->B.heliograph.policies.a.poison = stop\n", "is not declared"},
		{good + "heliograph.policies.a.poison = explode\n", `"explode" is not a value of it`},
		{good + "heliograph.policies.a.retention.overtaken = dead-letter\n", "is not a value of it"},
		{good + "heliograph.policies.a.poisson = stop\n", `"poisson" is not a setting of a policy`},
		{good + "heliograph.policies.a = stop\n", `"" is not a setting of a policy`},
		{base + "heliograph.policies = a\nheliograph.policies.a.topics = *\n", "alone is not a pattern"},
		{base + "heliograph.dead.letter.topic = a b\n", "not a topic's name"},
	} {
		err := load(row.text).Err()
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", strings.TrimPrefix(row.text, base), err, row.want)
		}
	}
}
