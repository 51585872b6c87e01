package syncer

import (
	"slices"
	"testing"
	"time"

	"heliograph/internal/kafka"
)

// A group whose records are still being copied is looked at again between two looks
// at all groups, ever more rarely, and written once it is exact; the others wait.
func TestAGroupThatIsNotExactDoesNotWaitForTheInterval(t *testing.T) {
	r := newGroupRig(t, func(o *GroupOptions) { o.EmitEvery, o.CommitEvery = time.Minute, time.Minute })
	r.syncs(orders, [2]int64{10, 10})
	r.group("behind", map[kafka.TopicPartition]int64{orders: 10})
	r.group("ahead", map[kafka.TopicPartition]int64{orders: 50})
	r.round(t)
	if at := [2]int64{r.at("behind", tp("A.orders", 0)), r.at("ahead", tp("A.orders", 0))}; at != [2]int64{10, 11} {
		t.Fatalf("the groups stand at %v", at)
	}
	// after passes some time, with a round of checkpoints a second, and tells how often
	// the source was asked for offsets.
	after := func(d time.Duration) int {
		before := r.source.count("fetch offsets")
		for end := r.now.Add(d); r.now.Before(end); {
			r.now = r.now.Add(time.Second)
			must(t, r.sync.Emit(t.Context(), r.now))
		}
		must(t, r.sync.Commit(t.Context(), r.now))
		return r.source.count("fetch offsets") - before
	}
	r.syncs(orders, [2]int64{30, 30}) // copied a little further
	r.group("behind", map[kafka.TopicPartition]int64{orders: 30})
	if n := after(20 * time.Second); n != 2 {
		t.Errorf("looked %d times within 20 s, want 2: after 5 s and 15 s", n)
	}
	if at := [2]int64{r.at("behind", tp("A.orders", 0)), r.at("ahead", tp("A.orders", 0))}; at != [2]int64{10, 11} {
		t.Errorf("the groups stand at %v in between, want the old places", at)
	}
	r.syncs(orders, [2]int64{50, 50})
	if after(16 * time.Second); r.at("ahead", tp("A.orders", 0)) != 50 {
		t.Errorf("the group that is exact now stands at %d", r.at("ahead", tp("A.orders", 0)))
	}
	if after(25 * time.Second); r.at("behind", tp("A.orders", 0)) != 30 {
		t.Errorf("the other one stands at %d after an interval", r.at("behind", tp("A.orders", 0)))
	}
}

// What makes translations better brings the groups that are not exact forward.
func TestSharpenedGroupsAreLookedAtAtOnce(t *testing.T) {
	r := newGroupRig(t, func(o *GroupOptions) { o.EmitEvery = time.Hour })
	r.syncs(orders, [2]int64{10, 10})
	r.group("g", map[kafka.TopicPartition]int64{orders: 20})
	r.round(t)
	r.syncs(orders, [2]int64{20, 20})
	r.now = r.now.Add(time.Second)
	r.sync.Sharpened()
	r.round(t)
	if at := r.at("g", tp("A.orders", 0)); at != 20 {
		t.Errorf("the group stands at %d", at)
	}
}

// A round of checkpoints that was not written is made up for by the next, whatever
// the interval.
func TestAFailedRoundIsMadeUpFor(t *testing.T) {
	r := newGroupRig(t, func(o *GroupOptions) { o.EmitEvery = time.Hour })
	r.syncs(orders, [2]int64{10, 10})
	r.group("g", map[kafka.TopicPartition]int64{orders: 10})
	must(t, r.sync.Discover(t.Context(), r.now))
	r.target.failing("write", "", kafka.CodeNotEnoughReplicas)
	if err := r.sync.Emit(t.Context(), r.now); err == nil {
		t.Fatal("no error")
	}
	r.target.failing("write", "", nil)
	r.now = r.now.Add(time.Second)
	r.round(t)
	if at := r.at("g", tp("A.orders", 0)); at != 10 {
		t.Errorf("the group stands at %d", at)
	}
}

// How long a move takes is counted to the exact place, not to one in front of it,
// and a move over what has no copy counts too.
func TestLatencyIsCountedToTheExactPlace(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{10, 10})
	r.group("g", map[kafka.TopicPartition]int64{orders: 10})
	r.round(t)
	began := r.now
	tick := func() { r.now = r.now.Add(time.Second); r.round(t) }
	tick()
	r.group("g", map[kafka.TopicPartition]int64{orders: 40})
	tick() // 11: not copied yet
	r.syncs(orders, [2]int64{30, 30})
	tick() // 31
	if l := r.sync.Latency(); l.Count != 0 {
		t.Errorf("counted %+v in front of the place, at %d", l, r.at("g", tp("A.orders", 0)))
	}
	r.syncs(orders, [2]int64{40, 40})
	tick()
	if l := r.sync.Latency(); l.Count != 1 || l.Max != r.now.Sub(began)-time.Second {
		t.Errorf("latency %+v, want once %s", l, r.now.Sub(began)-time.Second)
	}
	r.syncs(orders, [2]int64{45, 40}) // five markers
	r.group("g", map[kafka.TopicPartition]int64{orders: 45})
	tick()
	if l := r.sync.Latency(); l.Count != 2 {
		t.Errorf("latency %+v after a move over markers", l)
	}
	if got := r.checkpoints(t); !slices.Contains(got, "g A.orders-0 40->40 m") {
		t.Errorf("checkpoints %v", got)
	}
}
