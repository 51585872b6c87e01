//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// Whatever breaks on the way and comes back: the same process goes on by
// itself, and nothing is lost or doubled.
//
//nolint:tparallel // the faults follow each other on one pair of clusters
func TestBrokenAndHealed(t *testing.T) {
	t.Parallel()
	a := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "faults-A", Version: kafkatest.ReleaseSource, Proxied: true})
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "faults-B", Version: kafkatest.ReleaseTarget, Proxied: true,
		// A forgetful broker: what it looks at every ten minutes otherwise.
		Properties: map[string]string{"producer.id.expiration.check.interval.ms": "500"},
	})
	source, target := a.Broker(1), b.Broker(1)
	proxy := func(b *kafkatest.Broker, wrong func(*kafkatest.Proxy), lasting time.Duration) func(*testing.T) {
		return func(*testing.T) {
			wrong(b.Proxy())
			time.Sleep(lasting)
			b.Proxy().Heal()
		}
	}
	resets := func(b *kafkatest.Broker) func(*testing.T) {
		return func(*testing.T) {
			for range 20 {
				b.Proxy().Reset()
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	crash := func(b *kafkatest.Broker) func(*testing.T) {
		return func(t *testing.T) {
			if err := b.Kill(); err != nil {
				t.Fatal(err)
			}
			restart(t, b)
		}
	}
	freeze := func(b *kafkatest.Broker) func(*testing.T) {
		return func(t *testing.T) {
			if err := b.Pause(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			if err := b.Resume(); err != nil {
				t.Fatal(err)
			}
		}
	}
	const tenDays = 10 * 24 * time.Hour
	cut := func(p *kafkatest.Proxy) { p.Cut() }
	silence := func(p *kafkatest.Proxy) { p.Silence() }
	delay := func(p *kafkatest.Proxy) { p.Delay(300 * time.Millisecond) }
	for _, row := range []struct {
		name  string
		back  time.Duration // age of the records
		fault func(*testing.T)
	}{
		{name: "target cut off", fault: proxy(target, cut, 3*time.Second)},
		{name: "target connections reset", fault: resets(target)},
		{name: "target connections reset, old records", back: tenDays, fault: resets(target)},
		{name: "target half-open", fault: proxy(target, silence, 5*time.Second)},
		{name: "target far away", fault: proxy(target, delay, 5*time.Second)},
		{name: "target frozen", fault: freeze(target)},
		{name: "target killed", fault: crash(target)},
		{name: "target restarted", fault: func(t *testing.T) { restart(t, target) }},
		{name: "target restarted, old records", back: tenDays, fault: func(t *testing.T) { restart(t, target) }},
		{name: "source cut off", fault: proxy(source, cut, 3*time.Second)},
		{name: "source connections reset", fault: resets(source)},
		{name: "source half-open", fault: proxy(source, silence, 5*time.Second)},
		{name: "source frozen", fault: freeze(source)},
		{name: "source killed", fault: crash(source)},
		{name: "source restarted", fault: func(t *testing.T) { restart(t, source) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			rounds := 1
			if long() {
				rounds = 10
			}
			tr := newTrial(t, a, b)
			topic := tr.topic("orders")
			a.CreateTopic(t, topic, 4, nil)
			l := startLoad(t, a, topic, 4, perSecond/4, row.back)
			p := tr.start()
			tr.arrived(l, 1)
			for range rounds {
				row.fault(t)
				began := time.Now()
				tr.moves(l)
				t.Logf("moves again after %v", time.Since(began).Round(10*time.Millisecond))
			}
			tr.equal(l)
			p.stop()
		})
	}
}

func restart(t *testing.T, b *kafkatest.Broker) {
	t.Helper()
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// On a target of three brokers leaders move when one dies, freezes or comes back.
func TestLeadersMove(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "three", Version: kafkatest.ReleaseTarget, Brokers: 3,
		Properties: map[string]string{
			"default.replication.factor": "3", "min.insync.replicas": "2", "broker.session.timeout.ms": "6000",
			// How long a coordinator waits for a frozen broker to take its markers.
			"request.timeout.ms": "10000",
		},
	})
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 6, nil)
	l := startLoad(t, a, topic, 6, perSecond/4, 0)
	p := tr.start()
	tr.arrived(l, 1)
	kill := func(b *kafkatest.Broker) {
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		tr.moves(l)
		restart(t, b)
	}
	rounds := 1
	if long() {
		rounds = 5
	}
	for range rounds {
		kill(b.Broker(1))
		preferLeaders(t, b)
		kill(b.Broker(2))
		if err := b.Broker(3).Pause(); err != nil {
			t.Fatal(err)
		}
		tr.moves(l)
		if err := b.Broker(3).Resume(); err != nil {
			t.Fatal(err)
		}
		// While leaders move, the program is killed too.
		if err := b.Broker(2).Kill(); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		p = tr.start()
		tr.moves(l)
		restart(t, b.Broker(2))
		preferLeaders(t, b)
	}
	tr.equal(l)
	p.stop()
}

// preferLeaders moves every leader to where it was first.
func preferLeaders(t *testing.T, c *kafkatest.Cluster) {
	t.Helper()
	if _, err := c.Admin(t).ElectLeaders(t.Context(), kadm.ElectPreferredReplica, nil); err != nil {
		t.Fatal(err)
	}
}

// A target whose transaction log cannot be made has no coordinator, and no
// fence by a marker: owners wait for the last one's session and scan.
func TestTargetWithoutTransactions(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "no-transactions", Version: kafkatest.ReleaseTarget,
		Properties: map[string]string{"transaction.state.log.replication.factor": "3"},
	})
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	l := startLoad(t, a, topic, 4, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	p = tr.start()
	p.awaitLog("the last owner had not stopped in order", `"fence":"lease+wait+scan"`)
	tr.moves(l)
	tr.equal(l)
	p.stop()
}

