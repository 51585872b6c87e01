package plan

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
)

func TestCreationTakesOverridesAndOnlyThose(t *testing.T) {
	rules := desired(t, false).Configs
	source := []kafka.ConfigEntry{
		{Name: "cleanup.policy", Value: "compact", Source: kafka.ConfigTopic},
		{Name: "min.insync.replicas", Value: "2", Source: kafka.ConfigTopic},
		{Name: "retention.ms", Value: "604800000", Source: kafka.ConfigDefault},
		{Name: "retention.bytes", Value: "77", Source: kafka.ConfigDynamicDefaultBroker},
		{Name: "segment.bytes", Value: "78", Source: kafka.ConfigDynamicBroker},
		{Name: "segment.ms", Value: "79", Source: kafka.ConfigStaticBroker},
		{Name: "secret", Null: true, Sensitive: true, Source: kafka.ConfigTopic},
		{Name: "fixed", Value: "1", ReadOnly: true, Source: kafka.ConfigTopic},
		{Name: "nothing", Null: true, Source: kafka.ConfigTopic},
	}
	want := map[string]string{"cleanup.policy": "compact", "retention.bytes": "77", "segment.bytes": "78"}
	got, _ := rules.ForCreation(source, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults from the target (-want +got):\n%s", diff)
	}
	rules.DefaultsFromSource = true
	want["retention.ms"] = "604800000"
	got, _ = rules.ForCreation(source, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults from the source (-want +got):\n%s", diff)
	}
	rules.Filter.Exclude = patterns(t, "cleanup.*", "retention.*")
	got, _ = rules.ForCreation(source, nil)
	if diff := cmp.Diff(map[string]string{"segment.bytes": "78", "min.insync.replicas": "2"}, got); diff != "" {
		t.Errorf("own excludes (-want +got):\n%s", diff)
	}
}

// start is when the rounds of these tests begin.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// configRound plans one topic pair.
func configRound(t *testing.T, holds Holds, now time.Time, change func(*ConfigInput), source, target map[string]string) ConfigPlan {
	t.Helper()
	in := ConfigInput{
		Flow: flowAB, Rules: desired(t, false).Configs, Inherited: defaults, HoldFor: 24 * time.Hour, Holds: holds, Now: now,
		Pairs: []Pair{{Source: topic("orders", 1, source), Remote: "A.orders", Target: topic("A.orders", 1, target), Exists: true}},
	}
	if change != nil {
		change(&in)
	}
	return Configs(in)
}

func TestConfigPlansReadAsTheyAreDone(t *testing.T) {
	cases := []struct {
		name           string
		change         func(*ConfigInput)
		source, target map[string]string
	}{
		{name: "in-step", source: map[string]string{"segment.ms": "5"}, target: map[string]string{"segment.ms": "5"}},
		{name: "set-and-delete", source: map[string]string{"max.message.bytes": "5"}, target: map[string]string{"segment.ms": "9"}},
		{name: "excluded-stays", target: map[string]string{"min.insync.replicas": "2"}},
		{name: "retention-raised", source: map[string]string{"retention.ms": "-1", "retention.bytes": "90"}, target: map[string]string{"retention.bytes": "80"}},
		{name: "retention-lowered", source: map[string]string{"retention.ms": "1000", "retention.bytes": "80", "segment.ms": "7"}},
		{name: "retention-lowered-without-holding", change: func(in *ConfigInput) { in.HoldFor = 0 }, source: map[string]string{"retention.ms": "1000"}},
		{
			name: "retention-lowered-where-nothing-is-deleted", source: map[string]string{"retention.ms": "1000", "cleanup.policy": "compact"},
			target: map[string]string{"cleanup.policy": "compact"},
		},
		{name: "policy-gains-delete", source: map[string]string{"cleanup.policy": "compact,delete"}, target: map[string]string{"cleanup.policy": "compact"}},
		{name: "policy-falls-back-to-delete", target: map[string]string{"cleanup.policy": "compact"}},
		{name: "policy-gains-compact", source: map[string]string{"cleanup.policy": "compact"}},
		{name: "tombstones-sooner", source: map[string]string{"delete.retention.ms": "10"}},
		{name: "override-removed-to-less", target: map[string]string{"retention.ms": "900000000"}},
		{name: "override-removed-to-more", target: map[string]string{"retention.bytes": "1000"}},
		{name: "override-removed-default-unknown", change: func(in *ConfigInput) { in.Inherited = nil }, target: map[string]string{"retention.bytes": "1000"}},
		{
			name: "defaults-from-source", change: func(in *ConfigInput) { in.Rules.DefaultsFromSource = true },
			target: map[string]string{"retention.bytes": "2000", "delete.retention.ms": "86400000"},
		},
		{name: "unreadable", change: func(in *ConfigInput) { in.Pairs[0].Source.Configs = nil }, target: map[string]string{"segment.ms": "9"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			golden(t, "configs-"+c.name, lines(configRound(t, Holds{}, start, c.change, c.source, c.target).Actions))
		})
	}
}

func TestHeldChangeIsMadeWhenItsTimeIsOver(t *testing.T) {
	low := map[string]string{"retention.ms": "1000"}
	p := configRound(t, Holds{}, start, nil, low, nil)
	if h, ok := p.Actions[0].(HoldConfig); !ok || !h.New || !h.Hold.Until.Equal(start.Add(24*time.Hour)) {
		t.Fatalf("first round: %v, want a new hold of a day", p.Actions)
	}
	p = configRound(t, p.Holds, start.Add(23*time.Hour), nil, low, nil)
	if h, ok := p.Actions[0].(HoldConfig); !ok || h.New {
		t.Fatalf("an hour before: %v, want the same hold", p.Actions)
	}
	p = configRound(t, p.Holds, start.Add(24*time.Hour), nil, low, nil)
	if _, ok := p.Actions[0].(AlterConfig); !ok {
		t.Fatalf("after a day: %v, want the change", p.Actions)
	}
}

