//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// Thousands of groups on random offsets of a transactional topic with aborts:
// records, markers, aborted records, the end. While traffic runs, before and after
// a kill -9, and after a fail-over to another process, each of them stands at the
// record on the target that it would read next on the source.
func TestThousandsOfRandomOffsetsWhileTrafficRuns(t *testing.T) {
	t.Parallel()
	const groups = 700
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.heartbeats.enabled = false")
	tr.append("groups = "+tr.alias+"-.*", tr.alias+".consumer.isolation.level = read_committed")
	topic, random := tr.topic("orders"), seeded(t)
	a.CreateTopic(t, topic, 1, nil)
	w := &txnLoad{tb: t, cluster: a, topic: topic}
	w.start()
	name := func(g int) string { return fmt.Sprintf("%s-%04d", tr.alias, g) }
	next := func(log []kafka.Record, at int64) int64 { // the number of the record that a reader meets at an offset; -1 at the end
		i, _ := slices.BinarySearchFunc(log, at, func(r kafka.Record, at int64) int { return int(r.Offset - at) })
		if i == len(log) {
			return -1
		}
		return number(log[i].Value)
	}
	checked := 0
	check := func(when string) {
		t.Helper()
		end := endOf(t, a, topic)
		at := make([]int64, groups)
		var work errgroup.Group
		work.SetLimit(8)
		names := make([]string, groups)
		for g := range groups {
			at[g], names[g] = random.Int64N(end+1), name(g)
			work.Go(func() error { a.CommitGroup(t, name(g), topic, at[g]); return nil })
		}
		_ = work.Wait()
		await(t, "all groups stand at their records "+when, func() string {
			// The target is read first: what it has, the source has too.
			target := committedRecords(t, b, tr.remote(topic))
			source := committedRecords(t, a, topic)
			there := b.Admin(t).FetchManyOffsets(t.Context(), names...)
			wrong, first := 0, ""
			for g := range groups {
				o, ok := there[name(g)].Fetched.Lookup(tr.remote(topic), 0)
				want := next(source, at[g])
				if !ok || want < 0 || next(target, o.At) != want {
					wrong++
					first = fmt.Sprintf("%s at source offset %d: stands at %d (%v), which is record %d, want %d", name(g), at[g], o.At, ok, next(target, o.At), want)
				}
			}
			if wrong == 0 {
				return ""
			}
			return fmt.Sprintf("%d are wrong: %s", wrong, first)
		})
		checked += groups
	}
	copied := func(more int64) {
		now := endOf(t, b, tr.remote(topic))
		await(t, "records are copied", func() string { return lacks(int(now+more), int(endOf(t, b, tr.remote(topic)))) })
	}
	h := tr.start()
	copied(300)
	check("in the first life")
	if err := h.Kill(); err != nil {
		t.Fatal(err)
	}
	h = tr.start()
	copied(100)
	check("after kill -9")
	second := tr.start()
	second.awaitLog("flow starts")
	h.stop()
	copied(100)
	check("after a fail-over")
	w.stop()
	second.stop()
	t.Logf("%d random offsets, all exact", checked)
}

// A consumer of Kafka's own library reads a part on the source, moves to the target
// and reads on, moves back and reads the rest: each record once, in order, while
// records are written and some aborted.
func TestJavaConsumerMovesThereAndBack(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.heartbeats.enabled = false")
	tr.append("groups = "+tr.alias+"-.*", tr.alias+".consumer.isolation.level = read_committed")
	topic, group := tr.topic("orders"), tr.alias+"-reader"
	a.CreateTopic(t, topic, 1, nil)
	cl := a.Client(t, kgo.TransactionalID(topic))
	written := 0
	write := func(count int) {
		t.Helper()
		for range count / 10 {
			for _, how := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
				var records []*kgo.Record
				for i := range 10 {
					text := fmt.Sprintf("%06d", written+i)
					if how == kgo.TryAbort {
						text = "aborted"
					}
					records = append(records, &kgo.Record{Topic: topic, Value: []byte(text)})
				}
				if err := transact(t.Context(), cl, how, records...); err != nil {
					t.Fatal(err)
				}
			}
			written += 10
		}
	}
	read := 0
	consume := func(c *kafkatest.Cluster, topic, property string, count int, properties ...string) {
		t.Helper()
		args := []string{"--bootstrap-server", c.Bootstrap(), "--topic", topic, "--group", group, "--isolation-level", "read_committed", "--max-messages", fmt.Sprint(count)}
		for _, p := range append(properties, "auto.offset.reset=earliest") {
			args = append(args, property, p)
		}
		out, err := kafkatest.Tool(within(t, patience), c.Version(), "ConsoleConsumer", args...)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(out)
		if len(got) != count {
			t.Fatalf("%d records, want %d: %q", len(got), count, got)
		}
		for _, text := range got {
			if text != fmt.Sprintf("%06d", read) {
				t.Fatalf("on %s the reader gets %q, want record %d", c.Name(), text, read)
			}
			read++
		}
	}
	write(100)
	h := tr.start()
	consume(a, topic, "--consumer-property", 37)
	write(100)
	at := groupOffsets(t, a, group, topic)[0]
	await(t, "the group stands on the target at its record", func() string {
		there, ok := groupOffsets(t, b, group, tr.remote(topic))[0]
		for _, r := range committedRecords(t, b, tr.remote(topic)) {
			if ok && r.Offset >= there {
				if string(r.Value) == fmt.Sprintf("%06d", read) {
					return ""
				}
				break
			}
		}
		return fmt.Sprintf("it stands at %d (%v), on the source at %d", there, ok, at)
	})
	await(t, "all is copied", func() string { return lacks(written, len(committedRecords(t, b, tr.remote(topic)))) })
	consume(b, tr.remote(topic), "--command-property", 81, "group.protocol=consumer")
	write(50)
	tr.verb(t, 0, "groups", tr.file, "--back", "--apply", "--group", group)
	consume(a, topic, "--consumer-property", written-read)
	h.stop()
	if read != written {
		t.Errorf("%d records read, %d written", read, written)
	}
}

