package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// carryOut does to the target what a plan says, as a cluster would.
func carryOut(target []Topic, actions []Action) []Topic {
	byName := map[string]*Topic{}
	for i := range target {
		byName[target[i].Name] = &target[i]
	}
	var made []Topic
	for _, a := range actions {
		switch a := a.(type) {
		case CreateTopic:
			made = append(made, topic(a.Topic, a.Partitions, a.Configs))
		case AddPartitions:
			byName[a.Topic].Partitions = a.To
		case AlterConfig:
			t := byName[a.Topic]
			overrides := map[string]string{}
			for _, e := range t.Configs {
				if e.Value != defaults[e.Name] || e.Source != entries(nil)[0].Source {
					overrides[e.Name] = e.Value
				}
			}
			for _, c := range a.Changes {
				delete(overrides, c.Name)
				if !c.Delete {
					overrides[c.Name] = c.New
				}
			}
			t.Configs = entries(overrides)
		}
	}
	return append(target, made...)
}

// fuzzTopics reads topics as words: name, one digit of partitions, settings by letter.
func fuzzTopics(text string) []Topic {
	names := slices.Sorted(maps.Keys(defaults))
	seen := map[string]bool{}
	var list []Topic
	for word := range strings.FieldsSeq(text) {
		name, spec, _ := strings.Cut(word, "/")
		if name == "" || seen[name] || len(list) > 20 {
			continue
		}
		seen[name] = true
		t, overrides := int32(1), map[string]string{}
		for i, r := range spec {
			switch {
			case r >= '1' && r <= '9':
				t = r - '0'
			case r >= 'a' && r <= 'z':
				overrides[names[int(r-'a')%len(names)]] = []string{"1000", "compact", "-1", "compact,delete"}[i%4]
			}
		}
		list = append(list, topic(name, t, overrides))
	}
	return list
}

// FuzzTopics checks that carrying a plan out leaves nothing to plan, that parked
// topics stay parked for the same reasons, and that no two copies share a name.
func FuzzTopics(f *testing.F) {
	f.Add("orders/3ab heartbeats/1 a.b/2 a_b/4c", "A.orders/1 A.a_b/1ef", false)
	f.Add("orders/3abcdefgh B.x/1 mm2-x.internal", "orders/1hg other", true)
	f.Add("x/9 y/2 z.heartbeats", "A.x/2cba A_y", false)
	f.Fuzz(func(t *testing.T, source, target string, identity bool) {
		d := desired(t, identity)
		o := Observed{Source: fuzzTopics(source), Target: fuzzTopics(target)}
		m := Match(o, d)
		o.Target = carryOut(o.Target, Topics(m, d))
		again := Match(o, d)
		for _, a := range Topics(again, d) {
			if _, parked := a.(Park); !parked {
				t.Fatalf("left to do: %s", a)
			}
		}
		if len(m.Parked) != len(again.Parked) || m.Total() != again.Total() {
			t.Fatalf("parked %v, then %v", m.Parked, again.Parked)
		}
		remotes := map[string]string{}
		for _, p := range again.Pairs {
			if other, twice := remotes[p.Remote]; twice {
				t.Fatalf("topics %s and %s share %s", other, p.Source.Name, p.Remote)
			}
			remotes[p.Remote] = p.Source.Name
		}
		in := ConfigInput{Flow: flowAB, Pairs: again.Pairs, Rules: d.Configs, Inherited: defaults, Now: start}
		o.Target = carryOut(o.Target, Configs(in).Actions)
		in.Pairs = Match(o, d).Pairs
		for _, a := range Configs(in).Actions {
			t.Fatalf("left to change: %s", a)
		}
	})
}
