package syncer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/plan"
)

// groupRig is a GroupSync whose translation is a store that tests feed.
type groupRig struct {
	source, target *fakeCluster
	log            captured
	store          *offsets.SyncStore
	sync           *GroupSync
	now            time.Time
	partitions     map[string]int32
}

// Translate answers from the rig's store.
func (r *groupRig) Translate(tp kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	return r.store.Translate(tp, u)
}

func newGroupRig(t *testing.T, change func(*GroupOptions)) *groupRig {
	r := &groupRig{source: newFakeCluster("A"), target: newFakeCluster("B"), store: offsets.NewSyncStore(false), now: start}
	r.store.ReadToEnd()
	r.restart(t, change)
	return r
}

// restart makes a new GroupSync on what the clusters hold.
func (r *groupRig) restart(t *testing.T, change func(*GroupOptions)) {
	o := GroupOptions{
		Flow: flowAB, Policy: policyOf(false), Translator: r, Log: r.log.logger(),
		Topics:           desired(t, false).Selection.Filter,
		Groups:           mirror.GroupFilter{Include: patterns(t, ".*"), Exclude: patterns(t, mirror.SplitList(mirror.DefaultGroupsExclude)...)},
		Own:              map[string]bool{"A-mm2": true},
		TargetPartitions: func() map[string]int32 { return r.partitions },
		Now:              func() time.Time { return r.now },
	}
	if change != nil {
		change(&o)
	}
	r.sync = NewGroupSync(r.source, r.target, r.target, o)
	r.sync.Load(t.Context())
}

// group sets where a group stands on the source.
func (r *groupRig) group(name string, at map[kafka.TopicPartition]int64) {
	r.source.groups[name] = &fakeGroup{protocol: "consumer", state: "STABLE", members: 1, offsets: at, metadata: "m"}
}

// syncs feeds pairs of offsets of one partition.
func (r *groupRig) syncs(tp kafka.TopicPartition, pairs ...[2]int64) {
	for _, p := range pairs {
		r.store.Apply(mirror.OffsetSync{TopicPartition: tp, Upstream: mirror.UpstreamOffset(p[0]), Downstream: mirror.DownstreamOffset(p[1])})
	}
}

// round finds groups, emits checkpoints and writes offsets.
func (r *groupRig) round(t *testing.T) {
	t.Helper()
	must(t, r.sync.Discover(t.Context(), r.now))
	must(t, r.sync.Emit(t.Context(), r.now))
	must(t, r.sync.Commit(t.Context(), r.now))
}

// checkpoints are the records in the checkpoints topic, as Kafka's tool prints them.
func (r *groupRig) checkpoints(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, rec := range r.target.logs[tp("A.checkpoints.internal", 0)] {
		c, err := mirror.DecodeCheckpoint(rec.Key, rec.Value)
		must(t, err)
		list = append(list, fmt.Sprintf("%s %s %d->%d %s", c.Group, c.TopicPartition, c.Upstream, c.Downstream, c.Metadata))
	}
	return list
}