// deleteRecords removes a topic's records below offsets, as retention does.
func deleteRecords(t *testing.T, c *kafkatest.Cluster, topic string, below map[int32]int64) {
	t.Helper()
	var offsets kadm.Offsets
	for p, at := range below {
		offsets.Add(kadm.Offset{Topic: topic, Partition: p, At: at, LeaderEpoch: -1})
	}
	answers, err := c.Admin(t).DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatalf("delete records of %s on cluster %s: %v", topic, c.Name(), err)
	}
}

func deleteTopic(t *testing.T, c *kafkatest.Cluster, topic string) {
	t.Helper()
	id := topicID(t, c, topic)
	answer, err := c.Admin(t).DeleteTopic(t.Context(), topic)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		t.Fatalf("delete %s on cluster %s: %v", topic, c.Name(), err)
	}
	await(t, topic+" is gone", func() string {
		// heliograph may have made it again already.
		if now := topicID(t, c, topic); now == id {
			return "it is there"
		}
		return ""
	})
}

// topicID is empty for a topic that is not there.
func topicID(t *testing.T, c *kafkatest.Cluster, topic string) string {
	t.Helper()
	found, err := c.Admin(t).ListTopicsWithInternal(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if found[topic].Err != nil {
		return ""
	}
	return found[topic].ID.String()
}

// Bookkeeping topics deleted while the process runs are made again, and copying
// goes on. What was in them is written again, also of topics that are quiet.
func TestInternalTopicsDeleted(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b)
	topic, quiet := tr.topic("orders"), tr.topic("quiet")
	a.CreateTopic(t, topic, 2, nil)
	a.CreateTopic(t, quiet, 1, nil)
	a.Produce(t, kafkatest.Messages(quiet, 1, 50))
	l := startLoad(t, a, topic, 2, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	awaitCount(within(t, patience), t, b, tr.remote(quiet), 50)
	runs := "mm2-offset-runs." + tr.alias + ".internal"
	for _, internal := range []string{tr.positions(), runs, tr.alias + ".checkpoints.internal"} {
		deleteTopic(t, b, internal)
	}
	deleteTopic(t, a, "mm2-offset-syncs."+tr.to+".internal")
	tr.moves(l)
	awaitTopic(t, b, tr.positions(), 25)
	awaitTopic(t, b, runs, 25)
	tr.moves(l)
	// Positions and map come back too: a kill later copies nothing twice.
	for book, decode := range map[string]func([]byte) (kafka.TopicPartition, error){
		tr.positions(): func(key []byte) (kafka.TopicPartition, error) {
			k, err := mirror.DecodePositionKey(key)
			return kafka.TopicPartition{Topic: k.Topic, Partition: k.Partition}, err
		},
		runs: func(key []byte) (kafka.TopicPartition, error) {
			k, err := offsets.DecodeChunkKey(key)
			return kafka.TopicPartition{Topic: k.Topic, Partition: k.Partition}, err
		},
	} {
		await(t, book+" is written again", func() string {
			written := map[kafka.TopicPartition]bool{}
			for _, records := range b.ReadTopic(t, book) {
				for _, r := range records {
					tp, err := decode(r.Key)
					if err != nil {
						t.Fatal(err)
					}
					written[tp] = true
				}
			}
			for _, tp := range []kafka.TopicPartition{{Topic: topic}, {Topic: topic, Partition: 1}, {Topic: quiet}} {
				if !written[tp] {
					return fmt.Sprintf("nothing of %v", tp)
				}
			}
			return ""
		})
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	p = tr.start()
	tr.equal(l)
	awaitCount(within(t, patience), t, b, tr.remote(quiet), 50)
	if strings.Contains(p.Log(), "partition parked") {
		t.Error("a position is missing")
	}
	p.stop()
}

// startsOver lets a topic start over that was deleted and made again, on either side.
var startsOver = []string{
	"heliograph.policies = over",
	"heliograph.policies.over.topics = .*-again",
	"heliograph.policies.over.source.recreated = start",
	"heliograph.policies.over.target.recreated = start",
}

// A source topic deleted and made again parks by name; its neighbours run on.
func TestSourceTopicMadeAgain(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, startsOver...)
	topic, neighbour, again := tr.topic("orders"), tr.topic("neighbour"), tr.topic("again")
	a.CreateTopic(t, topic, 1, nil)
	a.CreateTopic(t, again, 1, nil)
	a.CreateTopic(t, neighbour, 2, nil)
	p := tr.start()
	a.Produce(t, append(kafkatest.Messages(topic, 1, 100), kafkatest.Messages(again, 1, 100)...))
	l := startLoad(t, a, neighbour, 2, perSecond/10, 0)
	awaitCount(within(t, patience), t, b, tr.remote(topic), 100)
	awaitCount(within(t, patience), t, b, tr.remote(again), 100)
	for _, made := range []string{topic, again} {
		deleteTopic(t, a, made)
		a.CreateTopic(t, made, 1, nil)
		a.Produce(t, kafkatest.Messages(made, 1, 7))
	}
	awaitCount(within(t, patience), t, b, tr.remote(again), 107)
	p.awaitLog("partition parked", topic, "deleted and made again")
	p.awaitState(tr.flow(), "degraded")
	tr.moves(l)
	// It stays parked over a restart, which must not find another answer.
	p.stop()
	p = tr.start()
	p.awaitLog("partition parked", topic, "deleted and made again")
	tr.equal(l)
	awaitCount(within(t, patience), t, b, tr.remote(topic), 100)
	p.stop()
}

// A target topic deleted while the process runs parks by name, without a
// record written to its successor; its neighbours run on.
func TestTargetTopicDeleted(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, startsOver...)
	topic, neighbour, again := tr.topic("orders"), tr.topic("neighbour"), tr.topic("again")
	a.CreateTopic(t, topic, 1, nil)
	a.CreateTopic(t, again, 1, nil)
	a.CreateTopic(t, neighbour, 2, nil)
	p := tr.start()
	a.Produce(t, append(kafkatest.Messages(topic, 1, 100), kafkatest.Messages(again, 1, 100)...))
	l := startLoad(t, a, neighbour, 2, perSecond/10, 0)
	awaitCount(within(t, patience), t, b, tr.remote(topic), 100)
	awaitCount(within(t, patience), t, b, tr.remote(again), 100)
	deleteTopic(t, b, tr.remote(topic))
	deleteTopic(t, b, tr.remote(again))
	a.Produce(t, append(kafkatest.Messages(topic, 1, 10), kafkatest.Messages(again, 1, 10)...))
	b.AwaitTopic(t, tr.remote(topic), 1)
	p.awaitLog("partition parked", topic, "made again")
	a.Produce(t, kafkatest.Messages(topic, 1, 10))
	tr.moves(l)
	if n := countRecords(b.ReadTopic(t, tr.remote(topic))); n != 0 {
		t.Errorf("%d records of the middle of %s were written to a new, empty topic", n, topic)
	}
	tr.equal(l)
	awaitCount(within(t, patience), t, b, tr.remote(again), 110)
	same(t, kafkatest.Side{Cluster: a, Topic: again}, kafkatest.Side{Cluster: b, Topic: tr.remote(again)})
	p.stop()
}

