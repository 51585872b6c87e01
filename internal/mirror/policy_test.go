package mirror

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDefaultPolicyReadsNamesAsMirrorMakerDoes(t *testing.T) {
	tests := []struct {
		name, separator, topic string
		aliases                []ClusterAlias
		source                 ClusterAlias
		isRemote               bool
		upstream, original     string
	}{
		{name: "plain", topic: "foo", original: "foo"},
		{name: "one hop", topic: "a.b", source: "a", isRemote: true, upstream: "b", original: "b"},
		{name: "two hops", topic: "a.b.c", source: "a", isRemote: true, upstream: "b.c", original: "c"},
		{name: "nothing behind", topic: "foo.", original: "foo."},
		{name: "only separators behind", topic: "foo...", original: "foo..."},
		{name: "an empty alias", topic: ".foo", isRemote: true, upstream: "foo", original: "foo"},
		{name: "an empty piece", topic: "a..b", source: "a", isRemote: true, upstream: ".b", original: "b"},
		{name: "the separator is no pattern", separator: "|", topic: "a|b.c", source: "a", isRemote: true, upstream: "b.c", original: "b.c"},
		{name: "another separator", separator: "_", topic: "us-west.heartbeats", original: "us-west.heartbeats"},
		{name: "a long separator", separator: "__", topic: "source1__source2__t", source: "source1", isRemote: true, upstream: "source2__t", original: "t"},
		{name: "three of a long separator's characters", separator: "__", topic: "a___b", source: "a", isRemote: true, upstream: "_b", original: "_b"},
		{
			name: "an alias with a dot", aliases: []ClusterAlias{"b", "xxxxxxxxx.kafka-xxxxxxxx"}, topic: "xxxxxxxxx.kafka-xxxxxxxx.orders",
			source: "xxxxxxxxx.kafka-xxxxxxxx", isRemote: true, upstream: "orders", original: "orders",
		},
		{
			name: "an alias with a dot behind a hop", aliases: []ClusterAlias{"b", "x.k"}, topic: "b.x.k.orders",
			source: "b", isRemote: true, upstream: "x.k.orders", original: "orders",
		},
		{
			name: "the longest alias", aliases: []ClusterAlias{"x.k", "x", "x.k.l"}, topic: "x.k.l.orders",
			source: "x.k.l", isRemote: true, upstream: "orders", original: "orders",
		},
		{
			name: "an alias is not a beginning of a word", aliases: []ClusterAlias{"x.k"}, topic: "x.kind.orders",
			source: "x", isRemote: true, upstream: "kind.orders", original: "orders",
		},
		{
			name: "an alias that makes a separator with the one behind it", separator: "__", aliases: []ClusterAlias{"a_"}, topic: "a___b",
			source: "a_", isRemote: true, upstream: "b", original: "b",
		},
		{
			name: "an empty known alias changes nothing", aliases: []ClusterAlias{""}, topic: "a.b",
			source: "a", isRemote: true, upstream: "b", original: "b",
		},
		{name: "an empty separator is the default one", separator: "", topic: "Billing", aliases: []ClusterAlias{"B", ""}, original: "Billing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := NewDefaultPolicy(PolicyOptions{Separator: tt.separator, Aliases: tt.aliases})
			if source, ok := p.TopicSource(tt.topic); source != tt.source || ok != tt.isRemote {
				t.Errorf("TopicSource(%q) = %q, %v, want %q, %v", tt.topic, source, ok, tt.source, tt.isRemote)
			}
			if up, ok := p.UpstreamTopic(tt.topic); up != tt.upstream || ok != tt.isRemote {
				t.Errorf("UpstreamTopic(%q) = %q, %v, want %q, %v", tt.topic, up, ok, tt.upstream, tt.isRemote)
			}
			if original := OriginalTopic(p, tt.topic); original != tt.original {
				t.Errorf("OriginalTopic(%q) = %q, want %q", tt.topic, original, tt.original)
			}
		})
	}
}