// Groups that no consumer made: by an admin client with metadata and leader epochs,
// at 0, at the end, beyond it, on topics of which one is not copied. A share group is
// named. A group that the target's consumers use stays where it is.
func TestGroupsOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"default": nil, "identity": {identityPolicy},
		"separator": {"replication.policy.separator = _", "replication.policy.internal.topic.separator.enabled = false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := kafkatest.Pair(t) // share groups are of the newer release
			tr := newTrial(t, a, b, append([]string{
				"sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.heartbeats.enabled = false",
				"topics.exclude = .*-secret",
			}, lines...)...)
			remote := func(topic string) string {
				if name == "separator" {
					return tr.alias + "_" + topic
				}
				return tr.remote(topic)
			}
			topic, secret := tr.topic("orders"), tr.topic("secret")
			a.CreateTopic(t, topic, 2, nil)
			a.CreateTopic(t, secret, 1, nil)
			a.Produce(t, append(numbered(topic, 0, 100), numbered(secret, 0, 5)...))
			group := func(kind string) string { return tr.alias + "-" + kind }
			commit := func(kind string, at int64, meta string, epoch int32) {
				t.Helper()
				var all kadm.Offsets
				all.Add(kadm.Offset{Topic: topic, At: at, Metadata: meta, LeaderEpoch: epoch})
				all.Add(kadm.Offset{Topic: secret, At: 3, LeaderEpoch: -1})
				resp, err := a.Admin(t).CommitOffsets(t.Context(), group(kind), all)
				if err == nil {
					err = resp.Error()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			commit("zero", 0, "", -1)
			commit("middle", 42, "where: {\"x\": 1}", 0)
			commit("end", 100, "", -1)
			commit("beyond", 500, "", -1)
			commit("active", 30, "", -1)
			shareOn(t, a, group("share"), topic)
			h := start(t, tr.file)
			check := func(kind string, want int64, meta string) {
				t.Helper()
				await(t, "group "+kind+" stands on the target", func() string {
					got, err := b.Admin(t).FetchOffsets(t.Context(), group(kind))
					if err != nil {
						return err.Error()
					}
					o, ok := got.Lookup(remote(topic), 0)
					if !ok || o.At != want || o.Metadata != meta {
						return fmt.Sprintf("it stands at %+v (%v), want %d", o.Offset, ok, want)
					}
					if len(got) != 1 || len(got[remote(topic)]) != 1 {
						return fmt.Sprintf("it has offsets of more than the copy: %+v", got)
					}
					return ""
				})
			}
			check("zero", 0, "")
			check("middle", 42, "where: {\"x\": 1}")
			check("end", 100, "")
			check("beyond", 100, "")
			check("active", 30, "")

			// On the target a consumer uses the group, moves it and ends: it is not pulled back.
			consumer, err := b.Open(kgo.ConsumerGroup(group("active")), kgo.ConsumeTopics(remote(topic)), kgo.DisableAutoCommit())
			if err != nil {
				t.Fatal(err)
			}
			defer consumer.Close()
			if f := consumer.PollRecords(within(t, patience), 40); f.Err() != nil || number(f.Records()[0].Value) != 30 {
				t.Fatalf("the consumer begins at %v (%v), want record 30", f.Records()[0].Offset, f.Err())
			}
			commit("active", 35, "", -1)
			var s struct {
				Flows []struct {
					Groups []struct {
						Group      string
						Partitions []struct {
							NotSynced string `json:"not_synced"`
						}
					}
					Skipped []struct{ Group, Reason string }
				}
			}
			ask(t, &s, "groups", tr.file)
			said := fmt.Sprint(s)
			for _, want := range []string{"active on the target: state STABLE with 1 member", "a share group: not supported"} {
				if !strings.Contains(said, want) {
					t.Errorf("groups says nothing of %q: %s", want, said)
				}
			}
			if at := groupOffsets(t, b, group("active"), remote(topic))[0]; at != 30 {
				t.Errorf("the active group was moved to %d", at)
			}
			if err := consumer.CommitRecords(t.Context(), &kgo.Record{Topic: remote(topic), Offset: 79}); err != nil {
				t.Fatal(err)
			}
			consumer.Close()
			commit("active", 60, "", -1)
			commit("zero", 7, "", -1)
			check("zero", 7, "") // a round has passed
			if at := groupOffsets(t, b, group("active"), remote(topic))[0]; at != 80 {
				t.Errorf("the group that moved on at the target was moved to %d", at)
			}
			commit("middle", 5, "", -1)
			check("middle", 5, "") // a rewind
			h.stop()
		})
	}
}

