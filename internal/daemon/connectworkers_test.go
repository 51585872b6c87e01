package daemon

import (
	"slices"
	"testing"

	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func TestConnectorsThatCopyAFlowAreFoundInTheirSettings(t *testing.T) {
	connector := func(name, class, source, target string) kafka.Record {
		return kafka.Record{Key: []byte("connector-" + name), Value: []byte(
			`{"properties":{"connector.class":"` + class + `","source.cluster.alias":"` + source + `","target.cluster.alias":"` + target + `"}}`)}
	}
	state := func(name, value string) kafka.Record {
		return kafka.Record{Key: []byte("target-state-" + name), Value: []byte(value)}
	}
	const class = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
	found := connectSettings{}
	for _, r := range []kafka.Record{
		connector("runs", class, "A", "B"),
		connector("short", "MirrorSourceConnector", "A", "B"),
		connector("resumed", class, "A", "B"), state("resumed", `{"state":"PAUSED"}`), state("resumed", `{"state":"STARTED"}`),
		connector("paused", class, "A", "B"), state("paused", `{"state":"PAUSED"}`),
		connector("stopped", class, "A", "B"), state("stopped", `{"state":"PAUSED","state.v2":"STOPPED"}`),
		connector("deleted", class, "A", "B"),
		{Key: []byte("connector-deleted")},
		connector("other pair", class, "C", "B"),
		connector("back", class, "B", "A"),
		connector("checkpoints", "org.apache.kafka.connect.mirror.MirrorCheckpointConnector", "A", "B"),
		connector("sink", "FileStreamSinkConnector", "", ""),
		{Key: []byte("task-runs-0"), Value: []byte("{}")},
		{Key: []byte("connector-rubbish"), Value: []byte("{")},
		{},
	} {
		if err := found.apply(r); err != nil {
			t.Fatal(err)
		}
	}
	f := &config.Flow{ID: mirror.FlowID{Source: "A", Target: "B"}}
	if got, want := found.copying(f), []string{"resumed", "runs", "short"}; !slices.Equal(got, want) {
		t.Errorf("copying %q, want %q", got, want)
	}
}

func TestTopicsThatMayHoldConnectors(t *testing.T) {
	one := []kafka.PartitionDetail{{}}
	for topic, want := range map[*kafka.TopicDetail]bool{
		{Name: "connect-configs", Partitions: one}:                 true,
		{Name: "_Connect_settings", Partitions: one}:               true,
		{Name: "mm2-configs.A.internal", Partitions: one}:          false,
		{Name: "orders", Partitions: one}:                          false,
		{Name: "connect-offsets", Partitions: append(one, one...)}: false,
	} {
		if got := mayHoldConnectors(*topic); got != want {
			t.Errorf("%s: %v", topic.Name, got)
		}
	}
}
