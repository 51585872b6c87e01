package cluster

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

func TestHintsNeverGoBack(t *testing.T) {
	c := bare()
	tp := kafka.TopicPartition{Topic: "orders"}
	part := kmsg.NewMetadataResponseTopicPartition()
	part.Leader, part.LeaderEpoch = 1, 5
	learn := func() { c.topo.learnTopic("orders", theTopic, []kmsg.MetadataResponseTopicPartition{part}) }

	c.NoteLeader(tp, kafka.LeaderHint{Node: 9, Epoch: 9})
	if _, _, _, ok := c.Leader(tp); ok {
		t.Error("a hint made up a partition nobody asked for")
	}
	learn()
	steps := []struct {
		hint kafka.LeaderHint
		want int32
	}{
		{kafka.LeaderHint{Node: 2, Epoch: 5}, 1},  // not newer
		{kafka.LeaderHint{Node: 2, Epoch: 4}, 1},  // older
		{kafka.LeaderHint{Node: -1, Epoch: 9}, 1}, // none
		{kafka.LeaderHint{Node: 2, Epoch: 6}, 2},
	}
	for _, s := range steps {
		c.NoteLeader(tp, s.hint)
		if node, _, id, ok := c.Leader(tp); !ok || node != s.want || id != theTopic {
			t.Errorf("after %+v: node %d, id %s, %t", s.hint, node, id, ok)
		}
	}
	learn() // metadata from a broker that has not heard of epoch 6
	if node, _, _, _ := c.Leader(tp); node != 2 {
		t.Errorf("old metadata made node %d the leader", node)
	}
	// A topic made anew counts its epochs from zero.
	part.LeaderEpoch = 0
	c.topo.learnTopic("orders", kafka.TopicID{9}, []kmsg.MetadataResponseTopicPartition{part})
	if node, epoch, id, _ := c.Leader(tp); node != 1 || epoch != 0 || id != (kafka.TopicID{9}) {
		t.Errorf("node %d epoch %d id %s", node, epoch, id)
	}
	part.Leader = kafka.NoNode
	part.LeaderEpoch = 1
	c.topo.learnTopic("orders", kafka.TopicID{9}, []kmsg.MetadataResponseTopicPartition{part})
	if _, _, _, ok := c.Leader(tp); ok {
		t.Error("a leaderless partition has a leader")
	}
}

// Many partitions that lose their leader at once ask once.
func TestRefreshesAreShared(t *testing.T) {
	k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "a", "b", "c"))
	first := make(chan struct{})
	release := make(chan struct{})
	began := sync.OnceFunc(func() { close(first) })
	k.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		began()
		<-release
		return nil, nil, false
	})
	var wg sync.WaitGroup
	ask := func(topic string) {
		if err := c.RefreshMetadata(deadline(t), topic); err != nil {
			t.Error(err)
		}
	}
	wg.Go(func() { ask("a") })
	<-first
	var asking sync.WaitGroup
	for range 50 {
		for _, topic := range []string{"b", "c"} {
			asking.Add(1)
			wg.Go(func() {
				asking.Done()
				ask(topic)
			})
		}
	}
	asking.Wait()
	close(release)
	wg.Wait()
	for _, topic := range []string{"a", "b", "c"} {
		if _, _, _, ok := c.Leader(kafka.TopicPartition{Topic: topic}); !ok {
			t.Errorf("no leader of %s", topic)
		}
	}
	if n := c.Stats().MetadataRefreshes; n > 4 {
		t.Errorf("101 callers made %d requests", n)
	}
}

// Topics that were learned together are asked for again bit by bit, each before its
// facts are older than MetadataMaxAge, and one that is gone never.
func TestAgedTopicsAreAskedForBitByBit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const topics, age = 1000, 5 * time.Minute
		c := bare()
		c.opts.MetadataMaxAge = age
		part := kmsg.NewMetadataResponseTopicPartition()
		learned := map[string]time.Time{}
		learn := func(name string) {
			c.topo.learnTopic(name, theTopic, []kmsg.MetadataResponseTopicPartition{part})
			learned[name] = time.Now()
		}
		for i := range topics {
			learn(fmt.Sprintf("topic-%d", i))
		}
		c.topo.forget("topic-7")
		delete(learned, "topic-7")
		const step = age / agedSteps
		for began := time.Now(); time.Since(began) < 10*age; {
			time.Sleep(step)
			c.topo.addAged(time.Now())
			next := c.topo.mu.next
			c.topo.mu.next = nil
			if next == nil {
				continue
			}
			if n := len(next.topics); n > topics/5 {
				t.Fatalf("%d of %d topics are asked for at once", n, topics)
			}
			for name := range next.topics {
				if _, known := learned[name]; !known {
					t.Fatalf("%s is asked for, which is gone", name)
				}
				learn(name)
			}
			for name, at := range learned {
				if time.Since(at) > age+step {
					t.Fatalf("the facts of %s are %v old", name, time.Since(at))
				}
			}
		}
	})
}

// A node that nobody knows costs no walk over all topics.
func TestUnknownNodeIsAskedForWithoutTopics(t *testing.T) {
	k, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "a", "b", "c"))
	if err := c.RefreshMetadata(deadline(t), "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	k.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		asked.Add(int64(len(req.(*kmsg.MetadataRequest).Topics)))
		return nil, nil, false
	})
	before := c.Stats().MetadataRefreshes
	if _, err := c.DialFetch(deadline(t), 77); err == nil {
		t.Error("node 77 was found")
	}
	if c.Stats().MetadataRefreshes == before || asked.Load() > 0 {
		t.Errorf("%d requests for %d topics", c.Stats().MetadataRefreshes-before, asked.Load())
	}
}

func TestRefreshAfterCloseFails(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1))
	c.Close()
	if err := c.RefreshMetadata(t.Context(), "a"); !errors.Is(err, errClientClosed) {
		t.Error(err)
	}
}

func TestUnknownNodeIsNamed(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1))
	_, err := c.DialFetch(deadline(t), 77)
	if kafka.ClassOf(err) != kafka.ClassRefresh {
		t.Error(err)
	}
}

func TestUnreachableClusterIsAnErrorOfTheRequest(t *testing.T) {
	c := open(t, []string{"127.0.0.1:1"}, nil)
	_, err := c.Topics(deadline(t))
	var e *kafka.Error
	if !errors.As(err, &e) || e.Cluster != "west" || kafka.ClassOf(err) != kafka.ClassRetry {
		t.Error(err)
	}
}