func (r *groupRig) wantCheckpoints(t *testing.T, want ...string) {
	t.Helper()
	if got := r.checkpoints(t); !slices.Equal(got, want) {
		t.Errorf("checkpoints\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// at is where a group stands on the target; -1 where it has nothing.
func (r *groupRig) at(group string, tp kafka.TopicPartition) int64 {
	if g := r.target.groups[group]; g != nil {
		if at, ok := g.offsets[tp]; ok {
			return at
		}
	}
	return -1
}

func (r *groupRig) status(group string) GroupStatus {
	for _, s := range r.sync.Report() {
		if s.Group == group {
			return s
		}
	}
	return GroupStatus{}
}

var orders = tp("orders", 0)

// The checkpoint task's rows of the specification, part 8.3.
func TestCheckpointsNameTheTargetsTopics(t *testing.T) {
	r := newGroupRig(t, nil)
	at := map[kafka.TopicPartition]int64{}
	for _, p := range []kafka.TopicPartition{tp("topic3", 4), tp("B.topic3", 5), tp("source6.topic7", 8)} {
		r.syncs(p, [2]int64{3, 4})
		at[p] = 10
	}
	r.group("g", at)
	r.round(t)
	r.wantCheckpoints(t, "g topic3-5 10->5 m", "g A.source6.topic7-8 10->5 m", "g A.topic3-4 10->5 m")
	if rec := r.target.logs[tp("A.checkpoints.internal", 0)][0]; rec.Timestamp != start.UnixMilli() {
		t.Errorf("timestamp %d, want the moment before the offsets were read", rec.Timestamp)
	}
}

func TestCheckpointsOnlyOfWhatCanBeTranslated(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(tp("t", 0), [2]int64{7, 8})
	r.group("at-the-sync", map[kafka.TopicPartition]int64{tp("t", 0): 7})
	r.group("beyond", map[kafka.TopicPartition]int64{tp("t", 0): 12, tp("t", 1): 12, tp("t", 2): -1})
	r.group("before", map[kafka.TopicPartition]int64{tp("t", 0): 5})
	r.round(t)
	r.wantCheckpoints(t, "at-the-sync A.t-0 7->8 m", "beyond A.t-0 12->9 m")
	if why := r.status("before").Why(); why != "no offset can be translated yet" {
		t.Errorf("before: %q", why)
	}
	if why := r.status("beyond").Why(); why != "1 of 2 partitions can be translated" {
		t.Errorf("beyond: %q", why)
	}
	if g := r.target.groups["before"]; g != nil {
		t.Error("a group was made on the target without an offset")
	}
}

func TestCheckpointsNeverGoBackUnlessTheGroupDoes(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{11, 4}, [2]int64{12, 5})
	r.group("g", map[kafka.TopicPartition]int64{orders: 13})
	r.round(t)
	r.syncs(orders, [2]int64{13, 6}, [2]int64{14, 7}, [2]int64{15, 8}, [2]int64{16, 9}, [2]int64{17, 10})
	r.round(t)
	r.wantCheckpoints(t, "g A.orders-0 13->6 m")
	r.source.groups["g"].offsets[orders] = 12
	r.round(t)
	r.wantCheckpoints(t, "g A.orders-0 13->6 m", "g A.orders-0 12->5 m")
}

func TestCheckpointsStayMonotonicOverARestart(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{100, 100}, [2]int64{200, 200}, [2]int64{300, 300})
	r.group("g", map[kafka.TopicPartition]int64{orders: 250})
	r.round(t)
	r.wantCheckpoints(t, "g A.orders-0 250->201 m")

	r.store = offsets.NewSyncStore(false)
	r.store.ReadToEnd()
	r.restart(t, nil)
	r.syncs(orders, [2]int64{175, 175}, [2]int64{275, 275}, [2]int64{375, 375}, [2]int64{475, 475})
	for _, at := range []int64{250, 370} {
		r.source.groups["g"].offsets[orders] = at
		r.round(t)
	}
	r.wantCheckpoints(t, "g A.orders-0 250->201 m")
	r.source.groups["g"].offsets[orders] = 400
	r.round(t)
	r.wantCheckpoints(t, "g A.orders-0 250->201 m", "g A.orders-0 400->376 m")
}

func TestNothingIsEmittedBeforeTheOldCheckpointsAreRead(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{7, 8})
	r.group("g", map[kafka.TopicPartition]int64{orders: 7})
	r.sync = NewGroupSync(r.source, r.target, r.target, r.sync.o)
	r.round(t)
	r.wantCheckpoints(t)
	if !r.sync.Load(t.Context()) {
		t.Fatal("not loaded")
	}
	r.round(t)
	r.wantCheckpoints(t, "g A.orders-0 7->8 m")
}

