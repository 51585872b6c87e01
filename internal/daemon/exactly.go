package daemon

import (
	"context"
	"fmt"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/replicate"
)

// byLogs is the source of an answer that nothing written down gives.
const byLogs = "both logs"

// exactly makes answers exact that the offset map and the offset syncs leave
// coarse, by reading both logs from the nearest place that they know.
type exactly struct {
	f     *config.Flow
	sides pair
	known map[kafka.TopicPartition]bothLogs
	away  error // a cluster that does not answer is not waited for again and again
}

// bothLogs are a partition and its copy, and where they begin.
type bothLogs struct {
	coord.Logs
	up   mirror.UpstreamOffset
	down mirror.DownstreamOffset
	err  error
}

func newExactly(f *config.Flow, sides pair) *exactly {
	return &exactly{f: f, sides: sides, known: map[kafka.TopicPartition]bothLogs{}}
}

// logs asks for the bounds of a partition and its copy, once.
func (e *exactly) logs(ctx context.Context, source kafka.TopicPartition) bothLogs {
	if l, ok := e.known[source]; ok {
		return l
	}
	if e.away != nil {
		return bothLogs{err: e.away}
	}
	l := e.ask(ctx, source)
	if c := kafka.CodeOf(l.err); l.err != nil && c == kafka.CodeNone {
		e.away = l.err // no broker's answer: a connection that failed
	}
	e.known[source] = l
	return l
}

func (e *exactly) ask(ctx context.Context, source kafka.TopicPartition) bothLogs {
	copied := kafka.TopicPartition{Topic: e.f.Policy.RemoteTopic(e.f.ID.Source, source.Topic), Partition: source.Partition}
	from, to := []kafka.TopicPartition{source}, []kafka.TopicPartition{copied}
	bounds := [4]kafka.PartitionOffset{
		e.sides.source.ListOffsets(ctx, from, kafka.Earliest, kafka.ReadUncommitted)[source],
		e.sides.source.ListOffsets(ctx, from, kafka.Latest, e.f.Data.Isolation)[source],
		e.sides.target.ListOffsets(ctx, to, kafka.Earliest, kafka.ReadUncommitted)[copied],
		e.sides.target.ListOffsets(ctx, to, kafka.Latest, kafka.ReadCommitted)[copied],
	}
	for _, b := range bounds {
		if b.Err != nil {
			return bothLogs{err: b.Err}
		}
	}
	settings, err := e.sides.target.TopicConfigs(ctx, copied.Topic)
	if err != nil {
		return bothLogs{err: err}
	}
	times := true
	for _, entry := range settings[copied.Topic].Entries {
		if entry.Name == "message.timestamp.type" {
			times = entry.Value != "LogAppendTime"
		}
	}
	return bothLogs{
		Logs: coord.Logs{
			Source: logsOf{e.sides.source}, Target: logsOf{e.sides.target}, Partition: source, Copy: copied,
			SourceEnd: bounds[1].Offset, CopyEnd: bounds[3].Offset, Isolation: e.f.Data.Isolation, Times: times,
		},
		up: mirror.UpstreamOffset(bounds[0].Offset), down: mirror.DownstreamOffset(bounds[2].Offset),
	}
}

// sharpen makes a coarse translation exact, if the logs tell.
func (e *exactly) sharpen(ctx context.Context, source kafka.TopicPartition, m coord.StoredMap, syncs *offsets.SyncStore, u mirror.UpstreamOffset) (offsets.Translation, basis) {
	l := e.logs(ctx, source)
	if l.err != nil || u < l.up {
		return offsets.Translation{}, basis{}
	}
	up, down := l.up, l.down
	if m.Runs != nil {
		if a, b, ok := m.Runs.Known(u); ok && a >= up && b >= down {
			up, down = a, b
		}
	}
	if syncs != nil {
		for _, s := range syncs.Syncs(source) {
			if s.Upstream < u && s.Upstream > up && s.Downstream >= down {
				up, down = s.Upstream, s.Downstream
				break
			}
		}
	}
	got, ok, err := l.Translate(ctx, up, down, u)
	if err != nil || !ok {
		return offsets.Translation{}, basis{}
	}
	return got, basis{by: byLogs, reason: walkedReason(got.Quality, int64(up))}
}

// sharpenBack is the way back of sharpen.
func (e *exactly) sharpenBack(ctx context.Context, source kafka.TopicPartition, m coord.StoredMap, syncs *offsets.SyncStore, d mirror.DownstreamOffset) (offsets.Origin, basis) {
	l := e.logs(ctx, source)
	if l.err != nil || d < l.down {
		return offsets.Origin{}, basis{}
	}
	up, down := l.up, l.down
	if m.Runs != nil {
		if a, b, ok := m.Runs.KnownBack(d); ok && a >= up && b >= down {
			up, down = a, b
		}
	}
	if syncs != nil {
		for _, s := range syncs.Syncs(source) {
			if s.Downstream < d && s.Downstream > down && s.Upstream >= up {
				up, down = s.Upstream, s.Downstream
				break
			}
		}
	}
	got, ok, err := l.Reverse(ctx, up, down, d)
	if err != nil || !ok {
		return offsets.Origin{}, basis{}
	}
	return got, basis{by: byLogs, reason: walkedReason(got.Quality, int64(up))}
}

func walkedReason(q offsets.Quality, from int64) string {
	return fmt.Sprintf("%s; found by reading both logs from source offset %d on", mapReason(q), from)
}

// logsOf is a cluster's client in the shape of coord's port.
type logsOf struct{ *cluster.Client }

// DialFetch opens a connection to a broker for reading.
func (l logsOf) DialFetch(ctx context.Context, node int32) (replicate.Fetcher, error) {
	c, err := l.Client.DialFetch(ctx, node)
	if err != nil {
		return nil, err
	}
	return c, nil
}
