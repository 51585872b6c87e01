package daemon

import (
	"strings"
	"testing"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

func TestInternalRecordsAreToldInWords(t *testing.T) {
	orders := kafka.TopicPartition{Topic: "orders", Partition: 2}
	key := mirror.PositionKey{Connector: mirror.SourceConnector, Cluster: "A", Topic: "orders", Partition: 2}
	facts := mirror.PositionFacts{Clean: true, ProducerID: 7, ProducerEpoch: 1, NextTarget: 33, Mode: "default", SourceEpoch: 4, SourceCluster: "id-of-A"}
	check := mirror.Checkpoint{Group: "billing", TopicPartition: kafka.TopicPartition{Topic: "A.orders", Partition: 2}, Upstream: 9, Downstream: 4, Metadata: "private"}
	sync := mirror.OffsetSync{TopicPartition: orders, Upstream: 8, Downstream: 3}
	beat := mirror.Heartbeat{Source: "A", Target: "B", Timestamp: 1_700_000_000_000}
	loss := losses.Entry{Flow: mirror.FlowID{Source: "A", Target: "B"}, Source: orders, From: 3, To: 5, Records: 2, Kind: losses.Overtaken, Action: losses.Continued, Reason: "retention", At: time.UnixMilli(0)}
	runs := &offsets.RunMap{}
	for i := range int64(20) {
		if _, err := runs.Append(offsets.Run{Up: mirror.UpstreamOffset(3 * i), Down: mirror.DownstreamOffset(2 * i), Count: 2}); err != nil {
			t.Fatal(err)
		}
	}
	chunkKey := offsets.ChunkKey{Topic: "orders", Partition: 2, Chunk: 1}.AppendTo(nil)
	tests := []struct {
		topic  string
		record kafka.Record
		want   string
	}{
		{"heartbeats", kafka.Record{Key: beat.AppendKey(nil), Value: beat.AppendValue(nil)}, "heartbeat of A->B at 2023-11-14T22:13:20.000Z"},
		{"A.heartbeats", kafka.Record{Key: beat.AppendKey(nil), Value: beat.AppendValue(nil)}, "heartbeat of A->B"},
		{"A.checkpoints.internal", kafka.Record{Key: check.AppendKey(nil), Value: check.AppendValue(nil)}, "group billing goes on at offset 4 of A.orders-2, having committed offset 9 on the source, with metadata of 7 bytes"},
		{"mm2-offset-syncs.B.internal", kafka.Record{Key: sync.AppendKey(nil), Value: sync.AppendValue(nil)}, "the record at source offset 8 of orders-2 is at offset 3 on the target"},
		{
			"mm2-offsets.A.internal",
			kafka.Record{Key: key.AppendTo(nil), Value: mirror.AppendPositionValue(nil, 41)},
			"position of orders-2 of cluster A: copied up to and with source offset 41; written by Java MirrorMaker",
		},
		{
			"mm2-offsets.A.internal",
			kafka.Record{Key: key.AppendTo(nil), Value: mirror.AppendPositionValue(nil, 41), Headers: facts.AppendHeader(nil)},
			"written by heliograph at a clean stop, goes on at target offset 33, producer 7 epoch 1, mode default, source leader epoch 4, source cluster id-of-A",
		},
		{"mm2-offsets.A.internal", kafka.Record{Key: key.AppendTo(nil)}, "position of orders-2 of cluster A: deleted"},
		{"mm2-offsets.A.internal", kafka.Record{Key: []byte(`["jdbc",{"table":"x"}]`), Value: []byte("{}")}, "no position: an offset of connector jdbc"},
		{"own-positions", kafka.Record{Key: key.AppendTo(nil)}, "position of orders-2"},
		{"mm2-offset-runs.A.internal", kafka.Record{Key: chunkKey, Value: runs.Chunk(0)}, "offset map of orders-2, chunk 1: 20 runs, 40 records; source offset+records at target offset: 0+2 at 0, 3+2 at 2, "},
		{"mm2-offset-runs.A.internal", kafka.Record{Key: chunkKey, Value: runs.Chunk(0)}, "…, 57+2 at 38"},
		{"mm2-offset-runs.A.internal", kafka.Record{Key: chunkKey}, "let go"},
		{mirror.LossesTopic, loss.Record(), "loss: 1970-01-01T00:00:00Z A->B orders-2 overtaken, source offsets 3 to 4 (at most 2 records): retention; continued"},
		{"A.checkpoints.internal", kafka.Record{Key: []byte("x"), Value: []byte("x")}, "not understood"},
		{"A.checkpoints.internal", kafka.Record{Key: []byte("x")}, "a tombstone"},
	}
	dep := &config.Deployment{Flows: []config.Flow{{Policy: mirror.NewDefaultPolicy(mirror.PolicyOptions{}), Positions: config.Positions{Topic: "own-positions"}}}}
	for _, tt := range tests {
		m := speaker(dep, tt.topic)
		if m.of == nil {
			t.Errorf("%s is not known", tt.topic)
			continue
		}
		got := m.of(tt.record)
		if !strings.Contains(got, tt.want) || strings.Contains(got, "private") {
			t.Errorf("%s: %q, want %q", tt.topic, got, tt.want)
		}
	}
	for topic, secret := range map[string]bool{"orders": false, "A.orders": false, "mm2-configs.A.internal": true, "mm2-status.A.internal": true} {
		if m := speaker(dep, topic); m.of != nil || m.secret != secret {
			t.Errorf("%s: told in words %v, secret %v", topic, m.of != nil, m.secret)
		}
	}
}
