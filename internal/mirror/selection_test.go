package mirror

import (
	"strings"
	"testing"
)

func TestReplicates(t *testing.T) {
	all := TopicFilter{Include: mustPatterns(t, ".*")}
	none := TopicFilter{}
	def := NewDefaultPolicy(PolicyOptions{})
	underscore := NewDefaultPolicy(PolicyOptions{Separator: "_"})
	identity := NewIdentityPolicy(PolicyOptions{Source: "source"})

	tests := []struct {
		name      string
		selection TopicSelection
		yes, no   []string
	}{
		{
			"default policy",
			TopicSelection{def, all, "target", true},
			[]string{"topic1", "source.topic1", "targettopic", "target", "target.", "x.heartbeats"},
			[]string{
				"target.topic1", "target.source.topic1", "source.target.topic1", "target.source.target.topic1",
				"source.target.source.topic1", "target.heartbeats", "__consumer_offsets", ".hidden", "mm2-offsets.A.internal",
			},
		},
		{
			"heartbeats pass a filter that rejects all",
			TopicSelection{def, none, "target", true},
			[]string{"heartbeats", "us-west.heartbeats"},
			[]string{"topic1", "target.heartbeats"},
		},
		{
			"heartbeats by the separator",
			TopicSelection{underscore, none, "target", true},
			[]string{"heartbeats", "us-west_heartbeats"},
			[]string{"us-west.heartbeats"},
		},
		{
			"heartbeats replication off",
			TopicSelection{def, none, "target", false},
			nil,
			[]string{"heartbeats", "us-west.heartbeats"},
		},
		{
			"heartbeats replication off, filter accepts",
			TopicSelection{def, all, "target", false},
			[]string{"heartbeats", "us-west.heartbeats"},
			nil,
		},
		{
			"identity policy",
			TopicSelection{identity, all, "target", true},
			[]string{
				"topic1", "source.topic1", "target.topic1", "target.source.topic1", "source.target.topic1",
				"target.source.target.topic1", "source.target.source.topic1", "heartbeats", "othersource.heartbeats",
			},
			[]string{"target.heartbeats", "target.source.heartbeats", "source.target.heartbeats", "source.target.source.heartbeats"},
		},
		{
			"a name that begins with the target's letter",
			TopicSelection{NewDefaultPolicy(PolicyOptions{Aliases: []ClusterAlias{"", "B"}}), all, "B", true},
			[]string{"Billing", "B", "Bxy"},
			[]string{"B.illing"},
		},
		{
			"the old trick for keeping names",
			TopicSelection{NewIdentityPolicy(PolicyOptions{}), all, "B", true},
			[]string{"Billing", "B.illing", "orders"},
			nil,
		},
		{
			"aliases with dots",
			TopicSelection{NewDefaultPolicy(PolicyOptions{Aliases: []ClusterAlias{"a", "x.k"}}), all, "x.k", true},
			[]string{"x.orders", "a.orders", "x.king"},
			[]string{"x.k.orders", "a.x.k.orders"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, topic := range tt.yes {
				if ok, reason := tt.selection.Replicates(topic); !ok || reason != "" {
					t.Errorf("%q is not copied: %s", topic, reason)
				}
			}
			for _, topic := range tt.no {
				if ok, reason := tt.selection.Replicates(topic); ok || reason == "" {
					t.Errorf("%q is copied, or left out without a reason", topic)
				}
			}
		})
	}
}

func TestReplicatesSaysWhyNot(t *testing.T) {
	s := TopicSelection{
		Policy: NewDefaultPolicy(PolicyOptions{}),
		Filter: TopicFilter{Include: mustPatterns(t, "orders, B.*"), Exclude: mustPatterns(t, "Bad")},
		Target: "B",
	}
	for topic, part := range map[string]string{
		"__consumer_offsets": "internal",
		"B.orders":           "came from B",
		"payments":           "no pattern in topics",
		"Bad":                `excluded by "Bad"`,
	} {
		if ok, reason := s.Replicates(topic); ok || !strings.Contains(reason, part) {
			t.Errorf("%q: %v %q, want a reason with %q", topic, ok, reason, part)
		}
	}
}

// silentPolicy knows sources but no upstream names, as a foreign policy may.
type silentPolicy struct{ ReplicationPolicy }

func (silentPolicy) UpstreamTopic(string) (string, bool) { return "", false }

func TestReplicatesWithAPolicyThatKnowsNoUpstream(t *testing.T) {
	s := TopicSelection{
		Policy: silentPolicy{NewDefaultPolicy(PolicyOptions{})},
		Filter: TopicFilter{Include: mustPatterns(t, ".*")},
		Target: "target",
	}
	if ok, reason := s.Replicates("source.target.topic1"); !ok {
		t.Errorf("not copied: %s", reason)
	}
	if ok, _ := s.Replicates("target.topic1"); ok {
		t.Error("a topic of the target is copied back")
	}
}

func TestFlowIDPrintsAsInTheFile(t *testing.T) {
	if got := (FlowID{"A", "B"}).String(); got != "A->B" {
		t.Errorf("flow prints %q", got)
	}
}
