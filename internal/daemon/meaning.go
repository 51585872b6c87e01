package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// meaning tells what the records of a topic mean.
type meaning struct {
	of     func(kafka.Record) string // nil for topics of users
	secret bool                      // the records may hold passwords and are never shown
}

// speaker knows the topics of MirrorMaker and ours by their names.
func speaker(dep *config.Deployment, topic string) meaning {
	policies := []mirror.ReplicationPolicy{mirror.NewDefaultPolicy(mirror.PolicyOptions{})}
	positions := strings.HasPrefix(topic, "mm2-offsets.")
	for i := range dep.Flows {
		policies = append(policies, dep.Flows[i].Policy)
		positions = positions || topic == dep.Flows[i].Positions.Topic
	}
	var heartbeats, checkpoints bool
	for _, p := range policies {
		heartbeats = heartbeats || p.IsHeartbeatsTopic(topic)
		checkpoints = checkpoints || p.IsCheckpointsTopic(topic)
	}
	switch {
	case topic == mirror.LossesTopic:
		return meaning{of: lossMeans}
	case positions:
		return meaning{of: positionMeans}
	case strings.HasPrefix(topic, "mm2-offset-runs."):
		return meaning{of: chunkMeans}
	case strings.HasPrefix(topic, "mm2-offset-syncs") && strings.HasSuffix(topic, "internal"):
		return meaning{of: syncMeans}
	case strings.HasPrefix(topic, "mm2-configs."), strings.HasPrefix(topic, "mm2-status."):
		return meaning{secret: true}
	case checkpoints:
		return meaning{of: checkpointMeans}
	case heartbeats:
		return meaning{of: heartbeatMeans}
	}
	return meaning{}
}

// foreign says that a record is none of those that its topic is for.
func foreign(r kafka.Record, err error) string {
	if r.Value == nil {
		return "a tombstone"
	}
	return "not understood: " + err.Error()
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func heartbeatMeans(r kafka.Record) string {
	h, err := mirror.DecodeHeartbeat(r.Key, r.Value)
	if err != nil {
		return foreign(r, err)
	}
	return fmt.Sprintf("heartbeat of %s->%s at %s", h.Source, h.Target, instant(h.Timestamp))
}

func checkpointMeans(r kafka.Record) string {
	c, err := mirror.DecodeCheckpoint(r.Key, r.Value)
	if err != nil {
		return foreign(r, err)
	}
	text := fmt.Sprintf("checkpoint: group %s goes on at offset %d of %s, having committed offset %d on the source", c.Group, c.Downstream, c.TopicPartition, c.Upstream)
	if c.Metadata != "" {
		text += fmt.Sprintf(", with metadata of %d bytes", len(c.Metadata))
	}
	return text
}

func syncMeans(r kafka.Record) string {
	s, err := mirror.DecodeOffsetSync(r.Key, r.Value)
	if err != nil {
		return foreign(r, err)
	}
	return fmt.Sprintf("offset sync: the record at source offset %d of %s is at offset %d on the target", s.Upstream, s.TopicPartition, s.Downstream)
}

func lossMeans(r kafka.Record) string {
	e, err := losses.Decode(r)
	if err != nil {
		return foreign(r, err)
	}
	return "loss: " + e.String()
}

func positionMeans(r kafka.Record) string {
	k, err := mirror.DecodePositionKey(r.Key)
	switch {
	case errors.Is(err, mirror.ErrNotPosition):
		return "no position: an offset of " + connectorOf(r.Key)
	case err != nil:
		return foreign(r, err)
	}
	of := fmt.Sprintf("position of %s of cluster %s", kafka.TopicPartition{Topic: k.Topic, Partition: k.Partition}, k.Cluster)
	if k.Connector != mirror.SourceConnector {
		of += " for " + k.Connector
	}
	last, ok, err := mirror.DecodePositionValue(r.Value)
	switch {
	case r.Value == nil:
		return of + ": deleted"
	case err != nil:
		return of + ": " + err.Error()
	case ok:
		of += fmt.Sprintf(": copied up to and with source offset %d", last)
	default:
		of += ": nothing copied yet"
	}
	f, has, err := mirror.DecodePositionFacts(r.Headers)
	switch {
	case err != nil:
		return of + "; " + err.Error()
	case !has:
		return of + "; written by Java MirrorMaker"
	}
	return of + "; " + factsMean(f)
}

func factsMean(f mirror.PositionFacts) string {
	state := "while it ran"
	if f.Clean {
		state = "at a clean stop"
	}
	parts := []string{fmt.Sprintf("written by heliograph %s, goes on at target offset %d", state, f.NextTarget)}
	if f.ProducerID != kafka.NoProducer.ID {
		parts = append(parts, fmt.Sprintf("producer %d epoch %d", f.ProducerID, f.ProducerEpoch))
	}
	if f.Mode != "" {
		parts = append(parts, "mode "+f.Mode)
	}
	if f.SourceEpoch != kafka.NoLeaderEpoch {
		parts = append(parts, fmt.Sprintf("source leader epoch %d", f.SourceEpoch))
	}
	for _, id := range [][2]string{
		{"source cluster", f.SourceCluster},
		{"source topic id", f.SourceTopicID.String()},
		{"target cluster", f.TargetCluster},
		{"target topic id", f.TargetTopicID.String()},
	} {
		if id[1] != "" {
			parts = append(parts, id[0]+" "+id[1])
		}
	}
	return strings.Join(parts, ", ")
}

// connectorOf is the connector that a key of Kafka Connect names.
func connectorOf(key []byte) string {
	var parts []json.RawMessage
	var name string
	if json.Unmarshal(key, &parts) == nil && len(parts) > 0 && json.Unmarshal(parts[0], &name) == nil {
		return "connector " + name
	}
	return "another connector"
}

// chunkShown is how many runs of a chunk are told one by one.
const chunkShown = 8

func chunkMeans(r kafka.Record) string {
	k, err := offsets.DecodeChunkKey(r.Key)
	if err != nil {
		return foreign(r, err)
	}
	of := fmt.Sprintf("offset map of %s, chunk %d", kafka.TopicPartition{Topic: k.Topic, Partition: k.Partition}, k.Chunk)
	if k.TopicID.Known() {
		of += ", source topic id " + k.TopicID.String()
	}
	if r.Value == nil {
		return of + ": let go"
	}
	runs, err := offsets.DecodeChunk(r.Value)
	if err != nil {
		return of + ": " + err.Error()
	}
	if len(runs) == 0 {
		return of + ": no run"
	}
	var records int64
	var told []string
	for i, run := range runs {
		records += run.Count
		switch {
		case i < chunkShown || i == len(runs)-1:
			told = append(told, fmt.Sprintf("%d+%d at %d", run.Up, run.Count, run.Down))
		case i == chunkShown:
			told = append(told, "…")
		}
	}
	return fmt.Sprintf("%s: %s, %d records; source offset+records at target offset: %s", of, countNoun(len(runs), "run"), records, strings.Join(told, ", "))
}
