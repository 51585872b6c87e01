package syncer

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
)

// DeleteGroups deletes groups without members.
func (c *fakeCluster) DeleteGroups(_ context.Context, groups ...string) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]error{}
	for _, name := range groups {
		if out[name] = c.called("delete group", name); out[name] == nil {
			delete(c.groups, name)
		}
	}
	return out
}

// 4,000 groups over 1,000 partitions stand on the target exactly after one
// interval, spread over it, and cost nothing more while nothing moves.
func TestThousandsOfGroupsInOneInterval(t *testing.T) {
	const groups, partitions, each, interval = 4000, 1000, 5, 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, func(o *GroupOptions) {
			o.Now, o.CommitEvery = time.Now, interval
			o.SourceBudget, o.TargetBudget = NewBudget(20, time.Now), NewBudget(20, time.Now)
		})
		for p := range int32(partitions) {
			r.syncs(tp("orders", p), [2]int64{int64(p), int64(2 * p)}) // every group stands at one
		}
		for g := range groups {
			at := map[kafka.TopicPartition]int64{}
			for i := range each {
				p := (g*each + i) % partitions
				at[tp("orders", int32(p))] = int64(p)
			}
			r.group(fmt.Sprintf("group-%04d", g), at)
		}
		began := time.Now()
		r.round(t)
		if took := time.Since(began); took > interval {
			t.Errorf("the round took %s, the interval is %s", took, interval)
		}
		exact := 0
		for g := range groups {
			ok := true
			for i := range each {
				p := (g*each + i) % partitions
				ok = ok && r.at(fmt.Sprintf("group-%04d", g), tp("A.orders", int32(p))) == int64(2*p)
			}
			if ok {
				exact++
			}
		}
		if exact != groups {
			t.Errorf("%d of %d groups stand exactly", exact, groups)
		}
		if n := r.target.count("commit"); n != groups {
			t.Errorf("%d commits", n)
		}
		before := len(r.target.calls)
		r.round(t)
		if n := len(r.target.calls) - before; n != 0 {
			t.Errorf("%d requests to the target although nothing moved", n)
		}

		// One group moves: one is written, and how long that took is known.
		time.Sleep(interval)
		r.round(t)
		r.source.groups["group-0007"].offsets[tp("orders", 35)] = 36
		commits := r.target.count("commit")
		time.Sleep(time.Second)
		r.round(t)
		if n := r.target.count("commit") - commits; n != 1 {
			t.Errorf("%d commits for one group that moved", n)
		}
		if l := r.sync.Latency(); l.Count != 1 || l.P99 < time.Second || l.P99 > 2*interval {
			t.Errorf("latency %+v", l)
		}
	})
}

// Where the target stands at a checkpoint of an earlier life, we were the last to
// write, and a rewind on the source is followed over a restart.
func TestRewindIsFollowedOverARestart(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{10, 10}, [2]int64{20, 20})
	r.group("ours", map[kafka.TopicPartition]int64{orders: 20})
	r.group("moved", map[kafka.TopicPartition]int64{orders: 20})
	r.round(t)
	r.target.groups["moved"].offsets[tp("A.orders", 0)] = 21 // somebody used it
	r.restart(t, nil)
	r.group("ours", map[kafka.TopicPartition]int64{orders: 10})
	r.group("moved", map[kafka.TopicPartition]int64{orders: 10})
	r.round(t)
	if at := r.at("ours", tp("A.orders", 0)); at != 10 {
		t.Errorf("the group stands at %d, it was rewound to 10", at)
	}
	if at := r.at("moved", tp("A.orders", 0)); at != 21 {
		t.Errorf("the group that moved on stands at %d", at)
	}
}

func TestGroupDeletionIsFollowedOnlyWhenAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		r := newGroupRig(t, func(o *GroupOptions) { o.Deletions = asked })
		r.syncs(orders, [2]int64{10, 10})
		for _, name := range []string{"gone", "moved", "busy", "hidden", "stays"} {
			r.group(name, map[kafka.TopicPartition]int64{orders: 10})
		}
		r.round(t)
		r.target.groups["moved"].offsets[tp("A.orders", 0)] = 12
		r.target.groups["busy"].state, r.target.groups["busy"].members = "STABLE", 1
		for _, name := range []string{"gone", "moved", "busy", "hidden"} {
			delete(r.source.groups, name)
		}
		r.source.failing("describe group", "hidden", kafka.CodeGroupAuthorizationFailed)
		r.now = r.now.Add(time.Minute)
		r.round(t)
		left := maps.Clone(r.target.groups)
		if _, there := left["gone"]; there == asked {
			t.Errorf("asked %v: the deleted group is there: %v", asked, there)
		}
		for _, name := range []string{"moved", "busy", "hidden", "stays"} {
			if left[name] == nil {
				t.Errorf("asked %v: group %s was deleted", asked, name)
			}
		}
	}
}

func TestShareGroupsAreNamed(t *testing.T) {
	r := newGroupRig(t, nil)
	r.source.groups["queue"] = &fakeGroup{protocol: "share", state: "STABLE", members: 1}
	r.round(t)
	if s := r.status("queue"); s.Followed || s.Reason == "" {
		t.Errorf("status %+v", s)
	}
}

// A target that takes seconds for each commit does not make groups wait for the next
// interval: what was seen of them has become old, and they are looked at again.
func TestASlowTargetLeavesNoGroupToTheNextInterval(t *testing.T) {
	const groups = 80
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, func(o *GroupOptions) { o.Now = time.Now })
		r.syncs(orders, [2]int64{10, 20})
		for g := range groups {
			r.group(fmt.Sprintf("group-%02d", g), map[kafka.TopicPartition]int64{orders: 10})
		}
		r.target.slow = 3 * time.Second
		r.round(t)
		for g := range groups {
			if at := r.at(fmt.Sprintf("group-%02d", g), tp("A.orders", 0)); at != 20 {
				t.Errorf("group %d stands at %d", g, at)
			}
		}
		if n := r.target.count("commit"); n != groups {
			t.Errorf("%d commits", n)
		}
	})
}
