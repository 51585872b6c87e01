package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/config"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// InspectOptions say what of a topic is shown.
type InspectOptions struct {
	Cluster mirror.ClusterAlias
	Topic   string
	// Partition is one partition; a negative one means all.
	Partition int32
	// From is the first offset wanted; a negative one counts back from the end.
	// Without FromSet it is the log's start.
	From    int64
	FromSet bool
	// Count is how many batches of each partition are shown; zero means all.
	Count int
	// Hex adds the bytes, explained. Contents shows what users' records hold.
	Hex, Contents bool
}

// InspectedBatch is one batch as it lies in the log.
type InspectedBatch struct {
	Partition     int32             `json:"partition"`
	BaseOffset    int64             `json:"base_offset"`
	LastOffset    int64             `json:"last_offset"`
	Count         int32             `json:"records"`
	Bytes         int               `json:"bytes"`
	Magic         int8              `json:"magic"`
	Codec         string            `json:"codec"`
	TimestampType string            `json:"timestamp_type"`
	MaxTimestamp  int64             `json:"max_timestamp_ms"`
	LeaderEpoch   int32             `json:"leader_epoch"`
	ProducerID    int64             `json:"producer_id"`
	ProducerEpoch int16             `json:"producer_epoch"`
	BaseSequence  int32             `json:"base_sequence"`
	Transactional bool              `json:"transactional"`
	DeleteHorizon bool              `json:"delete_horizon,omitempty"`
	Marker        string            `json:"marker,omitempty"` // of a transaction: commit or abort
	Error         string            `json:"error,omitempty"`  // why it cannot be read
	Annotated     string            `json:"annotated,omitempty"`
	Entries       []InspectedRecord `json:"entries"`
}

// InspectedRecord is one record of a batch. Sizes are -1 where there is null.
type InspectedRecord struct {
	Offset     int64             `json:"offset"`
	Timestamp  int64             `json:"timestamp_ms"`
	KeyBytes   int               `json:"key_bytes"`
	ValueBytes int               `json:"value_bytes"`
	Headers    int               `json:"headers"`
	Meaning    string            `json:"meaning,omitempty"` // of an internal record
	Contents   *InspectedContent `json:"contents,omitempty"`
}

// InspectedContent is what a user's record holds, quoted; nil is null.
type InspectedContent struct {
	Key     *string  `json:"key"`
	Value   *string  `json:"value"`
	Headers []string `json:"headers,omitempty"`
}

// Inspect reads a topic of one cluster of the file and hands each batch to show.
func Inspect(ctx context.Context, dep *config.Deployment, o InspectOptions, log *slog.Logger, show func(*InspectedBatch) error) error {
	id, side, err := sideOf(dep, o.Cluster)
	if err != nil {
		return err
	}
	side.Client.RequestTimeout = config.Opt[time.Duration]{Value: min(askWithin, side.Client.RequestTimeout.Or(askWithin)), Set: true}
	c, err := OpenSide(id, side, nil, log)
	if err != nil {
		return err
	}
	defer c.Close()
	tps, err := inspected(ctx, c, o)
	if err != nil {
		return err
	}
	i := inspection{o: o, client: c, speak: speaker(dep, o.Topic), show: show}
	starts := c.ListOffsets(ctx, tps, kafka.Earliest, kafka.ReadUncommitted)
	ends := c.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadUncommitted)
	for _, tp := range tps {
		if err := errors.Join(starts[tp].Err, ends[tp].Err); err != nil {
			return err
		}
		from := starts[tp].Offset
		if o.FromSet {
			if from = o.From; from < 0 {
				from += ends[tp].Offset
			}
			from = max(from, starts[tp].Offset)
		}
		if len(tps) == 1 && from > ends[tp].Offset {
			return fmt.Errorf("partition %s of cluster %s begins at offset %d and ends in front of %d: there is nothing at %d", tp, o.Cluster, starts[tp].Offset, ends[tp].Offset, o.From)
		}
		if err := i.partition(ctx, tp, from, ends[tp].Offset); err != nil {
			return err
		}
	}
	return nil
}

// sideOf is how a flow of the file reaches a cluster, or the cluster's own
// settings where no flow does.
func sideOf(dep *config.Deployment, alias mirror.ClusterAlias) (mirror.FlowID, Side, error) {
	for i := range dep.Flows {
		f := &dep.Flows[i]
		source, target := Sides(f)
		switch alias {
		case source.Alias:
			return f.ID, source, nil
		case target.Alias:
			return f.ID, target, nil
		}
	}
	c, ok := dep.Clusters[alias]
	if !ok {
		names := make([]string, len(dep.Aliases))
		for i, a := range dep.Aliases {
			names[i] = string(a)
		}
		return mirror.FlowID{}, Side{}, fmt.Errorf("no cluster %s in the file: it has %s", alias, strings.Join(names, ", "))
	}
	return mirror.FlowID{Source: alias, Target: alias}, Side{alias, config.Client{Connection: c.Connection}}, nil
}