// shareOn makes a share group with a member for a moment.
func shareOn(tb testing.TB, c *kafkatest.Cluster, group, topic string) {
	tb.Helper()
	cl := c.Client(tb)
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.SubscribedTopicNames = group, "AAAAAAAAAAAAAAAAAAAAAQ", []string{topic}
	await(tb, "a share group", func() string {
		ctx, cancel := context.WithTimeout(tb.Context(), patience)
		defer cancel()
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err.Error()
		}
		if resp.ErrorCode != 0 {
			return fmt.Sprint(kafka.Code(resp.ErrorCode))
		}
		return ""
	})
}

// In a chain A->B->C the progress groups of both flows stay on their sources, though
// the file would follow every group, and a group of A goes through to C. A flow
// whose offset syncs lie on its target writes nothing to its source, and says so.
func TestProgressGroupsStayInAChain(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	sync := []string{
		"sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.heartbeats.enabled = false", "groups.exclude = none",
	}
	tr := newTrial(t, a, b, sync...)
	topic, group, c := tr.topic("orders"), tr.alias+"-group", tr.alias+"-c"
	tr.append("groups = .*" + tr.alias + ".*")
	a.CreateTopic(t, topic, 1, nil)
	a.Produce(t, numbered(topic, 0, 50))
	on := writeFile(t, append([]string{ // C is A's brokers under another name
		"clusters = " + tr.to + ", " + c, tr.to + ".bootstrap.servers = " + b.Bootstrap(), c + ".bootstrap.servers = " + a.Bootstrap(),
		tr.to + "->" + c + ".enabled = true", "topics = " + tr.remote(topic), "groups = .*" + tr.alias + ".*", "replication.factor = -1",
		"offset-syncs.topic.replication.factor = -1", "checkpoints.topic.replication.factor = -1", "offset.storage.replication.factor = -1",
		"offset-syncs.topic.location = target", "heartbeats.replication.enabled = false",
	}, sync...)...)
	h, next := tr.start(), start(t, on)
	a.CommitGroup(t, group, topic, 20)
	last := tr.to + "." + tr.remote(topic)
	await(t, "the group goes through the chain", func() string {
		if at, ok := groupOffsets(t, a, group, last)[0]; !ok || at != 20 {
			return fmt.Sprintf("it stands at %d (%v)", at, ok)
		}
		return ""
	})
	progress := "__heliograph." + tr.alias + "." + tr.to
	await(t, "the first flow's progress is on its source", func() string {
		if at := groupOffsets(t, a, progress, topic)[0]; at != 50 {
			return fmt.Sprintf("it stands at %d", at)
		}
		return ""
	})
	next.awaitLog("progress is not committed on the source")
	if on, off := h.metric("heliograph_flow_progress_group", `target="`+tr.to+`"`), next.metric("heliograph_flow_progress_group"); on != 1 || off != 0 {
		t.Errorf("the metric tells %v of the flow that commits and %v of the one that does not", on, off)
	}
	h.stop()
	next.stop()
	for cluster, topics := range map[*kafkatest.Cluster][]string{a: {last}, b: {tr.remote(topic)}} {
		for _, group := range []string{progress, "__heliograph." + tr.to + "." + c} {
			for _, topic := range topics {
				if got := groupOffsets(t, cluster, group, topic); len(got) > 0 {
					t.Errorf("%s is on cluster %s: %v", group, cluster.Name(), got)
				}
			}
		}
	}
}
