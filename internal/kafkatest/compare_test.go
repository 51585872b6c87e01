package kafkatest

import (
	"strings"
	"testing"

	"heliograph/internal/kafka"
)

// A checker that cannot fail proves nothing: every kind of difference is found.
func TestCompareFindsEveryDifference(t *testing.T) {
	source := func() map[int32][]kafka.Record {
		return map[int32][]kafka.Record{
			0: {
				{Key: []byte("a"), Value: []byte("1"), Timestamp: 10, Offset: 100},
				{Key: nil, Value: []byte{}, Timestamp: 11, Offset: 107, Headers: []kafka.Header{{Key: "h", Value: []byte("x")}, {Key: "h"}}},
			},
			1: {{Key: []byte("b"), Timestamp: 12}},
		}
	}
	for _, row := range []struct {
		name           string
		change         func(m map[int32][]kafka.Record)
		options        CompareOptions
		want           string // part of the first difference; empty for equal
		missing, extra int
	}{
		{name: "other offsets", change: func(m map[int32][]kafka.Record) { m[0][1].Offset = 1 }},
		{name: "key", change: func(m map[int32][]kafka.Record) { m[0][0].Key = []byte("z") }, want: `key "z", want "a"`, missing: 1, extra: 1},
		{name: "null key is not empty", change: func(m map[int32][]kafka.Record) { m[0][1].Key = []byte{} }, want: `key "", want null`, missing: 1, extra: 1},
		{name: "empty value is not null", change: func(m map[int32][]kafka.Record) { m[0][1].Value = nil }, want: `value null, want ""`, missing: 1, extra: 1},
		{name: "timestamp", change: func(m map[int32][]kafka.Record) { m[1][0].Timestamp++ }, want: "timestamp 13, want 12", missing: 1, extra: 1},
		{name: "timestamp, ignored", change: func(m map[int32][]kafka.Record) { m[1][0].Timestamp++ }, options: CompareOptions{IgnoreTimestamps: true}},
		{name: "header order", change: func(m map[int32][]kafka.Record) { h := m[0][1].Headers; h[0], h[1] = h[1], h[0] }, want: `header 0 is "h"=null, want "h"="x"`, missing: 1, extra: 1},
		{name: "header lost", change: func(m map[int32][]kafka.Record) { m[0][1].Headers = m[0][1].Headers[:1] }, want: "1 headers, want 2", missing: 1, extra: 1},
		{name: "order", change: func(m map[int32][]kafka.Record) { m[0][0], m[0][1] = m[0][1], m[0][0] }, want: "partition 0, record 0"},
		{name: "lost at the end", change: func(m map[int32][]kafka.Record) { m[0] = m[0][:1] }, want: "2 source records, 1 target", missing: 1},
		{name: "copied twice", change: func(m map[int32][]kafka.Record) { m[1] = append(m[1], m[1][0]) }, want: "1 source records, 2 target", extra: 1},
		{name: "other partition", change: func(m map[int32][]kafka.Record) { m[2], m[1] = m[1], nil }, want: "partition 1: 1 source records, 0 target", missing: 1, extra: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := source()
			row.change(got)
			r := CompareRecords(source(), got, row.options)
			if r.Equal() != (row.want == "") || !strings.Contains(r.String(), row.want) {
				t.Errorf("report %q, want %q", r, row.want)
			}
			if r.Missing != row.missing || r.Extra != row.extra {
				t.Errorf("missing %d, extra %d, want %d and %d", r.Missing, r.Extra, row.missing, row.extra)
			}
		})
	}
}
