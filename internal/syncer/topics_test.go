package syncer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
)

// topicRig is a TopicSync between two fake clusters.
type topicRig struct {
	source, target *fakeCluster
	log            captured
	sync           *TopicSync
	published      [][]Replica
	created        []string
}

func newTopicRig(t *testing.T, change func(*TopicOptions)) *topicRig {
	r := &topicRig{source: newFakeCluster("A"), target: newFakeCluster("B")}
	o := TopicOptions{
		Desired: desired(t, false), SettingsAge: time.Minute, Log: r.log.logger(),
		Publish: func(list []Replica) { r.published = append(r.published, list) },
		Created: func(topic string, configs map[string]string) {
			r.created = append(r.created, fmt.Sprint(topic, configs))
		},
	}
	if change != nil {
		change(&o)
	}
	r.sync = NewTopicSync(r.source, r.target, o)
	return r
}

func (r *topicRig) round(t *testing.T, now time.Time) {
	t.Helper()
	must(t, r.sync.RunOnce(t.Context(), now))
}

// last is the list published last.
func (r *topicRig) last() []Replica { return r.published[len(r.published)-1] }

func TestTopicIsMadeWithItsSettingsAndPublished(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 2, map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2097152", "message.timestamp.type": "LogAppendTime"})
	r.round(t, start)
	made := r.target.topics["A.orders"]
	if diff := cmp.Diff(map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2097152"}, made.overrides); diff != "" {
		t.Errorf("settings at creation (-want +got):\n%s", diff)
	}
	want := []Replica{
		{
			Source: tp("orders", 0), SourceID: r.source.topics["orders"].id, Target: tp("A.orders", 0), TargetID: made.id,
			Settings: TargetSettings{MaxMessageBytes: 2097152, Compacted: true, Compression: "producer"},
		},
		{
			Source: tp("orders", 1), SourceID: r.source.topics["orders"].id, Target: tp("A.orders", 1), TargetID: made.id,
			Settings: TargetSettings{MaxMessageBytes: 2097152, Compacted: true, Compression: "producer"},
		},
	}
	if diff := cmp.Diff(want, r.last()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if len(r.created) != 1 || !strings.HasPrefix(r.created[0], "A.orders") {
		t.Errorf("told of %v", r.created)
	}
}

func TestQuietRoundsAskLittleAndPublishNothing(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.round(t, start)
	described := r.target.count("describe configs") + r.source.count("describe configs")
	for i := range 5 {
		r.round(t, start.Add(time.Duration(i)*time.Second))
	}
	if len(r.published) != 1 {
		t.Errorf("published %d times, want once", len(r.published))
	}
	if n := r.target.count("create topic"); n != 1 {
		t.Errorf("created %d times, want once", n)
	}
	if n := r.target.count("describe configs") + r.source.count("describe configs"); n != described {
		t.Errorf("%d more describes in quiet rounds", n-described)
	}
}

// The refresh rows of the specification, part 8.3.
func TestCreationIsTriedUntilTheTopicIsThere(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("topic", 1, nil)
	denied := &kafka.Error{Op: "create topic", Cluster: "B", Subject: "A.topic", Code: kafka.CodeTopicAuthorizationFailed}
	r.target.failing("create topic", "", denied)
	r.round(t, start)
	r.round(t, start.Add(time.Second))
	if n := r.target.count("create topic"); n != 2 {
		t.Fatalf("tried %d times, want twice", n)
	}
	if n := r.log.matching("not done", "grant CREATE on topic A.topic of cluster B"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
	r.target.failing("create topic", "", nil)
	r.round(t, start.Add(2*time.Second))
	r.round(t, start.Add(3*time.Second))
	if n := r.target.count("create topic"); n != 3 {
		t.Errorf("tried %d times after it was there, want 3", n)
	}
	if n := r.log.matching("recovered", "topic=topic"); n != 1 {
		t.Errorf("recovery said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestTopicsOnlyTheTargetHasAreLeftAlone(t *testing.T) {
	r := newTopicRig(t, nil)
	r.target.topic("A.topic", 1, nil)
	r.round(t, start)
	if len(r.last()) != 0 || r.target.count("create") != 0 {
		t.Fatalf("published %v and created", r.last())
	}
	r.source.topic("topic", 1, nil)
	r.round(t, start.Add(time.Second))
	r.round(t, start.Add(2*time.Second))
	if got := describe(r.last()); got != "topic-0 -> A.topic-0 born\n" || len(r.published) != 2 {
		t.Fatalf("published %d times, last %q", len(r.published), got)
	}
}

func TestGrowthFollowsAndIsBorn(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.round(t, start)
	r.source.topics["orders"].partitions = 3
	r.round(t, start.Add(time.Second))
	want := "orders-0 -> A.orders-0\norders-1 -> A.orders-1 born\norders-2 -> A.orders-2 born\n"
	if got := describe(r.last()); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
	if r.target.topics["A.orders"].partitions != 3 {
		t.Errorf("target has %d partitions", r.target.topics["A.orders"].partitions)
	}
}

func TestRefusedGrowthKeepsTheOldPartitionsRunning(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 2, nil)
	r.target.topic("A.orders", 1, nil)
	r.target.failing("create partitions", "A.orders", kafka.CodeTopicAuthorizationFailed)
	r.round(t, start)
	if got := describe(r.last()); got != "orders-0 -> A.orders-0\n" {
		t.Errorf("published %q", got)
	}
	if s := r.sync.Report().Topics[0]; s.State != TopicParked || s.Hint != "grant ALTER on topic A.orders of cluster B" {
		t.Errorf("status %+v", s)
	}
}

func TestTopicWithoutRightsIsParkedAndOthersRun(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("open", 1, nil)
	r.source.topic("closed", 1, nil).code = kafka.CodeTopicAuthorizationFailed
	r.source.topic("secretive", 1, nil)
	r.source.failing("describe configs", "secretive", kafka.CodeTopicAuthorizationFailed)
	r.round(t, start)
	r.round(t, start.Add(time.Second))
	if got := describe(r.last()); got != "open-0 -> A.open-0\n" {
		t.Errorf("published %q", got)
	}
	for topic, hint := range map[string]string{
		"closed":    "grant READ, DESCRIBE and DESCRIBE_CONFIGS on topic closed of cluster A",
		"secretive": "grant DESCRIBE_CONFIGS on topic secretive of cluster A",
	} {
		if n := r.log.matching("not done", hint); n != 1 {
			t.Errorf("%s said %d times, want once:\n%s", topic, n, r.log.text())
		}
	}
}

func TestWithoutConfigSyncATopicIsMadeWithDefaults(t *testing.T) {
	r := newTopicRig(t, func(o *TopicOptions) { o.Desired.Configs.Sync = false })
	r.source.topic("orders", 1, map[string]string{"cleanup.policy": "compact"})
	r.source.failing("describe configs", "orders", kafka.CodeTopicAuthorizationFailed)
	r.round(t, start)
	if got := describe(r.last()); got != "orders-0 -> A.orders-0\n" {
		t.Errorf("published %q", got)
	}
	if n := r.log.matching("level=WARN", "topic created", "DESCRIBE_CONFIGS on topic orders of cluster A"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestYoungTopicWaitsInsteadOfBeingParked(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.source.failing("describe configs", "orders", kafka.CodeUnknownTopicOrPartition)
	r.round(t, start)
	if s := r.sync.Report().Topics[0]; s.State != TopicCreating || len(r.last()) != 0 {
		t.Errorf("status %+v, published %v", s, r.last())
	}
	r.source.failing("describe configs", "orders", nil)
	r.round(t, start.Add(time.Second))
	if got := describe(r.last()); got != "orders-0 -> A.orders-0\n" {
		t.Errorf("published %q", got)
	}
	if strings.Contains(r.log.text(), "level=WARN") {
		t.Errorf("warned of what heals:\n%s", r.log.text())
	}
}

func TestParkedTopicThatWasReplicatedStaysPublished(t *testing.T) {
	r := newTopicRig(t, nil)
	topic := r.source.topic("orders", 1, nil)
	r.round(t, start)
	topic.code = kafka.CodeLeaderNotAvailable
	r.round(t, start.Add(time.Second))
	if len(r.published) != 1 {
		t.Errorf("published again: %q", describe(r.last()))
	}
}

func TestTooLargeFactorNamesTheOneThatFits(t *testing.T) {
	r := newTopicRig(t, func(o *TopicOptions) { o.Desired.ReplicationFactor = 3 })
	r.source.topic("orders", 1, nil)
	r.target.brokers = 2
	r.round(t, start)
	want := "create topic A.orders on cluster B: INVALID_REPLICATION_FACTOR: replication factor 3 does not fit a cluster with 2 brokers (set replication.factor=2)"
	if s := r.sync.Report().Topics[0]; s.Reason != want {
		t.Errorf("reason %q, want %q", s.Reason, want)
	}
}

func TestDeletedCopyIsMadeAgainWithAnotherID(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.round(t, start)
	before := r.last()[0].TargetID
	delete(r.target.topics, "A.orders")
	r.round(t, start.Add(time.Second))
	if after := r.last()[0].TargetID; after == before || !after.Known() {
		t.Errorf("target id %s, was %s", after, before)
	}
}

func TestGoneSourceTopicIsNotPublished(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.source.topic("other", 1, nil)
	r.round(t, start)
	delete(r.source.topics, "orders")
	r.round(t, start.Add(time.Second))
	if got := describe(r.last()); got != "other-0 -> A.other-0\n" {
		t.Errorf("published %q", got)
	}
	if r.target.topics["A.orders"] == nil {
		t.Error("the copy is gone too")
	}
}

func TestMatchesAreNamedAtTheStart(t *testing.T) {
	r := newTopicRig(t, func(o *TopicOptions) { o.Desired = desired(t, false, "orders.*") })
	for _, name := range []string{"orders", "orders-late", "other", "more"} {
		r.source.topic(name, 1, nil)
	}
	r.round(t, start)
	r.round(t, start.Add(time.Second))
	if n := r.log.matching("topics matched", `matches="2 of 4 topics"`, "orders -> A.orders, orders-late -> A.orders-late"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
	none := newTopicRig(t, func(o *TopicOptions) { o.Desired = desired(t, false, "nothing") })
	none.source.topic("orders", 1, nil)
	none.round(t, start)
	if n := none.log.matching("level=WARN", "topics matched", `matches="0 of 1 topic"`); n != 1 {
		t.Errorf("no warning:\n%s", none.log.text())
	}
}

func TestUnreachableClusterFailsTheRoundAndKeepsTheList(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.round(t, start)
	for _, c := range []*fakeCluster{r.source, r.target} {
		c.failing("list topics", "", kafka.CodeNetworkException)
		if err := r.sync.RunOnce(t.Context(), start); err == nil || !strings.Contains(err.Error(), "list topics on cluster "+c.alias) {
			t.Errorf("error %v does not name cluster %s", err, c.alias)
		}
		c.failing("list topics", "", nil)
	}
	if len(r.published) != 1 {
		t.Errorf("published %d times", len(r.published))
	}
}

func TestTargetThatPassesOutFailsTheRoundNotTheTopic(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.target.failing("create topic", "", kafka.CodeRequestTimedOut)
	err := r.sync.RunOnce(t.Context(), start)
	if err == nil || !strings.Contains(err.Error(), "create topics on cluster B") {
		t.Errorf("error %v", err)
	}
	if s := r.sync.Report().Topics[0]; s.State != TopicCreating {
		t.Errorf("status %+v, want creating", s)
	}
}

func TestRoundWaitsUntilTheNewTopicIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTopicRig(t, nil)
		r.target.topic("other", 1, nil)
		r.source.topic("orders", 1, nil)
		r.target.hide = 3
		r.round(t, start)
		if got := describe(r.last()); got != "orders-0 -> A.orders-0\n" {
			t.Errorf("published %q", got)
		}
	})
}

func TestSettingsOfTheTargetAreFollowed(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.round(t, start)
	r.target.topics["A.orders"].overrides = map[string]string{"message.timestamp.type": "LogAppendTime", "compression.type": "zstd", "cleanup.policy": "compact, delete"}
	r.round(t, start.Add(time.Minute))
	want := TargetSettings{MaxMessageBytes: 1048588, LogAppendTime: true, Compacted: true, Compression: "zstd"}
	if diff := cmp.Diff(want, r.last()[0].Settings); diff != "" {
		t.Errorf("after a minute (-want +got):\n%s", diff)
	}
	r.sync.Observe("A.orders", r.target.topics["A.orders"].id, []kafka.ConfigEntry{{Name: "max.message.bytes", Value: "7"}}, start.Add(time.Minute))
	r.round(t, start.Add(61*time.Second))
	if got := r.last()[0].Settings; got != (TargetSettings{MaxMessageBytes: 7}) {
		t.Errorf("settings %+v, want what was observed", got)
	}
}

func TestSettingsThatCannotBeReadAreNamedOnce(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, nil)
	r.target.topic("A.orders", 1, nil)
	r.target.failing("describe configs", "A.orders", kafka.CodeTopicAuthorizationFailed)
	for i := range 3 {
		r.round(t, start.Add(time.Duration(i)*time.Minute))
	}
	if got := r.last()[0].Settings; got != (TargetSettings{}) {
		t.Errorf("settings %+v, want unknown", got)
	}
	if n := r.log.matching("not done", "settings of topic A.orders of cluster B", "DESCRIBE_CONFIGS"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestManyTopicsAreAskedInBatchesWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(10, time.Now)
		r := newTopicRig(t, func(o *TopicOptions) { o.SourceBudget, o.TargetBudget = budget, budget })
		for i := range 1000 {
			r.source.topic(fmt.Sprintf("t%04d", i), 1, nil)
		}
		began := time.Now()
		r.round(t, began)
		if len(r.last()) != 1000 {
			t.Fatalf("%d published", len(r.last()))
		}
		requests := 2 + 10 + 20 + 1 + 10 // lists, source settings, creations, list again, target settings
		if n := r.source.count("describe configs"); n != 10 {
			t.Errorf("%d source describes, want 10 of 100 topics each", n)
		}
		if took, least := time.Since(began), time.Duration(requests-10)*time.Second/10; took != least {
			t.Errorf("took %s, want %s at 10 requests a second", took, least)
		}
	})
}

func TestPairsAndCountsAreThoseOfTheLastRound(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 2, nil)
	if r.sync.TargetPartitions() != nil {
		t.Error("counts before the first round")
	}
	r.round(t, start)
	if diff := cmp.Diff(map[string]int32{"A.orders": 2}, r.sync.TargetPartitions()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	pairs := r.sync.Pairs()
	if len(pairs) != 1 || pairs[0].Remote != "A.orders" || !pairs[0].Exists {
		t.Errorf("pairs %+v", pairs)
	}
}

func TestCancelledRoundStops(t *testing.T) {
	r := newTopicRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.sync.RunOnce(ctx, start); err == nil {
		t.Error("a cancelled round did its work")
	}
}

func TestSettingsTheTargetDoesNotKnowAreLeftOut(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 1, map[string]string{"retention.ms": "5", "cleanup.policy": "compact"})
	r.target.topic("other", 1, nil)
	r.target.lacks = map[string]bool{"retention.ms": true}
	r.round(t, start)
	if diff := cmp.Diff(map[string]string{"cleanup.policy": "compact"}, r.target.topics["A.orders"].overrides); diff != "" {
		t.Errorf("settings at creation (-want +got):\n%s", diff)
	}
	if n := r.log.matching("topic created", "the target does not know retention.ms"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, r.log.text())
	}
}

func TestGrowthThatSomebodyElseDidIsNoTrouble(t *testing.T) {
	r := newTopicRig(t, nil)
	r.source.topic("orders", 2, nil)
	r.target.topic("A.orders", 1, nil)
	r.target.failing("create partitions", "A.orders", kafka.CodeInvalidPartitions)
	synctest.Test(t, func(t *testing.T) { r.round(t, start) })
	if s := r.sync.Report().Topics[0]; s.State != TopicReplicated {
		t.Errorf("status %+v", s)
	}
}