// The checkpoint store's rows of the specification, part 8.3.
func TestOldCheckpointsAreReadAndTheLastOneHolds(t *testing.T) {
	r := newGroupRig(t, nil)
	topic := tp("A.checkpoints.internal", 0)
	write := func(group string, up, down int64) {
		c := mirror.Checkpoint{Group: group, TopicPartition: tp("A.orders", 0), Upstream: mirror.UpstreamOffset(up), Downstream: mirror.DownstreamOffset(down)}
		r.target.logs[topic] = append(r.target.logs[topic], kafka.Record{Key: c.AppendKey(nil), Value: c.AppendValue(nil)})
	}
	write("g", 1, 1)
	write("console-consumer-7", 5, 5)
	r.target.logs[topic] = append(r.target.logs[topic], kafka.Record{Key: []byte("x"), Value: []byte("y")}, kafka.Record{})
	write("g", 9, 7)
	r.restart(t, nil)
	got := r.sync.mu.last
	if len(got) != 1 || got["g"][tp("A.orders", 0)].Downstream != 7 {
		t.Errorf("loaded %v", got)
	}
	r.target.failing("read", topic.String(), kafka.CodeTopicAuthorizationFailed)
	if r.sync.Load(t.Context()) {
		t.Error("a read that failed counts as complete")
	}
	if got := r.sync.mu.last; got == nil || len(got) != 0 {
		t.Errorf("after a failed read %v, want an empty start", got)
	}
	if n := r.log.matching("level=WARN", "grant READ on the topic"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestCheckpointThatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{7, 8})
	r.group("g", map[kafka.TopicPartition]int64{orders: 7})
	must(t, r.sync.Discover(t.Context(), r.now))
	r.target.failing("write", "A.checkpoints.internal-0", kafka.CodeNotEnoughReplicas)
	if err := r.sync.Emit(t.Context(), r.now); err == nil || !strings.Contains(err.Error(), "checkpoints of group g: write on cluster B") {
		t.Errorf("error %v", err)
	}
	r.target.failing("write", "A.checkpoints.internal-0", nil)
	must(t, r.sync.Emit(t.Context(), r.now))
	r.wantCheckpoints(t, "g A.orders-0 7->8 m")
}

// The checkpoint connector's rows of the specification, part 8.3.
func TestGroupsAreFollowedThatReadACopiedTopic(t *testing.T) {
	r := newGroupRig(t, func(o *GroupOptions) {
		o.Topics = mirror.TopicFilter{Include: patterns(t, "t2")}
	})
	r.group("g1", map[kafka.TopicPartition]int64{tp("t1", 0): 1, tp("t2", 0): 1})
	r.group("g2", map[kafka.TopicPartition]int64{tp("t2", 0): 1, tp("t3", 0): 1})
	r.group("g3", map[kafka.TopicPartition]int64{tp("t3", 0): 1})
	must(t, r.sync.Discover(t.Context(), r.now))
	if !slices.Equal(r.sync.mu.groups, []string{"g1", "g2"}) {
		t.Errorf("followed %v", r.sync.mu.groups)
	}
	if why := r.status("g3").Why(); why != "nothing committed for a topic that is copied" {
		t.Errorf("g3: %q", why)
	}
}