// What retention removes at the source before it was copied is named, and
// copying goes on behind it.
func TestRetentionOvertakesTheReader(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	for _, row := range []struct {
		name string
		end  func(*heliograph) error // of the first process
	}{
		{"stopped", func(p *heliograph) error { p.stop(); return nil }},
		{"killed", func(p *heliograph) error { return p.Kill() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, a, b)
			topic := tr.topic("orders")
			a.CreateTopic(t, topic, 1, nil)
			p := tr.start()
			a.Produce(t, numbered(topic, 0, 100))
			awaitCount(within(t, patience), t, b, tr.remote(topic), 100)
			if err := row.end(p); err != nil {
				t.Fatal(err)
			}
			a.Produce(t, numbered(topic, 100, 200))
			deleteRecords(t, a, topic, map[int32]int64{0: 150})
			p = tr.start()
			a.Produce(t, numbered(topic, 200, 220))
			p.awaitLog(`"msg":"loss"`, topic, `"from":100`, `"to":150`, `"records":50`, "overtaken")
			records := awaitCount(within(t, patience), t, b, tr.remote(topic), 170)
			for i, r := range records[0] {
				want := int64(i)
				if i >= 100 {
					want += 50
				}
				if got := number(r.Value); got != want {
					t.Fatalf("record %d is number %d, want %d", i, got, want)
				}
			}
			if n := p.metric("heliograph_flow_lost_records_total"); n != 50 {
				t.Errorf("the metric tells of %v lost records, want 50", n)
			}
			p.stop()
		})
	}
}

