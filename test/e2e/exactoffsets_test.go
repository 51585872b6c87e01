//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// Everything that can happen to offsets, in one life of a flow: Java MirrorMaker
// copies a transactional topic with aborts, is killed, heliograph takes over, is
// killed and started again, all under load. Then groups on offsets all over the
// log stand at the very same record on the target, also on what MirrorMaker
// copied; lag tools on the source show the replication's lag; and groups that move
// on at the target find their way back.
func TestOffsetsAreExactThroughEverything(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, oneBroker,
		"sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.checkpoints.interval.seconds = 1",
		"refresh.groups.interval.seconds = 1", "emit.heartbeats.enabled = false")
	tr.append("groups = "+tr.alias+"-.*", tr.alias+".consumer.isolation.level = read_committed")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 1, nil)
	w := &txnLoad{tb: t, cluster: a, topic: topic}
	w.start()

	java := tr.java(kafkatest.ReleaseSource)
	await(t, "MirrorMaker copies", func() string { return lacks(300, int(endOf(t, b, tr.remote(topic)))) })
	if err := java.Kill(); err != nil {
		t.Fatal(err)
	}
	javasEnd := w.sent()
	h := tr.takeover()
	for range 2 {
		now := endOf(t, b, tr.remote(topic))
		await(t, "heliograph copies", func() string { return lacks(int(now)+200, int(endOf(t, b, tr.remote(topic)))) })
		if err := h.Kill(); err != nil {
			t.Fatal(err)
		}
		h = start(t, tr.file)
	}
	w.stop()

	// Groups on committed records all over the log, and between them.
	source := committedRecords(t, a, topic)
	var groups []string
	at := map[string]int64{} // what the group reads next, by its number
	for i := 0; i < len(source); i += max(1, len(source)/60) {
		group := fmt.Sprintf("%s-%05d", tr.alias, i)
		groups = append(groups, group)
		at[group] = number(source[i].Value)
		a.CommitGroup(t, group, topic, source[i].Offset)
	}
	await(t, "every group stands at its record", func() string {
		wrong := ""
		n := 0
		for _, group := range groups {
			there, ok := groupOffsets(t, b, group, tr.remote(topic))[0]
			if ok && tr.numberAt(tr.remote(topic), 0, there) == at[group] {
				n++
			} else if wrong == "" {
				wrong = fmt.Sprintf("%s stands at %d (%v), want record %d", group, there, ok, at[group])
			}
		}
		if n == len(groups) {
			return ""
		}
		return fmt.Sprintf("%d of %d: %s", n, len(groups), wrong)
	})
	t.Logf("%d groups on %d records, %d of them copied by MirrorMaker at least: all exact", len(groups), len(source), javasEnd)

	// Kafka's own lag tool shows that nothing is left to copy.
	await(t, "the progress group has no lag", func() string {
		out, err := kafkatest.Tool(t.Context(), a.Version(), "ConsumerGroupCommand", "--bootstrap-server", a.Bootstrap(),
			"--describe", "--group", "__heliograph."+tr.alias+"."+tr.to)
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			if len(f) > 5 && f[1] == topic && f[5] == "0" {
				return ""
			}
		}
		return out
	})
	if got := groupOffsets(t, b, "__heliograph."+tr.alias+"."+tr.to, tr.remote(topic)); len(got) > 0 {
		t.Errorf("the progress group was synced: %v", got)
	}
	h.stop()

	// The map reaches back over MirrorMaker's part, and the way back is exact.
	if said := tr.verb(t, 0, "translate", tr.file, "--rebuild"); !strings.Contains(said, "matched") {
		t.Errorf("rebuild says %q", said)
	}
	target := committedRecords(t, b, tr.remote(topic))
	for _, i := range []int{0, len(target) / 5, len(target) / 2, len(target) - 1} {
		var there, back answers
		ask(t, &there, "translate", tr.file, fmt.Sprintf("%s:0:%d", topic, source[i].Offset))
		ask(t, &back, "translate", tr.file, fmt.Sprintf("%s:0:%d", tr.remote(topic), target[i].Offset), "--reverse")
		for got, want := range map[*answers]int64{&there: target[i].Offset, &back: source[i].Offset} {
			if a := got.Answers; len(a) != 1 || a[0].Quality != "exact" || a[0].To.Offset == nil || *a[0].To.Offset != want || a[0].By != "offset map" {
				t.Errorf("record %d: %+v, want exactly %d by the map", i, *got, want)
			}
		}
	}
	moved := groups[len(groups)/2]
	last := len(target) - 2
	b.CommitGroup(t, moved, tr.remote(topic), target[last].Offset)
	tr.verb(t, 0, "groups", tr.file, "--back", "--apply", "--group", moved)
	if got := groupOffsets(t, a, moved, topic)[0]; got != source[last].Offset {
		t.Errorf("group %s is back at %d, want %d", moved, got, source[last].Offset)
	}
}

// txnLoad writes numbered records in small transactions, every third aborted.
type txnLoad struct {
	tb      testing.TB
	cluster *kafkatest.Cluster
	topic   string
	halt    chan struct{}
	done    chan struct{}
	next    int64
}

func (w *txnLoad) start() {
	w.halt, w.done = make(chan struct{}), make(chan struct{})
	cl := w.cluster.Client(w.tb, kgo.TransactionalID(w.topic))
	go func() {
		defer close(w.done)
		for n := 0; ; n++ {
			select {
			case <-w.halt:
				return
			case <-time.After(20 * time.Millisecond):
			}
			records, how := numbered(w.topic, w.next, w.next+5), kgo.TryCommit
			if n%3 == 2 {
				how = kgo.TryAbort
				for _, r := range records {
					putNumber(r.Value, 999_999_999) // never to be seen
				}
			} else {
				w.next += 5
			}
			if err := transact(w.tb.Context(), cl, how, records...); err != nil {
				w.tb.Error(err)
				return
			}
		}
	}()
	w.tb.Cleanup(w.stop)
}

func (w *txnLoad) stop() {
	select {
	case <-w.halt:
	default:
		close(w.halt)
	}
	<-w.done
}

// sent is how many records were committed at some moment lately.
func (w *txnLoad) sent() int64 { return int64(len(committedRecords(w.tb, w.cluster, w.topic))) }

// committedRecords are the records of partition 0 that a read_committed reader sees.
func committedRecords(tb testing.TB, c *kafkatest.Cluster, topic string) []kafka.Record {
	tb.Helper()
	read, err := c.Read(tb.Context(), topic, kafka.ReadCommitted)
	if err != nil {
		tb.Fatal(err)
	}
	return read[0]
}

func endOf(tb testing.TB, c *kafkatest.Cluster, topic string) int64 {
	tb.Helper()
	listed, err := c.Admin(tb).ListEndOffsets(tb.Context(), topic)
	if err != nil || listed.Error() != nil {
		return 0
	}
	end, _ := listed.Lookup(topic, 0)
	return end.Offset
}