func TestEveryGroupHasAReason(t *testing.T) {
	r := newGroupRig(t, nil)
	at := func() map[kafka.TopicPartition]int64 { return map[kafka.TopicPartition]int64{orders: 1} }
	for _, name := range []string{"demo", "console-consumer-1", "connect-sink1", "A-mm2", "closed", "workers"} {
		r.group(name, at())
	}
	r.group("idle", nil)
	r.group("books", map[kafka.TopicPartition]int64{tp("mm2-offsets.X.internal", 0): 1})
	r.source.groups["workers"].protocol = "connect"
	r.source.groups["simple"] = &fakeGroup{state: kafka.GroupEmpty, offsets: at()}
	r.source.failing("fetch offsets", "closed", kafka.CodeGroupAuthorizationFailed)
	must(t, r.sync.Discover(t.Context(), r.now))
	must(t, r.sync.Discover(t.Context(), r.now))
	want := map[string]string{
		"demo": "not looked at yet", "simple": "not looked at yet",
		"console-consumer-1": `excluded by "console-consumer-.*" in groups.exclude`,
		"connect-sink1":      `excluded by "connect-.*" in groups.exclude`,
		"A-mm2":              "the replicator's own group",
		"workers":            "no consumer group but of protocol connect",
		"idle":               "nothing committed for a topic that is copied",
		"books":              "nothing committed for a topic that is copied",
		"closed":             "its offsets cannot be read: GROUP_AUTHORIZATION_FAILED (grant DESCRIBE on group closed of cluster A)",
	}
	for _, s := range r.sync.Report() {
		if s.Why() != want[s.Group] {
			t.Errorf("%s: %q, want %q", s.Group, s.Why(), want[s.Group])
		}
		delete(want, s.Group)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
	if n := r.log.matching("not done", "group=closed"); n != 1 {
		t.Errorf("the closed group said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestIncompleteListingTakesNoGroupAway(t *testing.T) {
	r := newGroupRig(t, nil)
	r.group("a", map[kafka.TopicPartition]int64{orders: 1})
	r.group("b", map[kafka.TopicPartition]int64{orders: 1})
	must(t, r.sync.Discover(t.Context(), r.now))
	delete(r.source.groups, "b")
	r.source.failing("list groups", "", kafka.CodeCoordinatorNotAvailable)
	if err := r.sync.Discover(t.Context(), r.now); err == nil {
		t.Error("an incomplete listing is no error")
	}
	if !slices.Equal(r.sync.mu.groups, []string{"a", "b"}) {
		t.Errorf("followed %v", r.sync.mu.groups)
	}
	r.source.failing("list groups", "", nil)
	must(t, r.sync.Discover(t.Context(), r.now))
	if !slices.Equal(r.sync.mu.groups, []string{"a"}) {
		t.Errorf("followed %v", r.sync.mu.groups)
	}
}

// The group sync rows of the specification, part 8.3.
func TestTargetGroupMovesForwardAndFillsWhatIsMissing(t *testing.T) {
	r := newGroupRig(t, nil)
	at := map[kafka.TopicPartition]int64{}
	for p := range int32(3) {
		r.syncs(tp("orders", p), [2]int64{100, 100})
		at[tp("orders", p)] = 150
	}
	r.group("g", at)
	r.target.groups["g"] = &fakeGroup{state: kafka.GroupEmpty, offsets: map[kafka.TopicPartition]int64{tp("A.orders", 0): 100, tp("A.orders", 1): -1}}
	r.round(t)
	for p := range int32(3) {
		if got := r.at("g", tp("A.orders", p)); got != 101 {
			t.Errorf("partition %d at %d, want 101", p, got)
		}
	}
	if s := r.status("g"); s.Synced != 3 || s.Why() != "" {
		t.Errorf("status %+v", s)
	}
	if r.target.groups["g"].metadata != "m" {
		t.Errorf("metadata %q", r.target.groups["g"].metadata)
	}
}

func TestCommittedZeroIsSyncedAndNothingStaysNothing(t *testing.T) {
	r := newGroupRig(t, nil)
	for p := range int32(3) {
		r.syncs(tp("orders", p), [2]int64{0, 0}, [2]int64{4, 4})
	}
	r.group("g", map[kafka.TopicPartition]int64{tp("orders", 0): 0, tp("orders", 1): -1, tp("orders", 2): 5})
	r.target.groups["g"] = &fakeGroup{state: kafka.GroupEmpty, offsets: map[kafka.TopicPartition]int64{tp("A.orders", 0): -1}}
	r.round(t)
	for p, want := range []int64{0, -1, 5} {
		if got := r.at("g", tp("A.orders", int32(p))); got != want {
			t.Errorf("partition %d at %d, want %d", p, got, want)
		}
	}
}

func TestOnlyOffsetsOfCopiedTopicsAreWritten(t *testing.T) {
	r := newGroupRig(t, func(o *GroupOptions) { o.Topics = mirror.TopicFilter{Include: patterns(t, `a.*`)} })
	r.partitions = map[string]int32{"A.a1": 1}
	for _, topic := range []string{"a1", "a2", "b1"} {
		r.syncs(tp(topic, 0), [2]int64{5, 5})
	}
	r.group("g", map[kafka.TopicPartition]int64{tp("a1", 0): 5, tp("a2", 0): 5, tp("b1", 0): 5})
	r.round(t)
	if got := r.target.groups["g"].offsets; len(got) != 1 || got[tp("A.a1", 0)] != 5 {
		t.Errorf("target has %v", got)
	}
	if why := r.status("g").Why(); why != "partition does not exist on the target (1)" {
		t.Errorf("status %q", why)
	}
}

func TestGroupThatRunsOnTheTargetIsNeverMoved(t *testing.T) {
	r := newGroupRig(t, nil)
	copied := tp("A.orders", 0)
	for _, n := range []int64{50, 60, 70, 80} {
		r.syncs(orders, [2]int64{n, n})
	}
	r.group("g1", map[kafka.TopicPartition]int64{orders: 50})
	r.round(t)
	if got := r.at("g1", copied); got != 50 {
		t.Fatalf("at %d, want 50", got)
	}
	*r.target.groups["g1"] = fakeGroup{state: "STABLE", members: 1, offsets: map[kafka.TopicPartition]int64{copied: 80}}
	r.source.groups["g1"].offsets[orders] = 60
	r.round(t)
	if why := r.status("g1").Why(); why != "active on the target (1)" {
		t.Errorf("while it runs: %q", why)
	}
	r.restart(t, nil)
	r.round(t)
	r.target.groups["g1"].state, r.target.groups["g1"].members = kafka.GroupEmpty, 0
	r.source.groups["g1"].offsets[orders] = 70
	r.round(t)
	if got := r.at("g1", copied); got != 80 {
		t.Errorf("at %d, want 80", got)
	}
	if why := r.status("g1").Why(); why != "target ahead, not written (1)" {
		t.Errorf("after it ran: %q", why)
	}
}

func TestRewindOnTheSourceIsFollowedFromOurOwnWrite(t *testing.T) {
	r := newGroupRig(t, nil)
	copied := tp("A.orders", 0)
	r.syncs(orders, [2]int64{20, 20}, [2]int64{50, 50})
	r.group("g", map[kafka.TopicPartition]int64{orders: 50})
	r.round(t)
	r.source.groups["g"].offsets[orders] = 20
	r.round(t)
	if got := r.at("g", copied); got != 20 {
		t.Errorf("at %d, want 20", got)
	}
}

func TestGroupThatBecomesActiveBeforeTheWriteIsNamed(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{50, 50})
	r.group("g", map[kafka.TopicPartition]int64{orders: 50})
	r.target.groups["g"] = &fakeGroup{state: kafka.GroupEmpty, offsets: map[kafka.TopicPartition]int64{}}
	r.target.failing("commit", "g", kafka.CodeUnknownMemberID)
	r.round(t)
	if why := r.status("g").Why(); why != "active on the target (1)" {
		t.Errorf("status %q", why)
	}
	if strings.Contains(r.log.text(), "level=WARN") {
		t.Errorf("warned of an active group:\n%s", r.log.text())
	}
}

func TestRefusedCommitIsNamedOnceAndOthersAreWritten(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{50, 50})
	r.group("closed", map[kafka.TopicPartition]int64{orders: 50})
	r.group("open", map[kafka.TopicPartition]int64{orders: 50})
	r.target.failing("commit", "closed", kafka.CodeGroupAuthorizationFailed)
	r.round(t)
	r.round(t)
	if got := r.at("open", tp("A.orders", 0)); got != 50 {
		t.Errorf("open at %d", got)
	}
	if n := r.log.matching("not done", "commit of group closed"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
	r.target.failing("commit", "closed", kafka.CodeCoordinatorNotAvailable)
	if err := r.sync.Commit(t.Context(), r.now); err == nil || !strings.Contains(err.Error(), "offsets of 1 group not written: commit group offsets on cluster B") {
		t.Errorf("a coordinator that is away: error %v", err)
	}
}

func TestSlowSnapshotIsNotTrusted(t *testing.T) {
	r := newGroupRig(t, func(o *GroupOptions) { o.Now = nil })
	calls := 0
	r.sync.o.Now = func() time.Time { calls++; return start.Add(time.Duration(calls) * time.Minute) }
	r.syncs(orders, [2]int64{50, 50})
	r.group("g", map[kafka.TopicPartition]int64{orders: 50})
	r.round(t)
	if r.at("g", tp("A.orders", 0)) != -1 {
		t.Error("written on an old snapshot")
	}
	if why := r.status("g").Why(); why != "snapshot of the target too old (1)" {
		t.Errorf("status %q", why)
	}
}

func TestQuietGroupIsWrittenAgainBeforeItExpires(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{50, 50})
	r.group("g", map[kafka.TopicPartition]int64{orders: 50})
	for range 3 {
		r.round(t)
	}
	if n := r.target.count("commit"); n != 1 {
		t.Fatalf("%d commits within a minute, want 1", n)
	}
	r.now = start.Add(24 * time.Hour)
	r.round(t)
	if n := r.target.count("commit"); n != 2 {
		t.Errorf("%d commits after a day, want 2", n)
	}
}

func TestGroupThatCannotBeDescribedIsLeftAlone(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{50, 50})
	r.group("g", map[kafka.TopicPartition]int64{orders: 50})
	r.target.failing("describe group", "g", kafka.CodeGroupAuthorizationFailed)
	r.round(t)
	if r.target.count("commit") != 0 {
		t.Error("written without having been seen")
	}
	if s := r.status("g"); len(s.Withheld) != 1 || s.Withheld[0].Reason != plan.GroupUnknownState {
		t.Errorf("status %+v", s)
	}
}

