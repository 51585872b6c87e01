package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// errNoTopic says that a topic to read is not there.
var errNoTopic = errors.New("no such topic")

// Read reads a topic from its start to the end it had when the reading began,
// with franz-go's decoder, and returns each partition's records in order.
//
// It fetches by hand because a consumer does not tell that it has reached an end
// behind which only markers, aborted or compacted records lie.
func (c *Cluster) Read(ctx context.Context, topic string, isolation kafka.Isolation) (map[int32][]kafka.Record, error) {
	cl, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	out := map[int32][]kafka.Record{}
	err = scanTopic(ctx, cl, topic, isolation, func(p int32, r *kgo.Record) {
		out[p] = append(out[p], toRecord(r))
	})
	if err != nil {
		return nil, fmt.Errorf("read %s on cluster %s: %w", topic, c.opts.Name, err)
	}
	return out, nil
}

// scanTopic visits all records of a topic, partition by partition.
func scanTopic(ctx context.Context, cl *kgo.Client, topic string, isolation kafka.Isolation, visit func(int32, *kgo.Record)) error {
	adm := kadm.NewClient(cl)
	topics, err := adm.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	detail, ok := topics[topic]
	if !ok || errors.Is(detail.Err, kerr.UnknownTopicOrPartition) {
		return errNoTopic
	}
	if detail.Err != nil {
		return detail.Err
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return err
	}
	ends, err := listEnds(ctx, adm, topic, isolation)
	if err != nil {
		return err
	}
	for _, p := range detail.Partitions.Sorted() {
		start, _ := starts.Lookup(topic, p.Partition)
		end, _ := ends.Lookup(topic, p.Partition)
		s := &scan{client: cl, topic: topic, id: detail.ID, partition: p.Partition, leader: p.Leader, isolation: isolation}
		if err := s.run(ctx, start.Offset, end.Offset, visit); err != nil {
			return fmt.Errorf("partition %d: %w", p.Partition, err)
		}
	}
	return nil
}

func listEnds(ctx context.Context, adm *kadm.Client, topic string, isolation kafka.Isolation) (kadm.ListedOffsets, error) {
	list := adm.ListEndOffsets
	if isolation == kafka.ReadCommitted {
		list = adm.ListCommittedOffsets
	}
	ends, err := list(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	return ends, err
}

// scan reads one partition.
type scan struct {
	client    *kgo.Client
	topic     string
	id        [16]byte
	partition int32
	leader    int32
	isolation kafka.Isolation
}

func (s *scan) run(ctx context.Context, from, end int64, visit func(int32, *kgo.Record)) error {
	opts := kgo.ProcessFetchPartitionOpts{Topic: s.topic, Partition: s.partition, IsolationLevel: kgo.ReadUncommitted()}
	if s.isolation == kafka.ReadCommitted {
		opts.IsolationLevel = kgo.ReadCommitted()
	}
	for from < end {
		answer, err := s.fetch(ctx, from)
		if err != nil {
			return err
		}
		opts.Offset = from
		fp, next := kgo.ProcessFetchPartition(opts, answer, kgo.DefaultDecompressor(), nil)
		if fp.Err != nil {
			return fmt.Errorf("offset %d: %w", from, fp.Err)
		}
		for _, r := range fp.Records {
			if r.Offset < end {
				visit(s.partition, r)
			}
		}
		if next <= from {
			return fmt.Errorf("offset %d: the broker returned nothing before the end %d", from, end)
		}
		from = next
	}
	return nil
}

// fetch asks the leader once. Right after a topic's creation or a broker's start
// the leader may not know its part yet; that is waited out.
func (s *scan) fetch(ctx context.Context, from int64) (*kmsg.FetchResponseTopicPartition, error) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		answer, err := s.fetchOnce(ctx, from)
		var kafkaErr *kerr.Error
		if !errors.As(err, &kafkaErr) || !kafkaErr.Retriable {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

func (s *scan) fetchOnce(ctx context.Context, from int64) (*kmsg.FetchResponseTopicPartition, error) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = s.partition, from, 16<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = s.topic, s.id, append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 500, 1, 32<<20
	req.IsolationLevel = int8(s.isolation)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, s.client.Broker(int(s.leader)))
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("the answer is not about the partition asked for")
	}
	answer := &resp.Topics[0].Partitions[0]
	return answer, kerr.ErrorForCode(answer.ErrorCode)
}

// toRecord copies a record out of the fetched bytes, keeping null apart from empty.
func toRecord(r *kgo.Record) kafka.Record {
	out := kafka.Record{Key: slices.Clone(r.Key), Value: slices.Clone(r.Value), Timestamp: r.Timestamp.UnixMilli(), Offset: r.Offset}
	if r.Attrs.TimestampType() == -1 {
		out.Timestamp = kafka.TimestampNone
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kafka.Header{Key: h.Key, Value: slices.Clone(h.Value)})
	}
	return out
}
