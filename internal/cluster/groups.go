package cluster

import (
	"context"
	"strings"
	"unicode"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// ListGroups lists the groups that this principal may describe, from every
// coordinator. If some brokers did not answer, the groups of the others come
// with the error.
func (c *Client) ListGroups(ctx context.Context) ([]kafka.GroupListing, error) {
	const op = "list groups"
	var groups []kafka.GroupListing
	var failed error
	for _, shard := range c.kgo.RequestSharded(ctx, kmsg.NewPtrListGroupsRequest()) {
		resp, ok := shard.Resp.(*kmsg.ListGroupsResponse)
		switch {
		case shard.Err != nil:
			failed = c.fail(op, "", shard.Err)
		case ok && resp.ErrorCode != 0:
			failed = c.answered(op, "", resp.ErrorCode, nil)
		case ok:
			for i := range resp.Groups {
				g := &resp.Groups[i]
				groups = append(groups, kafka.GroupListing{
					Group: g.Group, ProtocolType: g.ProtocolType,
					State: string(groupState(g.GroupState)), GroupType: strings.ToLower(g.GroupType),
				})
			}
		}
	}
	return groups, failed
}

// groupState writes the broker's CamelCase as Kafka's enum: PreparingRebalance
// is PREPARING_REBALANCE.
func groupState(s string) kafka.GroupState {
	var b strings.Builder
	for i, r := range s {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return kafka.GroupState(b.String())
}

// DescribeGroups tells the state of each named group, whichever protocol it
// uses. A group that does not exist is GroupDead. Each group has its own error.
func (c *Client) DescribeGroups(ctx context.Context, groups ...string) map[string]kafka.GroupDescription {
	out := make(map[string]kafka.GroupDescription, len(groups))
	if len(groups) == 0 {
		return out
	}
	for _, g := range groups {
		out[g] = kafka.GroupDescription{Group: g, Err: c.fail("describe group", g, errLeftOut)}
	}
	c.describeClassic(ctx, groups, out)
	// A group of the newer protocol (KIP-848) looks dead to the classic request.
	var dead []string
	for _, g := range groups {
		if d := out[g]; d.Err == nil && d.State == kafka.GroupDead {
			dead = append(dead, g)
		}
	}
	if len(dead) > 0 {
		c.describeConsumer(ctx, dead, out)
	}
	return out
}

func (c *Client) describeClassic(ctx context.Context, groups []string, out map[string]kafka.GroupDescription) {
	const op = "describe group"
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = groups
	for _, shard := range c.kgo.RequestSharded(ctx, req) {
		if shard.Err != nil {
			c.groupsFailed(op, shard, out)
			continue
		}
		resp, ok := shard.Resp.(*kmsg.DescribeGroupsResponse)
		if !ok {
			continue
		}
		for i := range resp.Groups {
			g := &resp.Groups[i]
			d := kafka.GroupDescription{
				Group: g.Group, State: groupState(g.State), ProtocolType: g.ProtocolType, Members: len(g.Members),
				Err: c.answered(op, g.Group, g.ErrorCode, g.ErrorMessage),
			}
			for j := range g.Members {
				d.Clients = append(d.Clients, clientName(g.Members[j].ClientID, g.Members[j].ClientHost))
			}
			if kafka.Code(g.ErrorCode) == kafka.CodeGroupIDNotFound {
				d.State, d.Err = kafka.GroupDead, nil
			}
			out[g.Group] = d
		}
	}
}

func (c *Client) describeConsumer(ctx context.Context, groups []string, out map[string]kafka.GroupDescription) {
	const op = "describe group"
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = groups
	for _, shard := range c.kgo.RequestSharded(ctx, req) {
		resp, ok := shard.Resp.(*kmsg.ConsumerGroupDescribeResponse)
		if shard.Err != nil || !ok {
			continue // brokers without the newer protocol; dead stays dead
		}
		for i := range resp.Groups {
			g := &resp.Groups[i]
			switch kafka.Code(g.ErrorCode) {
			case kafka.CodeNone:
				d := kafka.GroupDescription{Group: g.Group, State: groupState(g.State), ProtocolType: "consumer", Members: len(g.Members)}
				for j := range g.Members {
					d.Clients = append(d.Clients, clientName(g.Members[j].ClientID, g.Members[j].ClientHost))
				}
				out[g.Group] = d
			case kafka.CodeGroupIDNotFound, kafka.CodeUnsupportedVersion:
			default:
				out[g.Group] = kafka.GroupDescription{Group: g.Group, Err: c.answered(op, g.Group, g.ErrorCode, g.ErrorMessage)}
			}
		}
	}
}

// clientName is a member as people look for it. Brokers write hosts as /10.0.0.1.
func clientName(id, host string) string { return id + " at " + strings.TrimPrefix(host, "/") }

func (c *Client) groupsFailed(op string, shard kgo.ResponseShard, out map[string]kafka.GroupDescription) {
	req, ok := shard.Req.(*kmsg.DescribeGroupsRequest)
	if !ok {
		return
	}
	for _, g := range req.Groups {
		out[g] = kafka.GroupDescription{Group: g, Err: c.fail(op, g, shard.Err)}
	}
}

// FetchGroupOffsets reads what the groups have committed. The map has an entry
// for each group.
func (c *Client) FetchGroupOffsets(ctx context.Context, groups ...string) map[string]kafka.GroupOffsets {
	const op = "read group offsets"
	out := make(map[string]kafka.GroupOffsets, len(groups))
	if len(groups) == 0 {
		return out
	}
	all := c.adm.FetchManyOffsets(ctx, groups...)
	for _, g := range groups {
		resp, ok := all[g]
		if !ok {
			out[g] = kafka.GroupOffsets{Err: c.fail(op, g, errLeftOut)}
			continue
		}
		list := kafka.GroupOffsets{Err: c.fail(op, g, resp.Err)}
		if kafka.CodeOf(list.Err) == kafka.CodeGroupIDNotFound {
			list.Err = nil // what newer brokers say of a group that has nothing
		}
		for _, o := range resp.Fetched.Sorted() {
			tp := kafka.TopicPartition{Topic: o.Topic, Partition: o.Partition}
			list.Offsets = append(list.Offsets, kafka.GroupOffset{
				TopicPartition: tp,
				Offset:         o.At, LeaderEpoch: kafka.LeaderEpoch(o.LeaderEpoch), Metadata: o.Metadata,
				Err: c.fail(op, g+" "+tp.String(), o.Err),
			})
		}
		out[g] = list
	}
	return out
}

// DeleteGroups deletes groups. The map has an entry for each; a group that is not
// there is no error, one that has members is.
func (c *Client) DeleteGroups(ctx context.Context, groups ...string) map[string]error {
	const op = "delete group"
	out := make(map[string]error, len(groups))
	for _, g := range groups {
		out[g] = c.fail(op, g, errLeftOut)
	}
	resps, err := c.adm.DeleteGroups(ctx, groups...)
	for _, g := range groups {
		if r, ok := resps[g]; ok {
			out[g] = c.fail(op, g, r.Err)
		} else if err != nil {
			out[g] = c.fail(op, g, err)
		}
		if kafka.CodeOf(out[g]) == kafka.CodeGroupIDNotFound {
			out[g] = nil
		}
	}
	return out
}

// CommitGroupOffsets writes offsets of a group that has no members. The map has
// an entry for each partition, nil where it worked; the error means that none was
// answered. A group with members answers UNKNOWN_MEMBER_ID for each partition.
func (c *Client) CommitGroupOffsets(ctx context.Context, group string, offsets []kafka.GroupOffset) (map[kafka.TopicPartition]error, error) {
	const op = "commit group offsets"
	out := make(map[kafka.TopicPartition]error, len(offsets))
	if len(offsets) == 0 {
		return out, nil
	}
	topics := make(map[string]*kmsg.OffsetCommitRequestTopic)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = group
	for _, o := range offsets {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = o.Partition, o.Offset, int32(o.LeaderEpoch)
		if o.Metadata != "" {
			p.Metadata = new(o.Metadata)
		}
		if topics[o.Topic] == nil {
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic = o.Topic
			topics[o.Topic] = &t
		}
		topics[o.Topic].Partitions = append(topics[o.Topic].Partitions, p)
		out[o.TopicPartition] = c.fail(op, group+" "+o.String(), errLeftOut)
	}
	// Newer brokers know topics by their ids in this request. Asking for them with
	// each commit would double the requests.
	names := c.topicIDs(ctx, topics)
	for _, t := range topics {
		req.Topics = append(req.Topics, *t)
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return nil, c.fail(op, group, err)
	}
	for _, t := range resp.Topics {
		name := t.Topic
		if name == "" {
			name = names[t.TopicID]
		}
		for _, p := range t.Partitions {
			tp := kafka.TopicPartition{Topic: name, Partition: p.Partition}
			out[tp] = c.answered(op, group+" "+tp.String(), p.ErrorCode, nil)
			if kafka.Code(p.ErrorCode) == kafka.CodeUnknownTopicID {
				_ = c.RefreshMetadata(ctx, name) // made again; the next commit has its new id
			}
		}
	}
	return out, nil
}

// topicIDs puts the topics' ids into a request, and tells their names by id. Ids
// that are not known yet are asked for once; a cluster that has none gets none, and of a
// topic that is not there the broker will say so.
func (c *Client) topicIDs(ctx context.Context, topics map[string]*kmsg.OffsetCommitRequestTopic) map[[16]byte]string {
	names := make(map[[16]byte]string, len(topics))
	var unknown []string
	put := func() {
		unknown = unknown[:0]
		for name, t := range topics {
			_, _, id, led := c.Leader(kafka.TopicPartition{Topic: name, Partition: t.Partitions[0].Partition})
			if !led && !id.Known() {
				unknown = append(unknown, name)
				continue
			}
			t.TopicID = id
			names[t.TopicID] = name
		}
	}
	put()
	if len(unknown) > 0 {
		_ = c.RefreshMetadata(ctx, unknown...) // what is still unknown after it the broker names
		put()
	}
	return names
}