func TestIdentityPolicyKeepsNamesExceptHeartbeats(t *testing.T) {
	p := NewIdentityPolicy(PolicyOptions{Source: "A"})
	tests := []struct {
		topic, remote string
		source        ClusterAlias
		isRemote      bool
		upstream      string
		hasUpstream   bool
		heartbeats    bool
	}{
		{"orders", "orders", "A", true, "orders", true, false},
		{"x.orders", "x.orders", "A", true, "x.orders", true, false},
		{"heartbeats", "A.heartbeats", "", false, "", false, true},
		{"A.heartbeats", "A.A.heartbeats", "A", true, "heartbeats", true, true},
		{"B.A.heartbeats", "A.B.A.heartbeats", "B", true, "A.heartbeats", true, true},
		{"myheartbeats", "A.myheartbeats", "", false, "", false, false},
		{"heartbeats!", "heartbeats!", "A", true, "heartbeats!", true, false},
	}
	for _, tt := range tests {
		if got := p.RemoteTopic("A", tt.topic); got != tt.remote {
			t.Errorf("RemoteTopic(%q) = %q, want %q", tt.topic, got, tt.remote)
		}
		if source, ok := p.TopicSource(tt.topic); source != tt.source || ok != tt.isRemote {
			t.Errorf("TopicSource(%q) = %q, %v, want %q, %v", tt.topic, source, ok, tt.source, tt.isRemote)
		}
		if up, ok := p.UpstreamTopic(tt.topic); up != tt.upstream || ok != tt.hasUpstream {
			t.Errorf("UpstreamTopic(%q) = %q, %v, want %q, %v", tt.topic, up, ok, tt.upstream, tt.hasUpstream)
		}
		if got := p.IsHeartbeatsTopic(tt.topic); got != tt.heartbeats {
			t.Errorf("IsHeartbeatsTopic(%q) = %v", tt.topic, got)
		}
	}
	if source, ok := NewIdentityPolicy(PolicyOptions{}).TopicSource("orders"); ok {
		t.Errorf("a bare identity policy knows the source %q", source)
	}
}

func TestHeartbeatsAndCheckpointsTopicsAreRecognised(t *testing.T) {
	p := NewDefaultPolicy(PolicyOptions{})
	for topic, want := range map[string]bool{
		"heartbeats": true, "source1.heartbeats": true, "source2.source1.heartbeats": true,
		"heartbeats!": false, "!heartbeats": false, "source1heartbeats": false, "source1-heartbeats": false,
	} {
		if got := p.IsHeartbeatsTopic(topic); got != want {
			t.Errorf("IsHeartbeatsTopic(%q) = %v", topic, got)
		}
	}
	for topic, want := range map[string]bool{"source1.checkpoints.internal": true, "checkpoints.internal": false, "checkpoints-internal": false} {
		if got := p.IsCheckpointsTopic(topic); got != want {
			t.Errorf("IsCheckpointsTopic(%q) = %v", topic, got)
		}
	}
}

func TestBookkeepingTopicsFollowTheSeparator(t *testing.T) {
	tests := []struct {
		options            PolicyOptions
		checkpoints, syncs string
	}{
		{PolicyOptions{}, "CLUSTER.checkpoints.internal", "mm2-offset-syncs.CLUSTER.internal"},
		{PolicyOptions{Separator: "__"}, "CLUSTER__checkpoints__internal", "mm2-offset-syncs__CLUSTER__internal"},
		{PolicyOptions{Separator: "__", InternalSeparator: "."}, "CLUSTER.checkpoints.internal", "mm2-offset-syncs.CLUSTER.internal"},
	}
	for _, tt := range tests {
		for _, baseline := range []bool{true, false} {
			tt.options.BaselineInternal = baseline
			for name, p := range map[string]ReplicationPolicy{"default": NewDefaultPolicy(tt.options), "identity": NewIdentityPolicy(tt.options)} {
				if got := p.CheckpointsTopic("CLUSTER"); got != tt.checkpoints || !p.IsCheckpointsTopic(got) || !p.IsInternalTopic(got) {
					t.Errorf("%s %+v: checkpoints topic %q, want %q, recognised as such and as internal", name, tt.options, got, tt.checkpoints)
				}
				if got := p.OffsetSyncsTopic("CLUSTER"); got != tt.syncs || !p.IsInternalTopic(got) {
					t.Errorf("%s %+v: offset syncs topic %q, want %q, recognised as internal", name, tt.options, got, tt.syncs)
				}
				if got := p.HeartbeatsTopic(); got != "heartbeats" || p.IsInternalTopic(got) {
					t.Errorf("%s %+v: heartbeats topic %q", name, tt.options, got)
				}
			}
		}
	}
	for got, want := range map[string]string{
		PositionsTopic("A"):      "mm2-offsets.A.internal",
		ConnectConfigsTopic("A"): "mm2-configs.A.internal",
		ConnectStatusTopic("A"):  "mm2-status.A.internal",
		OffsetRunsTopic("A"):     "mm2-offset-runs.A.internal",
		LossesTopic:              "mm2-losses.internal",
	} {
		if got != want {
			t.Errorf("topic %q, want %q", got, want)
		}
		for _, o := range []PolicyOptions{{}, {Separator: "_"}, {BaselineInternal: true}} {
			if !NewDefaultPolicy(o).IsInternalTopic(got) {
				t.Errorf("%q would be replicated under %+v", got, o)
			}
		}
	}
}

