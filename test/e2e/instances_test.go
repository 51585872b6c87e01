//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"heliograph/internal/kafkatest"
)

// TestTwoServersShareAStoreAndChangeAFlowWhileItRuns: what one is told the other knows, both copy,
// edits at the same time are all kept, and a wider filter disturbs no partition under load.
func TestTwoServersShareAStoreAndChangeAFlowWhileItRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	orders, payments := f.topic("orders"), f.topic("payments")
	for _, topic := range []string{orders, payments} {
		f.primary.CreateTopic(t, topic, 3, nil)
	}
	config := fmt.Sprintf(`store:
  cluster: {bootstrap.servers: %q}
  topic: mm2-%s.internal
  replication_factor: 1
defaults:
  replication.factor: "1"
  checkpoints.topic.replication.factor: "1"
  heartbeats.topic.replication.factor: "1"
  offset-syncs.topic.replication.factor: "1"
  offset.storage.replication.factor: "1"
  refresh.topics.interval.seconds: "1"
`, f.backup.Bootstrap(), f.name)
	one, two := serve(t, config), serve(t, config)
	one.register(f.from, map[string]string{"bootstrap.servers": f.primary.Bootstrap()})
	two.register(f.to, map[string]string{"bootstrap.servers": f.backup.Bootstrap()})

	path := "/api/v1/flows/" + f.from + "/" + f.to
	put := func(s *served, topics string) {
		t.Helper()
		if status, answer := s.call(http.MethodPut, path, map[string]any{"properties": map[string]string{"topics": topics}}); status >= 300 {
			t.Fatalf("put the flow: %d %s", status, answer)
		}
	}
	put(one, orders)
	await(t, "the other instance runs the flow too", func() string {
		_, answer := two.call(http.MethodGet, path+"/status", nil)
		if strings.Contains(answer, `"state":"running"`) {
			return ""
		}
		return answer
	})

	// Many edits of other resources on both sides, each on what was newest when it was asked for.
	var edits sync.WaitGroup
	for i, s := range []*served{one, two} {
		edits.Go(func() {
			for n := range 5 {
				if status, answer := s.call(http.MethodPut, fmt.Sprintf("/api/v1/clusters/extra-%d-%d", i, n), map[string]any{"properties": map[string]string{"bootstrap.servers": "127.0.0.1:1"}}); status >= 300 {
					t.Errorf("edit %d on instance %d: %d %s", n, i, status, answer)
				}
			}
		})
	}

	cl := f.primary.Client(t)
	written := 0
	write := func(topic string) {
		t.Helper()
		if err := cl.ProduceSync(t.Context(), kafkatest.Messages(topic, 3, 100)...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		write(orders)
		written += 300
	}
	write(payments)
	put(two, orders+", "+payments)
	for range 10 {
		write(orders)
		written += 300
	}
	edits.Wait()
	awaitCount(within(t, patience), t, f.backup, f.remote(orders), written)
	awaitCount(within(t, patience), t, f.backup, f.remote(payments), 300)
	same(t, kafkatest.Side{Cluster: f.primary, Topic: orders}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(orders)})
	for i, s := range []*served{one, two} {
		await(t, fmt.Sprintf("instance %d knows every edit", i), func() string {
			if _, answer := s.call(http.MethodGet, "/api/v1/clusters", nil); strings.Count(answer, `"alias":"extra-`) != 10 {
				return answer
			}
			return ""
		})
		if strings.Contains(s.Log(), `"msg":"flow changes"`) {
			t.Errorf("instance %d restarted a flow for a wider filter", i)
		}
	}
	one.stop()
	two.stop()
}
