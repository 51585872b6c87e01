package plan

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with testdata/name.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func lines(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		b.WriteString(a.String() + "\n")
	}
	return b.String()
}

func patterns(tb testing.TB, items ...string) mirror.Patterns {
	tb.Helper()
	p, err := mirror.CompilePatterns(items)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

var flowAB = mirror.FlowID{Source: "A", Target: "B"}

// desired is MirrorMaker's default configuration of A->B for the given topics.
func desired(tb testing.TB, identity bool, topics ...string) Desired {
	tb.Helper()
	policy := mirror.NewDefaultPolicy(mirror.PolicyOptions{Separator: ".", InternalSeparator: ".", Aliases: []mirror.ClusterAlias{"A", "B"}})
	if identity {
		policy = mirror.NewIdentityPolicy(mirror.PolicyOptions{Separator: ".", InternalSeparator: ".", Aliases: []mirror.ClusterAlias{"A", "B"}, Source: "A"})
	}
	if len(topics) == 0 {
		topics = []string{".*"}
	}
	return Desired{
		Flow: flowAB,
		Selection: mirror.TopicSelection{
			Policy: policy, Target: "B", ReplicateHeartbeats: true,
			Filter: mirror.TopicFilter{Include: patterns(tb, topics...), Exclude: patterns(tb, mirror.SplitList(mirror.DefaultTopicsExclude4)...)},
		},
		ReplicationFactor: 2,
		Configs: ConfigRules{
			Filter: mirror.ConfigFilter{Exclude: patterns(tb, mirror.SplitList(mirror.DefaultConfigPropertiesExclude)...)},
			Sync:   true,
		},
		Reserved: InternalNames(flowAB, policy),
	}
}

// defaults are the built-in values of the settings that tests know.
var defaults = map[string]string{
	"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1", "delete.retention.ms": "86400000",
	"max.message.bytes": "1048588", "min.insync.replicas": "1", "segment.ms": "604800000", "remote.log.delete.on.disable": "false",
}

// entries are a topic's settings as DescribeConfigs tells them: defaults and overrides.
func entries(overrides map[string]string) []kafka.ConfigEntry {
	var list []kafka.ConfigEntry
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		e := kafka.ConfigEntry{Name: name, Value: defaults[name], Source: kafka.ConfigDefault}
		if v, ok := overrides[name]; ok {
			e.Value, e.Source = v, kafka.ConfigTopic
		}
		list = append(list, e)
	}
	return list
}

func topic(name string, partitions int32, overrides map[string]string) Topic {
	return Topic{Name: name, Partitions: partitions, Configs: entries(overrides)}
}

// oneName is a policy that gives every topic the same remote name.
type oneName struct{ mirror.ReplicationPolicy }

func (oneName) RemoteTopic(mirror.ClusterAlias, string) string { return "same" }