func TestInternalTopicsByRelease(t *testing.T) {
	baseline := NewDefaultPolicy(PolicyOptions{BaselineInternal: true})
	narrowed := NewDefaultPolicy(PolicyOptions{})
	for _, tt := range []struct {
		topic       string
		old, narrow bool
	}{
		{"__consumer_offsets", true, true},
		{".hiddentopic", true, true},
		{"mm2-offsets.CLUSTER.internal", true, true},
		{"CLUSTER.checkpoints.internal", true, true},
		{"mm2-offsets-CLUSTER-internal", true, false},
		{"mm2-offsets_CLUSTER_internal", false, false},
		{"payments.internal", true, false},
		{"payments-internal", true, false},
		{"internal", false, false},
		{"_hidden", false, false},
		{"orders", false, false},
	} {
		if got := baseline.IsInternalTopic(tt.topic); got != tt.old {
			t.Errorf("up to 3.9 IsInternalTopic(%q) = %v", tt.topic, got)
		}
		if got := narrowed.IsInternalTopic(tt.topic); got != tt.narrow {
			t.Errorf("from 4.0 IsInternalTopic(%q) = %v", tt.topic, got)
		}
	}
}

func TestCheckTopicName(t *testing.T) {
	for _, name := range []string{"a", "A.b_c-9", strings.Repeat("x", MaxTopicName)} {
		if err := CheckTopicName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for name, part := range map[string]string{
		"":                                  "empty",
		".":                                 "not allowed",
		"..":                                "not allowed",
		"a b":                               `' '`,
		"Ω.orders":                          `'Ω'`,
		strings.Repeat("x", MaxTopicName+1): "250 characters",
	} {
		if err := CheckTopicName(name); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v, want one about %q", name, err, part)
		}
	}
}

// The laws of naming, for aliases that can be told apart from topics: a copy's
// name leads back to the topic and to its source, hop by hop.
func TestPolicyLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		separator := rapid.SampledFrom([]string{".", "-", "_", "__", "->"}).Draw(t, "separator")
		name := rapid.StringMatching(`[a-zA-Z0-9]{1,8}`)
		aliases := rapid.SliceOfNDistinct(name, 1, 4, rapid.ID[string]).Draw(t, "aliases")
		topic := name.Draw(t, "topic")
		var known []ClusterAlias
		for _, a := range aliases {
			known = append(known, ClusterAlias(a))
		}
		p := NewDefaultPolicy(PolicyOptions{Separator: separator, Aliases: known})
		remote := topic
		for _, a := range known {
			next := p.RemoteTopic(a, remote)
			if up, ok := p.UpstreamTopic(next); !ok || up != remote {
				t.Fatalf("UpstreamTopic(%q) = %q, want %q", next, up, remote)
			}
			if source, ok := p.TopicSource(next); !ok || source != a {
				t.Fatalf("TopicSource(%q) = %q, want %q", next, source, a)
			}
			remote = next
		}
		if original := OriginalTopic(p, remote); original != topic {
			t.Fatalf("OriginalTopic(%q) = %q, want %q", remote, original, topic)
		}
		for _, a := range known {
			if !passedThrough(p, remote, a) {
				t.Fatalf("%q came through %q unnoticed", remote, a)
			}
		}
	})
}

// FuzzPolicy tries any topic, alias and separator: chains end, a name's parts
// make the name again, and a copy of a topic never escapes loop detection.
func FuzzPolicy(f *testing.F) {
	f.Add("orders", "A", ".")
	f.Add("xxxxxxxxx.kafka-xxxxxxxx.orders", "xxxxxxxxx.kafka-xxxxxxxx", ".")
	f.Add("a___b", "a_", "__")
	f.Add("Billing", "B", "")
	f.Add("...", ".", ".")
	f.Add("heartbeats", "", "")
	f.Add("heartbeats", "0", "a")
	f.Fuzz(func(t *testing.T, topic, alias, separator string) {
		o := PolicyOptions{Separator: separator, Aliases: []ClusterAlias{ClusterAlias(alias)}, Source: ClusterAlias(alias)}
		def := NewDefaultPolicy(o)
		for _, p := range []ReplicationPolicy{def, NewIdentityPolicy(o)} {
			source, ok := p.TopicSource(topic)
			up, hasUp := p.UpstreamTopic(topic)
			// Under identity naming the law holds for copies of heartbeats, unless the
			// separator cuts that very word.
			prefixed := p == def || looksLikeHeartbeats(up)
			if ok && hasUp && prefixed && up != topic && p.RemoteTopic(source, up) != topic {
				t.Fatalf("%q is %q from %q, whose remote name is %q", topic, up, source, p.RemoteTopic(source, up))
			}
			original := OriginalTopic(p, topic)
			if !strings.HasSuffix(topic, original) || OriginalTopic(p, original) != original {
				t.Fatalf("the original of %q is %q", topic, original)
			}
			passedThrough(p, topic, ClusterAlias(alias))
			p.IsInternalTopic(topic)
		}
		effective := separator
		if effective == "" {
			effective = DefaultSeparator
		}
		remote := def.RemoteTopic(ClusterAlias(alias), topic)
		if alias != "" && strings.ReplaceAll(topic, effective, "") != "" && !passedThrough(def, remote, ClusterAlias(alias)) {
			t.Fatalf("%q, a copy from %q with separator %q, would be copied back", remote, alias, separator)
		}
	})
}
