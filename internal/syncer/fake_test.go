package syncer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCluster holds topics, ACLs, groups and logs in memory and satisfies every
// port of this package.
type fakeCluster struct {
	mu      sync.Mutex
	alias   string
	brokers int
	topics  map[string]*fakeTopic
	acls    []kafka.ACL
	groups  map[string]*fakeGroup
	logs    map[kafka.TopicPartition][]kafka.Record
	slow    time.Duration // of each commit of group offsets
	grown   chan struct{} // closed and replaced at each append
	calls   []string      // "op subject…"
	made    byte          // topic ids given out
	// fail answers an operation ("create topic", "describe configs", …) on a
	// subject, or with "" on all, with an error.
	fail map[string]map[string]error
	// lacks are settings that this cluster's brokers do not know.
	lacks map[string]bool
	// hide is how many listings show nothing after a topic is made; hidden counts them down.
	hide, hidden int
}

type fakeTopic struct {
	id         kafka.TopicID
	partitions int32
	overrides  map[string]string
	internal   bool
	code       kafka.Code
}

type fakeGroup struct {
	protocol string
	state    kafka.GroupState
	members  int
	offsets  map[kafka.TopicPartition]int64
	metadata string
}

var configDefaults = map[string]string{
	"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1", "delete.retention.ms": "86400000",
	"max.message.bytes": "1048588", "message.timestamp.type": "CreateTime", "compression.type": "producer",
}

func newFakeCluster(alias string) *fakeCluster {
	return &fakeCluster{
		alias: alias, brokers: 1, topics: map[string]*fakeTopic{}, groups: map[string]*fakeGroup{},
		logs: map[kafka.TopicPartition][]kafka.Record{}, grown: make(chan struct{}), fail: map[string]map[string]error{},
	}
}

// topic makes or replaces a topic.
func (c *fakeCluster) topic(name string, partitions int32, overrides map[string]string) *fakeTopic {
	c.made++
	t := &fakeTopic{id: kafka.TopicID{c.made, c.alias[0]}, partitions: partitions, overrides: maps.Clone(overrides)}
	c.topics[name] = t
	return t
}

// failing makes an operation on a subject fail; a nil error ends that.
func (c *fakeCluster) failing(op, subject string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail[op] == nil {
		c.fail[op] = map[string]error{}
	}
	c.fail[op][subject] = err
}

func (c *fakeCluster) called(op, subject string) error {
	c.calls = append(c.calls, strings.TrimSpace(op+" "+subject))
	return firstError(c.fail[op][subject], c.fail[op][""])
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// count is how many calls began with prefix.
func (c *fakeCluster) count(prefix string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

func (c *fakeCluster) Topics(context.Context) ([]kafka.TopicDetail, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("list topics", ""); err != nil {
		return nil, err
	}
	if c.hidden > 0 {
		c.hidden--
		return nil, nil
	}
	var list []kafka.TopicDetail
	for _, name := range slices.Sorted(maps.Keys(c.topics)) {
		t := c.topics[name]
		list = append(list, kafka.TopicDetail{Name: name, ID: t.id, Internal: t.internal, Code: t.code, Partitions: make([]kafka.PartitionDetail, t.partitions)})
	}
	return list, nil
}

func (c *fakeCluster) TopicConfigs(_ context.Context, names ...string) (map[string]kafka.TopicConfigs, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("describe configs", strings.Join(names, " ")); err != nil && len(names) > 1 {
		return nil, err
	}
	got := map[string]kafka.TopicConfigs{}
	for _, name := range names {
		if err := firstError(c.fail["describe configs"][name]); err != nil {
			got[name] = kafka.TopicConfigs{Err: err}
			continue
		}
		t := c.topics[name]
		if t == nil {
			got[name] = kafka.TopicConfigs{Err: kafka.CodeUnknownTopicOrPartition}
			continue
		}
		var list []kafka.ConfigEntry
		for _, n := range slices.Sorted(maps.Keys(configDefaults)) {
			if c.lacks[n] {
				continue
			}
			e := kafka.ConfigEntry{Name: n, Value: configDefaults[n], Source: kafka.ConfigDefault}
			if v, ok := t.overrides[n]; ok {
				e.Value, e.Source = v, kafka.ConfigTopic
			}
			list = append(list, e)
		}
		got[name] = kafka.TopicConfigs{Entries: list}
	}
	return got, nil
}

func (c *fakeCluster) CreateTopics(_ context.Context, topics []kafka.NewTopic, _ bool) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]error{}
	for _, t := range topics {
		err := c.called("create topic", t.Name)
		switch {
		case err != nil:
		case c.topics[t.Name] != nil:
			err = kafka.CodeTopicAlreadyExists
		case int(t.ReplicationFactor) > c.brokers:
			err = kafka.CodeInvalidReplicationFactor
		default:
			c.topic(t.Name, t.Partitions, t.Configs)
			c.hidden = c.hide
		}
		out[t.Name] = err
	}
	return out
}

