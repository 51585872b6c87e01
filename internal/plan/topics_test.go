package plan

import (
	"fmt"
	"strings"
	"testing"

	"heliograph/internal/kafka"
)

func TestTopicPlansReadAsTheyAreDone(t *testing.T) {
	denied := &kafka.Error{Op: "read topic configs", Cluster: "A", Subject: "orders", Code: kafka.CodeTopicAuthorizationFailed}
	cases := []struct {
		name     string
		identity bool
		change   func(*Desired)
		source   []Topic
		target   []Topic
	}{
		{
			name: "create",
			source: []Topic{
				topic("plain", 3, nil),
				topic("table", 1, map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2097152", "min.insync.replicas": "2"}),
				topic("heartbeats", 1, map[string]string{"cleanup.policy": "compact"}),
				topic("mm2-offset-syncs.B.internal", 1, nil),
				topic("B.plain", 1, nil),
				{Name: "__consumer_offsets", Partitions: 50, Internal: true},
			},
		},
		{
			name: "create-with-source-defaults", change: func(d *Desired) { d.Configs.DefaultsFromSource = true },
			source: []Topic{topic("plain", 1, nil)},
		},
		{
			name: "create-with-broker-default-factor", change: func(d *Desired) { d.ReplicationFactor = -1 },
			source: []Topic{topic("plain", 1, nil)},
		},
		{
			name: "create-unknown-setting", change: func(d *Desired) { d.Known = map[string]bool{"cleanup.policy": true} },
			source: []Topic{topic("plain", 1, map[string]string{"cleanup.policy": "compact", "segment.ms": "5"})},
		},
		{
			name: "grow", source: []Topic{topic("orders", 6, nil), topic("wide", 2, nil)},
			target: []Topic{topic("A.orders", 3, nil), topic("A.wide", 9, nil)},
		},
		{name: "unreadable-settings", source: []Topic{{Name: "orders", Partitions: 1, ConfigsErr: denied}, topic("other", 1, nil)}},
		{
			name: "unreadable-settings-without-sync", change: func(d *Desired) { d.Configs.Sync = false },
			source: []Topic{{Name: "orders", Partitions: 1, ConfigsErr: denied}},
		},
		{
			name: "undescribable", source: []Topic{{Name: "orders", Err: kafka.CodeTopicAuthorizationFailed}, {Name: "late", Err: kafka.CodeLeaderNotAvailable}, topic("other", 1, nil)},
			target: []Topic{{Name: "A.other", Err: kafka.CodeTopicAuthorizationFailed}},
		},
		{
			name: "clash-of-dot-and-underscore", identity: true, source: []Topic{topic("a.b", 1, nil), topic("c.d", 1, nil)},
			target: []Topic{topic("a_b", 1, nil), topic("c_d", 1, nil), topic("c.d", 1, nil)},
		},
		{
			name: "reserved", identity: true, change: func(d *Desired) { d.Reserved["orders"] = "flow C->B" },
			source: []Topic{topic("orders", 1, nil), topic("plain", 1, nil)},
		},
		{name: "too-long", source: []Topic{topic(strings.Repeat("x", 248), 1, nil), topic(strings.Repeat("y", 247), 1, nil)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := desired(t, c.identity)
			if c.change != nil {
				c.change(&d)
			}
			m := Match(Observed{Source: c.source, Target: c.target}, d)
			out := lines(Topics(m, d))
			for _, s := range m.Skipped {
				out += fmt.Sprintf("skip topic %s: %s\n", s.Topic, s.Reason)
			}
			golden(t, "topics-"+c.name, out)
		})
	}
}

func TestTwoTopicsNeverShareARemoteName(t *testing.T) {
	d := desired(t, true)
	d.Selection.Policy = oneName{d.Selection.Policy}
	m := Match(Observed{Source: []Topic{topic("b", 1, nil), topic("a", 1, nil)}}, d)
	if len(m.Pairs) != 1 || m.Pairs[0].Source.Name != "a" {
		t.Fatalf("pairs %v, want only the first by name", m.Pairs)
	}
	if len(m.Parked) != 1 || m.Parked[0].Reason != "its remote name same is already that of topic a" {
		t.Fatalf("parked %v", m.Parked)
	}
}

func TestMatchedCountsEveryTopicOnce(t *testing.T) {
	d := desired(t, false, "orders.*")
	m := Match(Observed{
		Source: []Topic{topic("orders", 1, nil), topic("orders-late", 1, nil), topic("other", 1, nil), topic("more", 1, nil)},
		Target: []Topic{topic("A.orders", 1, nil)},
	}, d)
	if m.Total() != 4 || len(m.Pairs) != 2 {
		t.Fatalf("%d of %d matched, want 2 of 4", len(m.Pairs), m.Total())
	}
	if missing := m.Missing(); len(missing) != 1 || missing[0] != "orders-late" {
		t.Fatalf("missing %v", missing)
	}
}