func TestOffsetsThatCannotBeReadNowFailTheRoundOnly(t *testing.T) {
	r := newGroupRig(t, nil)
	r.syncs(orders, [2]int64{50, 50})
	r.group("away", map[kafka.TopicPartition]int64{orders: 50})
	r.group("here", map[kafka.TopicPartition]int64{orders: 50})
	must(t, r.sync.Discover(t.Context(), r.now))
	r.source.failing("fetch offsets", "away", kafka.CodeCoordinatorLoadInProgress)
	err := r.sync.Emit(t.Context(), r.now)
	if err == nil || err.Error() != "offsets of 1 group not read: fetch group offsets on cluster A: COORDINATOR_LOAD_IN_PROGRESS" {
		t.Errorf("error %v", err)
	}
	r.wantCheckpoints(t, "here A.orders-0 50->50 m")
	if why := r.status("away").Why(); why != "its offsets cannot be read: COORDINATOR_LOAD_IN_PROGRESS" {
		t.Errorf("away: %q", why)
	}
	if strings.Contains(r.log.text(), "level=WARN") {
		t.Errorf("warned of what heals:\n%s", r.log.text())
	}
}

func TestTheNextJobIsToldWhenThereIsWork(t *testing.T) {
	followed, emitted := 0, 0
	r := newGroupRig(t, func(o *GroupOptions) {
		o.Followed, o.Emitted = func() { followed++ }, func() { emitted++ }
	})
	r.syncs(orders, [2]int64{50, 50})
	r.group("g", map[kafka.TopicPartition]int64{orders: 50})
	r.round(t)
	r.round(t)
	if followed != 1 || emitted != 1 {
		t.Errorf("told %d and %d times, want once each", followed, emitted)
	}
}

func TestClusterThatIsAwayAtTheStartIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGroupRig(t, nil)
		r.target.failing("list offsets", "", kafka.CodeLeaderNotAvailable)
		began := time.Now()
		if r.sync.Load(t.Context()) {
			t.Error("read from a cluster that is away")
		}
		if took := time.Since(began); took != loadAttempts*loadPause {
			t.Errorf("gave up after %s", took)
		}
		time.AfterFunc(3*time.Second, func() { r.target.failing("list offsets", "", nil) })
		if !r.sync.Load(t.Context()) {
			t.Error("gave up on a cluster that came back")
		}
	})
}

func TestCheckpointsTopicThatIsNotThereIsNoTrouble(t *testing.T) {
	r := newGroupRig(t, nil)
	r.target.failing("list offsets", "", kafka.CodeUnknownTopicOrPartition)
	if !r.sync.Load(t.Context()) || r.log.text() != "" {
		t.Errorf("said:\n%s", r.log.text())
	}
}
