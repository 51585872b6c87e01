package syncer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
)

func targetTopics(factor int16) []InternalTopic {
	p := policyOf(false)
	return []InternalTopic{
		PositionsTopic("A", 0, factor), HeartbeatsTopic(p, factor), CheckpointsTopic(p, "A", factor),
		OffsetSyncsTopic(p, flowAB, false, factor),
	}
}

func newInternalRig(topics []InternalTopic) (*fakeCluster, *captured, *InternalTopics) {
	c, log := newFakeCluster("B"), &captured{}
	return c, log, NewInternalTopics("B", c, topics, nil, log.logger())
}

func TestInternalTopicsAreMadeAsMirrorMakerMakesThem(t *testing.T) {
	c, _, s := newInternalRig(targetTopics(1))
	must(t, s.RunOnce(t.Context(), start))
	want := map[string]int32{"mm2-offsets.A.internal": 25, "heartbeats": 1, "A.checkpoints.internal": 1, "mm2-offset-syncs.A.internal": 1}
	got := map[string]int32{}
	for name, topic := range c.topics {
		got[name] = topic.partitions
		settings := map[string]string{"cleanup.policy": "compact"}
		if name == "mm2-offsets.A.internal" { // read whole at every takeover, so compacted soon
			settings["segment.bytes"], settings["min.cleanable.dirty.ratio"] = "4194304", "0.2"
		}
		if diff := cmp.Diff(settings, topic.overrides); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("topics (-want +got):\n%s", diff)
	}
	if got := OffsetSyncsTopic(policyOf(false), flowAB, true, 1).Name; got != "mm2-offset-syncs.B.internal" {
		t.Errorf("on the source the syncs are called %s", got)
	}
}

func TestInternalTopicsAreMadeAgainAfterTheirDeletion(t *testing.T) {
	c, _, s := newInternalRig(targetTopics(1))
	must(t, s.RunOnce(t.Context(), start))
	must(t, s.RunOnce(t.Context(), start))
	if n := c.count("create topic"); n != 4 {
		t.Fatalf("%d creations, want 4", n)
	}
	delete(c.topics, "heartbeats")
	must(t, s.RunOnce(t.Context(), start))
	if c.topics["heartbeats"] == nil || c.count("create topic") != 5 {
		t.Errorf("not made again: %v", c.calls)
	}
}

func TestFactorThatDoesNotFitNamesTheOneThatDoes(t *testing.T) {
	_, _, s := newInternalRig(targetTopics(3)[:1])
	err := s.RunOnce(t.Context(), start)
	want := "create topic mm2-offsets.A.internal on cluster B: INVALID_REPLICATION_FACTOR: replication factor 3 does not fit a cluster with 1 broker (set offset.storage.replication.factor=1)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if kafka.ClassOf(err) != kafka.ClassOperator {
		t.Errorf("class %s", kafka.ClassOf(err))
	}
}

func TestFactorIsExplainedWithoutTheBrokersToo(t *testing.T) {
	c, _, s := newInternalRig(targetTopics(3)[:1])
	c.brokers = 0
	err := s.RunOnce(t.Context(), start)
	want := "create topic mm2-offsets.A.internal on cluster B: INVALID_REPLICATION_FACTOR (set offset.storage.replication.factor to at most the number of brokers)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestPositionsThatWouldBeDeletedAreRefused(t *testing.T) {
	for policy, refused := range map[string]bool{"compact": false, "delete": true, "compact,delete": true} {
		c, _, s := newInternalRig(targetTopics(1))
		c.topic("mm2-offsets.A.internal", 25, map[string]string{"cleanup.policy": policy})
		c.topic("heartbeats", 1, map[string]string{"cleanup.policy": policy}) // MirrorMaker does not look at this one
		err := s.RunOnce(t.Context(), start)
		if (err != nil) != refused {
			t.Errorf("cleanup.policy %s: error %v", policy, err)
		}
		if refused && kafka.ClassOf(err) != kafka.ClassOperator {
			t.Errorf("cleanup.policy %s: class %s", policy, kafka.ClassOf(err))
		}
	}
}

// The topic creation helper's row of the specification, part 8.3.
func TestWhichRefusalsAssumeTheTopic(t *testing.T) {
	for code, ignored := range map[kafka.Code]bool{
		kafka.CodeTopicAlreadyExists: true, kafka.CodeUnsupportedVersion: true,
		kafka.CodeTopicAuthorizationFailed: true, kafka.CodeClusterAuthorizationFailed: true,
		kafka.CodeInvalidConfig: false, kafka.CodeRequestTimedOut: false,
	} {
		c, _, s := newInternalRig(targetTopics(1)[1:2])
		c.failing("create topic", "", code)
		if err := s.RunOnce(t.Context(), start); (err == nil) != ignored {
			t.Errorf("%s: error %v", code, err)
		}
	}
}

func TestMissingRightToMakeATopicIsSaidOnce(t *testing.T) {
	c, log, s := newInternalRig(targetTopics(1)[1:2])
	c.failing("create topic", "", kafka.CodeTopicAuthorizationFailed)
	for range 3 {
		must(t, s.RunOnce(t.Context(), start))
	}
	if n := log.matching("not done", "grant CREATE", "heartbeats"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, log.text())
	}
}

func TestNoInternalTopicsAskNothing(t *testing.T) {
	c, _, s := newInternalRig(nil)
	must(t, s.RunOnce(t.Context(), start))
	if len(c.calls) != 0 {
		t.Errorf("calls %v", c.calls)
	}
}