func (c *fakeCluster) CreatePartitions(_ context.Context, counts map[string]int32) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]error{}
	for name, n := range counts {
		if out[name] = c.called("create partitions", name); out[name] == nil {
			c.topics[name].partitions = n
		}
	}
	return out
}

func (c *fakeCluster) Brokers(context.Context) ([]kafka.BrokerDetail, error) {
	return make([]kafka.BrokerDetail, c.brokers), nil
}

func (c *fakeCluster) AlterTopicConfigs(_ context.Context, changes map[string][]kafka.ConfigChange) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]error{}
	for name, list := range changes {
		if out[name] = c.called("alter", name); out[name] != nil {
			continue
		}
		t := c.topics[name]
		if t.overrides == nil {
			t.overrides = map[string]string{}
		}
		for _, ch := range list {
			delete(t.overrides, ch.Name)
			if !ch.Delete {
				t.overrides[ch.Name] = ch.Value
			}
		}
	}
	return out
}

func (c *fakeCluster) DescribeACLs(context.Context) ([]kafka.ACL, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.acls), c.called("describe acls", "")
}

func (c *fakeCluster) CreateACLs(_ context.Context, acls []kafka.ACL) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]error, len(acls))
	for i, a := range acls {
		if out[i] = c.called("create acl", a.ResourceName); out[i] == nil {
			c.acls = append(c.acls, a)
		}
	}
	return out
}

func (c *fakeCluster) ListGroups(context.Context) ([]kafka.GroupListing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []kafka.GroupListing
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		list = append(list, kafka.GroupListing{Group: name, ProtocolType: c.groups[name].protocol})
	}
	return list, c.called("list groups", "")
}

func (c *fakeCluster) DescribeGroups(_ context.Context, groups ...string) map[string]kafka.GroupDescription {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]kafka.GroupDescription{}
	for _, name := range groups {
		d := kafka.GroupDescription{Group: name, State: kafka.GroupDead, Err: c.called("describe group", name)}
		if g := c.groups[name]; g != nil {
			d.State, d.Members = g.state, g.members
		}
		out[name] = d
	}
	return out
}

func (c *fakeCluster) FetchGroupOffsets(_ context.Context, groups ...string) map[string]kafka.GroupOffsets {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]kafka.GroupOffsets{}
	for _, name := range groups {
		o := kafka.GroupOffsets{Err: c.called("fetch offsets", name)}
		if g := c.groups[name]; g != nil && o.Err == nil {
			for tp, at := range g.offsets {
				o.Offsets = append(o.Offsets, kafka.GroupOffset{TopicPartition: tp, Offset: at, Metadata: g.metadata})
			}
		}
		out[name] = o
	}
	return out
}

