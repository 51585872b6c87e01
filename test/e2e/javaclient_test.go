//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heliograph/internal/kafkatest"
)

// TestJavaClientLibrary: Kafka's own MirrorClient and RemoteClusterUtils, of both
// releases, read what heliograph writes: clusters upstream, hops, heartbeats,
// checkpoints, copies, and a group's translated offsets, exactly.
func TestJavaClientLibrary(t *testing.T) {
	kafkatest.RequireJDK(t)
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic1()
		f.produce(f.primary, topic, partitions, 1000)
		// The pair in the other direction writes the heartbeats that primary's are copied from.
		h := start(t, f.file("heartbeats.replication.enabled = true"))
		awaitCount(within(t, patience), t, f.backup, f.remote(topic), 1000)
		f.primary.CommitGroup(t, f.group(), topic, 0, 11, 22, 33, 44, 55, 66, 77, 88, 100)
		await(t, "checkpoints of all partitions", func() string { return lacks(partitions, len(f.translated(f.remote(topic)))) })
		awaitTopic(t, f.backup, f.from+".heartbeats", 1)

		args := []string{f.backup.Bootstrap(), f.from, f.group()}
		if f.identity {
			args = append(args, "org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
		}
		for _, version := range []string{kafkatest.ReleaseSource, kafkatest.ReleaseTarget} {
			out, err := kafkatest.RunJava(within(t, patience), version, "testdata/Client.java", args...)
			if err != nil {
				t.Fatal(err)
			}
			said := map[string]string{}
			offsets := map[string]string{}
			for line := range strings.Lines(out) {
				what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				if what == "offset" {
					tp, at, _ := strings.Cut(value, " ")
					offsets[tp] = at
				} else {
					said[what] = value
				}
			}
			has := func(what, item string) {
				t.Helper()
				if !slices.Contains(strings.Split(strings.Trim(said[what], "[]"), ", "), item) {
					t.Errorf("%s: no %s among the %s: %s", version, item, what, said[what])
				}
			}
			has("upstream", f.from)
			has("heartbeats", "heartbeats")
			has("heartbeats", f.from+".heartbeats")
			has("checkpoints", f.from+".checkpoints.internal")
			has("remote", f.remote(topic))
			if said["hops"] != "1" {
				t.Errorf("%s: %s hops, want 1", version, said["hops"])
			}
			for p, want := range []int{0, 11, 22, 33, 44, 55, 66, 77, 88, 100} {
				if got := offsets[fmt.Sprintf("%s-%d", f.remote(topic), p)]; got != fmt.Sprint(want) {
					t.Errorf("%s: partition %d is translated to %q, want %d", version, p, got, want)
				}
			}
		}
		h.stop()
	})
}