func TestAnotherWishStartsAnotherHold(t *testing.T) {
	p := configRound(t, Holds{}, start, nil, map[string]string{"retention.ms": "1000"}, nil)
	p = configRound(t, p.Holds, start.Add(20*time.Hour), nil, map[string]string{"retention.ms": "10"}, nil)
	p = configRound(t, p.Holds, start.Add(25*time.Hour), nil, map[string]string{"retention.ms": "10"}, nil)
	if _, ok := p.Actions[0].(HoldConfig); !ok {
		t.Fatalf("%v, want the second wish still held", p.Actions)
	}
}

func TestAcceptedChangeIsMadeAtOnce(t *testing.T) {
	low := map[string]string{"retention.ms": "1000"}
	key := HoldKey{"A.orders", "retention.ms"}
	p := configRound(t, Holds{}, start, nil, low, nil)
	if _, ok := p.Holds.Accept(HoldKey{"A.orders", "segment.ms"}); ok {
		t.Fatal("accepted what is not held")
	}
	holds, ok := p.Holds.Accept(key)
	if !ok {
		t.Fatal("the held change was not found")
	}
	if p.Holds.Held()[key].Accepted {
		t.Fatal("accepting changed the value it was asked of")
	}
	p = configRound(t, holds, start.Add(time.Minute), nil, low, nil)
	if _, ok := p.Actions[0].(AlterConfig); !ok {
		t.Fatalf("%v, want the change", p.Actions)
	}
}

func TestHoldEndsWhenTheSourceTakesItBack(t *testing.T) {
	p := configRound(t, Holds{}, start, nil, map[string]string{"retention.ms": "1000"}, nil)
	p = configRound(t, p.Holds, start.Add(time.Hour), nil, nil, nil)
	if len(p.Actions) != 0 || len(p.Holds.Held()) != 0 {
		t.Fatalf("actions %v, held %v, want none", p.Actions, p.Holds.Held())
	}
}

// An operator's own change on the target is put back at once: the source did not
// change, so it is no typing error there.
func TestDriftOfTheTargetIsPutBackAtOnce(t *testing.T) {
	source := map[string]string{"retention.bytes": "1000"}
	for name, holds := range map[string]Holds{
		"seen in step":      configRound(t, Holds{}, start, nil, source, source).Holds,
		"created like that": Holds{}.Created("A.orders", source),
	} {
		t.Run(name, func(t *testing.T) {
			p := configRound(t, holds, start.Add(time.Minute), nil, source, map[string]string{"retention.bytes": "2000"})
			if _, ok := p.Actions[0].(AlterConfig); !ok {
				t.Fatalf("%v, want the change", p.Actions)
			}
			p = configRound(t, p.Holds, start.Add(2*time.Minute), nil, map[string]string{"retention.bytes": "500"}, source)
			if _, ok := p.Actions[0].(HoldConfig); !ok {
				t.Fatalf("%v, want the source's own lowering held", p.Actions)
			}
		})
	}
}

func TestARefusedChangeWaitsUntilTheSourceWishesAnother(t *testing.T) {
	low := map[string]string{"retention.ms": "1000"}
	p := configRound(t, Holds{}, start, nil, low, nil)
	holds, ok := p.Holds.Refuse(HoldKey{"A.orders", "retention.ms"})
	if !ok {
		t.Fatal("nothing waits")
	}
	p = configRound(t, holds, start.Add(25*time.Hour), nil, low, nil)
	if p = configRound(t, p.Holds, start.Add(240*time.Hour), nil, low, nil); len(p.Holds.Held()) != 1 {
		t.Errorf("it was made all the same: %s", lines(p.Actions))
	}
	if !p.Holds.Held()[HoldKey{"A.orders", "retention.ms"}].Refused {
		t.Errorf("it is not refused any more: %+v", p.Holds.Held())
	}
	p = configRound(t, p.Holds, start.Add(241*time.Hour), nil, map[string]string{"retention.ms": "500"}, nil)
	if h := p.Holds.Held()[HoldKey{"A.orders", "retention.ms"}]; h.Refused || h.Wish != "=500" {
		t.Errorf("another wish: %+v", h)
	}
}

func TestHoldsOfGoneTopicsAreForgotten(t *testing.T) {
	p := configRound(t, Holds{}, start, nil, map[string]string{"retention.ms": "1000"}, nil)
	p = configRound(t, p.Holds, start, func(in *ConfigInput) { in.Pairs = nil }, nil, nil)
	if len(p.Holds.Held()) != 0 {
		t.Fatalf("held %v of a topic that is gone", p.Holds.Held())
	}
}

func TestInheritedAndKnownComeFromAnyTopic(t *testing.T) {
	topics := []Topic{topic("a", 1, map[string]string{"retention.ms": "5"}), topic("b", 1, map[string]string{"cleanup.policy": "compact"})}
	if diff := cmp.Diff(defaults, Inherited(topics)); diff != "" {
		t.Errorf("inherited (-want +got):\n%s", diff)
	}
	if got := Inherited(topics[:1])["retention.ms"]; got != "" {
		t.Errorf("inherited retention.ms %q from an override", got)
	}
	known := Known(topics)
	if len(known) != len(maps.Clone(defaults)) || !known["segment.ms"] {
		t.Errorf("known %v", known)
	}
	if Known(nil) != nil {
		t.Error("nothing described must allow all names")
	}
}
