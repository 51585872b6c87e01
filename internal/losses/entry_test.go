package losses

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func entry(t *rapid.T) Entry {
	return Entry{
		Flow:    mirror.FlowID{Source: mirror.ClusterAlias(rapid.String().Draw(t, "source")), Target: mirror.ClusterAlias(rapid.String().Draw(t, "target"))},
		Source:  kafka.TopicPartition{Topic: rapid.String().Draw(t, "topic"), Partition: rapid.Int32().Draw(t, "partition")},
		Target:  kafka.TopicPartition{Topic: rapid.String().Draw(t, "remote"), Partition: rapid.Int32().Draw(t, "remote partition")},
		From:    mirror.UpstreamOffset(rapid.Int64().Draw(t, "from")),
		To:      mirror.UpstreamOffset(rapid.Int64().Draw(t, "to")),
		Records: rapid.Int64().Draw(t, "records"),
		Kind:    Overtaken, Action: Continued, Reason: rapid.String().Draw(t, "reason"),
		At: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "at")),
	}
}

func TestEntrySurvivesTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := entry(t)
		got, err := Decode(e.Record())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Fatal(d)
		}
	})
}

// Compaction keeps one record a key: two losses must never share one.
func TestEntriesOfDifferentRangesHaveDifferentKeys(t *testing.T) {
	a := Entry{Source: kafka.TopicPartition{Topic: "orders"}, From: 1, To: 5, Kind: Overtaken, At: time.UnixMilli(1000)}
	for name, change := range map[string]func(*Entry){
		"partition": func(e *Entry) { e.Source.Partition = 1 },
		"topic":     func(e *Entry) { e.Source.Topic = "payments" },
		"range":     func(e *Entry) { e.From = 2 },
		"kind":      func(e *Entry) { e.Kind = Refused },
		"time":      func(e *Entry) { e.At = time.UnixMilli(1001) },
		"flow":      func(e *Entry) { e.Flow.Source = "C" },
	} {
		b := a
		change(&b)
		if string(a.Record().Key) == string(b.Record().Key) {
			t.Errorf("another %s gives the same key", name)
		}
	}
}

func TestDecodeRefusesForeignBytes(t *testing.T) {
	for _, r := range []kafka.Record{{}, {Key: []byte("x"), Value: []byte("{}")}, {Key: []byte("{}"), Value: []byte("x")}} {
		if _, err := Decode(r); err == nil {
			t.Errorf("%q: %q was taken for an entry", r.Key, r.Value)
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := Entry{Source: kafka.TopicPartition{Topic: "orders"}, Kind: Overtaken, At: time.UnixMilli(1)}.Record()
	f.Add(r.Key, r.Value)
	f.Fuzz(func(_ *testing.T, key, value []byte) {
		e, err := Decode(kafka.Record{Key: key, Value: value})
		if err == nil {
			_ = e.String()
		}
	})
}
