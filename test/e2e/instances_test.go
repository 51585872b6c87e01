//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"heliograph/internal/kafkatest"
)

// TestTwoServersShareAStore: what one is told the other knows, at the same time or a kill -9 later;
// of edits that contradict each other one is refused; and both together copy every record once,
// while a filter grows and after one of them has died.
func TestTwoServersShareAStore(t *testing.T) {
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
  refresh.topics.interval.seconds: "1"
`, f.backup.Bootstrap(), f.name)
	one, two := serve(t, config), serve(t, config)
	one.register(f.from, map[string]string{"bootstrap.servers": f.primary.Bootstrap()})
	two.register(f.to, map[string]string{"bootstrap.servers": f.backup.Bootstrap()})
	path := "/api/v1/flows/" + f.from + "/" + f.to
	put := func(s *served, topics string, headers ...string) int {
		t.Helper()
		status, answer := s.call(http.MethodPut, path, map[string]any{"properties": map[string]string{"topics": topics}}, headers...)
		if status >= 300 && status != http.StatusPreconditionFailed {
			t.Fatalf("put the flow: %d %s", status, answer)
		}
		return status
	}
	put(one, orders)
	for _, s := range []*served{one, two} {
		s.awaitState(path, "running")
	}

	written := map[string]int{}
	write := func(topic string) {
		t.Helper()
		if err := f.primary.Client(t).ProduceSync(t.Context(), kafkatest.Messages(topic, 3, 100)...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		written[topic] += 300
	}
	copied := func() {
		t.Helper()
		for topic, n := range written {
			awaitCount(within(t, patience), t, f.backup, f.remote(topic), n)
			same(t, kafkatest.Side{Cluster: f.primary, Topic: topic}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(topic)})
		}
	}
	write(orders)
	write(payments)

	// The same flow, by the same ETag, on both at the same time.
	_, tag := one.etag(path)
	var edits sync.WaitGroup
	var outcome [2]int
	for i, s := range []*served{one, two} {
		edits.Go(func() { outcome[i] = put(s, fmt.Sprintf("%s, %s, nothing-%d", orders, payments, i), "If-Match: "+tag) })
	}
	edits.Wait()
	if outcome[0]+outcome[1] != http.StatusOK+http.StatusPreconditionFailed {
		t.Errorf("two edits on one revision: %v, want one refused", outcome)
	}
	// Other resources, each on what is newest when it is asked for.
	for i, s := range []*served{one, two} {
		edits.Go(func() {
			for n := range 5 {
				if status, answer := s.call(http.MethodPut, fmt.Sprintf("/api/v1/clusters/extra-%d-%d", i, n), map[string]any{"properties": map[string]string{"bootstrap.servers": "127.0.0.1:1"}}); status >= 300 {
					t.Errorf("edit %d on instance %d: %d %s", n, i, status, answer)
				}
			}
		})
	}
	write(orders)
	edits.Wait()
	copied()
	knows := func(s *served) {
		t.Helper()
		await(t, "an instance knows every edit", func() string {
			if _, answer := s.call(http.MethodGet, "/api/v1/clusters", nil); strings.Count(answer, `"alias":"extra-`) != 10 {
				return answer
			}
			return ""
		})
	}
	for i, s := range []*served{one, two} {
		knows(s)
		if strings.Contains(s.Log(), `"effect":"restart"`) {
			t.Errorf("instance %d restarted a flow for a wider filter", i)
		}
	}

	if err := one.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	write(orders)
	put(two, orders+", "+payments)
	write(payments)
	copied()
	three := serve(t, config)
	knows(three)
	if status, answer := three.call(http.MethodGet, path, nil); status != http.StatusOK || !strings.Contains(answer, `"topics":"`+orders+", "+payments+`"`) {
		t.Errorf("the edit after the kill, read by a new instance: %d %s", status, answer)
	}
	two.stop()
	write(orders)
	copied()
	three.stop()
}
