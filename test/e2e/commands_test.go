//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"heliograph/internal/kafka"
)

// ask runs a verb that only reads, expects it to succeed and reads its JSON.
func ask(tb testing.TB, into any, args ...string) {
	tb.Helper()
	askCode(tb, 0, into, args...)
}

// askCode is ask of a verb that is to end with a code.
func askCode(tb testing.TB, code int, into any, args ...string) {
	tb.Helper()
	cmd := exec.CommandContext(within(tb, patience), binary(tb), append(args, "--output", "json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		tb.Fatalf("%v: %v, want code %d\n%s%s", args, err, code, out, stderr.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		tb.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// answers are what "heliograph translate" says, as far as the test looks.
type answers struct {
	Answers []struct {
		To      struct{ Offset *int64 }
		Quality string
		By      string
		Reason  string
	}
}

// standings are what "heliograph groups" says, as far as the test looks.
type standings struct {
	Flows []struct {
		Error  string
		Groups []struct {
			Group      string
			Partitions []struct {
				Topic      string
				Position   int64  `json:"source_position"`
				Translated *int64 `json:"target_position_translated"`
				Quality    string
				Reason     string `json:"quality_reason"`
				NotCopied  *int64 `json:"not_on_target_at_most"`
				ReadTwice  *int64 `json:"read_twice_at_most"`
			}
		}
	}
}

// Groups and offsets of a transactional topic with aborted records are told
// exactly, both ways, for what was copied before and after a restart; without
// anything running, and for every offset there is.
func TestCommandsAnswerExactly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic("test-topic-transactions")
	f.primary.CreateTopic(t, topic, 1, nil)
	file := f.oneWay(f.from+".consumer.isolation.level = read_committed", "emit.heartbeats.enabled = false")
	var copied int
	for range 2 {
		copied += int(produceTransactions(t, f.primary, topic, 6))
		h := start(t, file)
		f.backup.AwaitRecords(within(t, patience), t, f.remote(topic), copied)
		h.stop()
	}
	source, target := f.committed(t, topic)
	if len(source) != copied || len(target) != copied {
		t.Fatalf("%d records on the source, %d on the target, want %d", len(source), len(target), copied)
	}

	// A group on every offset, the end included.
	end := ends(t, f.primary, topic)[0]
	for u := range end + 1 {
		f.primary.CommitGroup(t, fmt.Sprintf("%s-%d", f.group(), u), topic, u)
	}
	var s standings
	ask(t, &s, "groups", file)
	if len(s.Flows) != 1 || s.Flows[0].Error != "" || len(s.Flows[0].Groups) != int(end)+1 {
		t.Fatalf("groups of one flow, %d of them: %+v", end+1, s)
	}
	for _, g := range s.Flows[0].Groups {
		p := g.Partitions[0]
		want, quality := target[len(target)-1].Offset+1, "exact"
		for i, r := range source {
			if r.Offset < p.Position {
				continue
			}
			want = target[i].Offset
			if r.Offset > p.Position {
				quality = "next"
			}
			break
		}
		if p.Translated == nil || *p.Translated != want || p.Quality != quality {
			t.Errorf("source offset %d: %+v, want %s %d", p.Position, p, quality, want)
		}
		if p.NotCopied == nil || *p.NotCopied != 0 || p.ReadTwice == nil || *p.ReadTwice != want {
			t.Errorf("source offset %d: at risk %+v, want none missing and %d read twice", p.Position, p, want)
		}
	}

	// There and back, for the first record behind an aborted transaction and the last one.
	for _, i := range []int{20, copied - 1} {
		var there, back answers
		ask(t, &there, "translate", file, fmt.Sprintf("%s:0:%d", topic, source[i].Offset))
		ask(t, &back, "translate", file, fmt.Sprintf("%s:0:%d", f.remote(topic), target[i].Offset), "--reverse")
		for got, want := range map[*answers]int64{&there: target[i].Offset, &back: source[i].Offset} {
			if a := got.Answers; len(a) != 1 || a[0].Quality != "exact" || a[0].To.Offset == nil || *a[0].To.Offset != want || a[0].By != "offset map" {
				t.Errorf("record %d: %+v, want exactly %d", i, *got, want)
			}
		}
	}

	var none struct{ Losses []any }
	ask(t, &none, "losses", file, "--flow", f.flow())
	if len(none.Losses) != 0 {
		t.Errorf("losses: %v", none.Losses)
	}
}

// committed are the records of a topic with one partition and of its copy, which
// must be the same in the same order.
func (f *fixture) committed(tb testing.TB, topic string) (source, target []kafka.Record) {
	tb.Helper()
	a, err := f.primary.Read(tb.Context(), topic, kafka.ReadCommitted)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := f.backup.Read(tb.Context(), f.remote(topic), kafka.ReadCommitted)
	if err != nil {
		tb.Fatal(err)
	}
	source, target = a[0], b[0]
	for i := range min(len(source), len(target)) {
		if !bytes.Equal(source[i].Value, target[i].Value) {
			tb.Fatalf("record %d is %q on the source and %q on the target", i, source[i].Value, target[i].Value)
		}
	}
	return source, target
}
