//go:build e2e

package kafkatest_test

import (
	"testing"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// The zoo holds what it promises, on the release that knows all message formats
// and on a current one.
func TestZooHoldsWhatItPromises(t *testing.T) {
	for _, version := range []string{kafkatest.ReleaseOld, kafkatest.ReleaseSource} {
		t.Run(version, func(t *testing.T) {
			c := kafkatest.Shared(t, version)
			prefix := kafkatest.Name(t, "")
			seen := map[string]int{}
			for _, animal := range kafkatest.Zoo(t, c, prefix) {
				records := c.ReadTopic(t, animal.Topic)
				all, err := c.Read(t.Context(), animal.Topic, kafka.ReadUncommitted)
				if err != nil {
					t.Fatal(err)
				}
				count(seen, records, len(flatten(all))-len(flatten(records)))
			}
			for _, what := range []string{"null key", "empty key", "null value", "empty value", "null header", "no time", "hole", "aborted", "value of 1 MiB", "value of 1 B"} {
				if seen[what] == 0 {
					t.Errorf("the zoo has no %s: %v", what, seen)
				}
			}
		})
	}
}

func flatten(records map[int32][]kafka.Record) []kafka.Record {
	var out []kafka.Record
	for _, list := range records {
		out = append(out, list...)
	}
	return out
}

func count(seen map[string]int, records map[int32][]kafka.Record, aborted int) {
	note := func(what string, yes bool) {
		if yes {
			seen[what]++
		}
	}
	note("aborted", aborted > 0)
	for _, list := range records {
		for i, r := range list {
			note("null key", r.Key == nil)
			note("empty key", r.Key != nil && len(r.Key) == 0)
			note("null value", r.Value == nil)
			note("empty value", r.Value != nil && len(r.Value) == 0)
			note("value of 1 B", len(r.Value) == 1)
			note("value of 1 MiB", len(r.Value) == 1<<20)
			note("no time", r.Timestamp == kafka.TimestampNone)
			note("hole", i > 0 && r.Offset > list[i-1].Offset+1)
			for _, h := range r.Headers {
				note("null header", h.Value == nil)
			}
		}
	}
}