// inspected are the partitions to show.
func inspected(ctx context.Context, c *cluster.Client, o InspectOptions) ([]kafka.TopicPartition, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	topics, err := c.Topics(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(topics, func(t kafka.TopicDetail) bool { return t.Name == o.Topic })
	if i < 0 {
		return nil, fmt.Errorf("cluster %s has no topic %s, or does not show it to us", o.Cluster, o.Topic)
	}
	n := int32(len(topics[i].Partitions))
	switch {
	case o.Partition < 0:
		return partitionsOf(o.Topic, n), c.RefreshMetadata(ctx, o.Topic)
	case o.Partition >= n:
		return nil, fmt.Errorf("topic %s of cluster %s has no partition %d: it has %s", o.Topic, o.Cluster, o.Partition, countNoun(int(n), "partition"))
	}
	return []kafka.TopicPartition{{Topic: o.Topic, Partition: o.Partition}}, c.RefreshMetadata(ctx, o.Topic)
}

type inspection struct {
	o      InspectOptions
	client *cluster.Client
	speak  meaning
	show   func(*InspectedBatch) error
}

const (
	inspectBytes = 1 << 20
	inspectWait  = 500 // milliseconds a fetch waits
	inspectIdle  = 20  // empty answers before reading is given up
)

// partition shows the batches of one partition that have offsets in [from, end).
func (i *inspection) partition(ctx context.Context, tp kafka.TopicPartition, from, end int64) error {
	if from >= end {
		return nil
	}
	node, epoch, id, ok := i.client.Leader(tp)
	if !ok {
		return &kafka.Error{Op: "read", Cluster: string(i.o.Cluster), Subject: tp.String(), Code: kafka.CodeLeaderNotAvailable}
	}
	conn, err := i.client.DialFetch(ctx, node)
	if err != nil {
		return err
	}
	defer conn.Close()
	limits := kafka.FetchLimits{MaxWaitMillis: inspectWait, MinBytes: 1, MaxBytes: inspectBytes, Isolation: kafka.ReadUncommitted}
	shown, idle := 0, 0
	for from < end {
		conn.Want(kafka.FetchPartition{
			TopicPartition: tp, TopicID: id, Offset: from, CurrentEpoch: epoch, LastFetchedEpoch: kafka.NoLeaderEpoch, MaxBytes: inspectBytes,
		})
		answer, err := conn.Fetch(ctx, limits)
		if err != nil {
			return err
		}
		next, full, err := i.answer(answer, tp, from, &shown)
		if answer.Buffer != nil {
			answer.Buffer.Release()
		}
		if err != nil || full {
			return err
		}
		if idle++; next > from {
			idle = 0
		}
		if idle == inspectIdle {
			return &kafka.Error{Op: "read", Cluster: string(i.o.Cluster), Subject: fmt.Sprintf("%s at offset %d", tp, from), Code: kafka.CodeOffsetNotAvailable}
		}
		from = next
	}
	return nil
}

// answer shows the batches of one fetch and returns where to go on, or that
// enough was shown.
func (i *inspection) answer(answer *kafka.Fetched, tp kafka.TopicPartition, from int64, shown *int) (next int64, full bool, err error) {
	next = from
	for n := range answer.Partitions {
		p := &answer.Partitions[n]
		if p.TopicPartition != tp {
			continue
		}
		if p.Code != kafka.CodeNone {
			return next, false, &kafka.Error{Op: "read", Cluster: string(i.o.Cluster), Subject: fmt.Sprintf("%s at offset %d", tp, from), Code: p.Code}
		}
		sc := recordbatch.NewScanner(p.Records)
		var b recordbatch.Batch
		for sc.Next(&b) {
			if b.NextOffset() <= next {
				continue
			}
			if err := i.show(i.batch(tp.Partition, &b)); err != nil {
				return next, false, err
			}
			next = b.NextOffset()
			if *shown++; *shown == i.o.Count {
				return next, true, nil
			}
		}
		if err := sc.Err(); err != nil {
			return next, false, fmt.Errorf("%s at offset %d: %w", tp, next, err)
		}
	}
	return next, false, nil
}

func (i *inspection) batch(partition int32, b *recordbatch.Batch) *InspectedBatch {
	out := &InspectedBatch{
		Partition: partition, BaseOffset: b.BaseOffset, LastOffset: b.LastOffset(), Count: b.Count, Bytes: len(b.Bytes), Magic: b.Magic,
		Codec: b.Codec().String(), TimestampType: "CreateTime", MaxTimestamp: b.MaxTimestamp, LeaderEpoch: b.LeaderEpoch,
		ProducerID: b.ProducerID, ProducerEpoch: b.ProducerEpoch, BaseSequence: b.BaseSequence,
		Transactional: b.Transactional(), DeleteHorizon: b.DeleteHorizon(), Entries: []InspectedRecord{},
	}
	if b.LogAppendTime() {
		out.TimestampType = "LogAppendTime"
	}
	open := i.o.Contents && !i.speak.secret
	if i.o.Hex {
		if open || i.speak.of != nil {
			out.Annotated = recordbatch.Annotate(b)
		} else {
			out.Annotated = recordbatch.AnnotateHeader(b)
		}
	}
	if b.Control() {
		out.Marker = "control"
		if kind, ok := recordbatch.Control(b); ok {
			out.Marker = kind.String()
		}
		return out
	}
	records, err := recordbatch.Records(b)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	for n := range records {
		r := &records[n]
		e := InspectedRecord{Offset: r.Offset, Timestamp: r.Timestamp, KeyBytes: sizeOf(r.Key), ValueBytes: sizeOf(r.Value), Headers: len(r.Headers)}
		if i.speak.of != nil {
			e.Meaning = i.speak.of(*r)
		}
		if open {
			e.Contents = contentOf(r)
		}
		out.Entries = append(out.Entries, e)
	}
	return out
}

func sizeOf(p []byte) int {
	if p == nil {
		return -1
	}
	return len(p)
}

func contentOf(r *kafka.Record) *InspectedContent {
	text := func(p []byte) *string {
		if p == nil {
			return nil
		}
		return new(string(p))
	}
	c := &InspectedContent{Key: text(r.Key), Value: text(r.Value)}
	for _, h := range r.Headers {
		if h.Value == nil {
			c.Headers = append(c.Headers, h.Key+"=null")
			continue
		}
		c.Headers = append(c.Headers, fmt.Sprintf("%s=%q", h.Key, h.Value))
	}
	return c
}