func (c *fakeCluster) CommitGroupOffsets(_ context.Context, group string, offsets []kafka.GroupOffset) (map[kafka.TopicPartition]error, error) {
	time.Sleep(c.slow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("commit", group); err != nil {
		return nil, err
	}
	g := c.groups[group]
	if g == nil {
		g = &fakeGroup{state: kafka.GroupEmpty, offsets: map[kafka.TopicPartition]int64{}}
		c.groups[group] = g
	}
	out := map[kafka.TopicPartition]error{}
	for _, o := range offsets {
		out[o.TopicPartition] = nil
		if g.members > 0 {
			out[o.TopicPartition] = kafka.CodeUnknownMemberID
			continue
		}
		g.offsets[o.TopicPartition], g.metadata = o.Offset, o.Metadata
	}
	return out, nil
}

func (c *fakeCluster) WriteRecords(ctx context.Context, tp kafka.TopicPartition, records []kafka.Record) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("write", tp.String()); err != nil {
		return 0, err
	}
	base := int64(len(c.logs[tp]))
	c.logs[tp] = append(c.logs[tp], records...)
	close(c.grown)
	c.grown = make(chan struct{})
	return base, ctx.Err()
}

func (c *fakeCluster) ListOffsets(_ context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, _ kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[kafka.TopicPartition]kafka.PartitionOffset{}
	for _, tp := range tps {
		o := kafka.PartitionOffset{Err: c.called("list offsets", tp.Topic)}
		if at == kafka.Latest {
			o.Offset = int64(len(c.logs[tp]))
		}
		out[tp] = o
	}
	return out
}

func (c *fakeCluster) ReadRecords(_ context.Context, tp kafka.TopicPartition, from, to int64, _ kafka.Isolation, fn func(kafka.Record) error) error {
	c.mu.Lock()
	records := slices.Clone(c.logs[tp])
	err := c.called("read", tp.String())
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for _, r := range records[from:to] {
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// Tail follows one partition. It ends with what "tail" fails with.
func (c *fakeCluster) Tail(ctx context.Context, starts map[kafka.TopicPartition]int64, _ kafka.Isolation, fn func(kafka.TopicPartition, kafka.Record) error, caughtUp func()) error {
	tp := slices.Collect(maps.Keys(starts))[0]
	next, first := starts[tp], true
	for {
		c.mu.Lock()
		records, grown := slices.Clone(c.logs[tp][next:]), c.grown
		err := c.called("tail", tp.String())
		c.mu.Unlock()
		if err != nil {
			return err
		}
		for _, r := range records {
			if err := fn(tp, r); err != nil {
				return err
			}
		}
		next += int64(len(records))
		if first {
			caughtUp()
			first = false
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grown:
		}
	}
}

// captured is a log that tests read.
type captured struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *captured) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *captured) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// matching counts the lines that have all the words.
func (c *captured) matching(words ...string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for line := range strings.Lines(c.b.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

func (c *captured) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

var flowAB = mirror.FlowID{Source: "A", Target: "B"}

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func policyOf(identity bool) mirror.ReplicationPolicy {
	o := mirror.PolicyOptions{Separator: ".", InternalSeparator: ".", Aliases: []mirror.ClusterAlias{"A", "B"}, Source: "A"}
	if identity {
		return mirror.NewIdentityPolicy(o)
	}
	return mirror.NewDefaultPolicy(o)
}

func patterns(tb testing.TB, items ...string) mirror.Patterns {
	tb.Helper()
	p, err := mirror.CompilePatterns(items)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func desired(tb testing.TB, identity bool, topics ...string) plan.Desired {
	tb.Helper()
	if len(topics) == 0 {
		topics = []string{".*"}
	}
	policy := policyOf(identity)
	return plan.Desired{
		Flow: flowAB,
		Selection: mirror.TopicSelection{
			Policy: policy, Target: "B", ReplicateHeartbeats: true,
			Filter: mirror.TopicFilter{Include: patterns(tb, topics...), Exclude: patterns(tb, mirror.SplitList(mirror.DefaultTopicsExclude4)...)},
		},
		ReplicationFactor: 1,
		Configs: plan.ConfigRules{
			Sync:   true,
			Filter: mirror.ConfigFilter{Exclude: patterns(tb, mirror.SplitList(mirror.DefaultConfigPropertiesExclude)...)},
		},
		Reserved: plan.InternalNames(flowAB, policy),
	}
}

func tp(topic string, partition int32) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: topic, Partition: partition}
}

// must fails the test on an error that no round of it should have.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func describe(list []Replica) string {
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s -> %s", r.Source, r.Target)
		if r.Born {
			b.WriteString(" born")
		}
		b.WriteString("\n")
	}
	return b.String()
}