// With the positions gone and the target not empty, a partition parks and asks,
// or does what the file says beforehand.
func TestMissingPositions(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	for _, row := range []struct {
		choice string
		want   []int64 // numbers of the first and the last record that come after, and how many
	}{
		{"park", nil},
		{"scan", []int64{100, 129, 30}},
		{"end", []int64{120, 129, 10}},
		{"start", []int64{0, 129, 130}},
	} {
		t.Run(row.choice, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, a, b, "heliograph.missing.position = "+row.choice)
			topic := tr.topic("orders")
			a.CreateTopic(t, topic, 1, nil)
			p := tr.start()
			a.Produce(t, numbered(topic, 0, 100))
			awaitCount(within(t, patience), t, b, tr.remote(topic), 100)
			// A kill and a takeover leave a marker: target offsets and counts differ.
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			p = tr.start()
			p.awaitLog("the last owner had not stopped in order")
			p.stop()
			if row.choice != "scan" { // which must find the place without a record more to tell it
				a.Produce(t, numbered(topic, 100, 120))
			}
			deleteTopic(t, b, tr.positions())
			p = tr.start()
			if row.want == nil {
				line := p.awaitLog("partition parked", topic, "not empty")
				for _, word := range []string{"heliograph.missing.position", "scan", "end", "start"} {
					if !strings.Contains(line, word) {
						t.Errorf("%q does not offer %q", line, word)
					}
				}
				a.Produce(t, numbered(topic, 120, 130))
				p.stop()
				awaitCount(within(t, patience), t, b, tr.remote(topic), 100)
				return
			}
			await(t, "the partition runs", func() string {
				if p.metric("heliograph_flow_partitions", `state="running"`) == 0 {
					return "not yet"
				}
				return ""
			})
			if row.choice == "scan" {
				a.Produce(t, numbered(topic, 100, 120))
			}
			a.Produce(t, numbered(topic, 120, 130))
			records := b.AwaitRecords(within(t, patience), t, tr.remote(topic), 100+int(row.want[2]))[0][100:]
			p.stop()
			first, last := number(records[0].Value), number(records[len(records)-1].Value)
			if first != row.want[0] || last != row.want[1] || int64(len(records)) != row.want[2] {
				t.Errorf("after the positions were lost, %d records came, numbers %d to %d; want %v", len(records), first, last, row.want)
			}
		})
	}
}
