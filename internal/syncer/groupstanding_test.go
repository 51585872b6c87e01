package syncer

import (
	"testing"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
)

// The standing of a group says what the next round would do, and does none of it.
func TestStandingForetellsTheNextRound(t *testing.T) {
	r := newGroupRig(t, nil)
	here, there := tp("orders", 0), tp("A.orders", 0)
	r.syncs(here, [2]int64{10, 100}, [2]int64{20, 110})
	tests := map[string]struct {
		at     int64
		target *fakeGroup // nil: the group is not there
		due    string
		reason plan.Reason
		whole  plan.Reason
	}{
		"new":          {at: 20, due: "nothing committed on the target"},
		"behind":       {at: 20, target: &fakeGroup{state: "EMPTY", offsets: map[kafka.TopicPartition]int64{there: 104}}, due: "forward from 104"},
		"in place":     {at: 20, target: &fakeGroup{state: "EMPTY", offsets: map[kafka.TopicPartition]int64{there: 110}}, reason: plan.InPlace},
		"ahead":        {at: 20, target: &fakeGroup{state: "EMPTY", offsets: map[kafka.TopicPartition]int64{there: 300}}, reason: plan.TargetAhead},
		"at work":      {at: 20, target: &fakeGroup{state: "STABLE", members: 2, offsets: map[kafka.TopicPartition]int64{there: 300}}, whole: plan.GroupActive},
		"untranslated": {at: 3, reason: plan.GroupUntranslated, whole: plan.GroupUntranslated},
	}
	for group, tt := range tests {
		r.group(group, map[kafka.TopicPartition]int64{here: tt.at})
		if tt.target != nil {
			r.target.groups[group] = tt.target
		}
	}
	must(t, r.sync.Discover(t.Context(), r.now))
	standings, err := r.sync.Standing(t.Context())
	must(t, err)
	if len(standings) != len(tests) {
		t.Fatalf("%d standings of %d groups", len(standings), len(tests))
	}
	for _, s := range standings {
		tt := tests[s.Group]
		if len(s.Partitions) != 1 || s.Withheld.Reason != tt.whole {
			t.Errorf("group %q: %d partitions, withheld %q, want %q", s.Group, len(s.Partitions), s.Withheld.Reason, tt.whole)
			continue
		}
		p := s.Partitions[0]
		if p.Due != tt.due || p.Withheld.Reason != tt.reason {
			t.Errorf("group %q: due %q, withheld %q; want %q, %q", s.Group, p.Due, p.Withheld.Reason, tt.due, tt.reason)
		}
		want := int64(-1)
		if tt.target != nil {
			want = tt.target.offsets[there]
		}
		if int64(p.Committed) != tt.at || p.Target != there || p.There.Offset != want {
			t.Errorf("group %q: source offset %d, target %s at %d; want %d, %s at %d", s.Group, p.Committed, p.Target, p.There.Offset, tt.at, there, want)
		}
	}
	if n := r.target.count("commit") + r.target.count("write"); n != 0 {
		t.Errorf("%d writes to the target", n)
	}
}
