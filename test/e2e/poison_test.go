//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/losses"
)

// TestPoison gives the target what it refuses: a record too large, and one
// without a key for a compacted copy, in the middle of a batch. By the flow's
// policy they are kept in the dead-letter topic, and by the policy of one topic
// its partition stops at them. Whatever else is in their batches is copied.
func TestPoison(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b,
		"sync.topic.configs.enabled = false",
		"config.properties.exclude = max\\\\.message\\\\.bytes",
		"heliograph.poison = dead-letter",
		"heliograph.policies = money",
		"heliograph.policies.money.topics = .*-payments",
		"heliograph.policies.money.poison = stop",
	)
	large, compacted, strict := tr.topic("large"), tr.topic("compacted"), tr.topic("payments")
	roomy := map[string]string{"max.message.bytes": "8388608"}
	for _, topic := range []string{large, strict, compacted} {
		a.CreateTopic(t, topic, 1, roomy)
	}
	b.CreateTopic(t, tr.remote(compacted), 1, map[string]string{"cleanup.policy": "compact"})
	big := make([]byte, 3<<20)
	rng := seeded(t)
	for i := range big {
		big[i] = byte(rng.Uint32())
	}
	var sick []*kgo.Record
	for _, topic := range []string{large, strict} {
		records := numbered(topic, 0, 20)
		records[7].Key, records[7].Value = []byte("the seventh"), big
		records[7].Headers = []kgo.RecordHeader{{Key: "colour", Value: []byte("green")}}
		sick = append(sick, records...)
	}
	keyless := numbered(compacted, 0, 100)
	for i, r := range keyless {
		if i != 42 {
			r.Key = fmt.Append(nil, i)
		}
	}
	a.Produce(t, append(sick, keyless...), kgo.ProducerBatchMaxBytes(8<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	p := tr.start()

	values := func(topic string, want int) []string {
		var out []string
		for _, r := range awaitCount(within(t, patience), t, b, topic, want)[0] {
			out = append(out, string(r.Value))
		}
		return out
	}
	whole := func(records []*kgo.Record, but int) []string {
		var out []string
		for i, r := range records {
			if i != but {
				out = append(out, string(r.Value))
			}
		}
		return out
	}
	if got := values(tr.remote(large), 19); !slices.Equal(got, whole(sick[:20], 7)) {
		t.Errorf("the copy of %s holds %q", large, got)
	}
	if got := values(tr.remote(compacted), 99); !slices.Equal(got, whole(keyless, 42)) {
		t.Errorf("the copy of %s holds %q", compacted, got)
	}
	p.awaitLog("partition parked", strict, "source offset 7")
	if got := values(tr.remote(strict), 7); len(got) != 7 {
		t.Errorf("the copy of %s went on behind the poison", strict)
	}

	letters := awaitCount(within(t, patience), t, b, "mm2-dead-letters."+tr.alias+".internal", 2)[0]
	slices.SortFunc(letters, func(x, y kafka.Record) int { return len(x.Value) - len(y.Value) })
	header := func(r kafka.Record, key string) string {
		for _, h := range r.Headers {
			if h.Key == key {
				return string(h.Value)
			}
		}
		return ""
	}
	for i, want := range []struct {
		topic, offset, reason string
		value                 []byte
	}{{compacted, "42", "INVALID_RECORD", keyless[42].Value}, {large, "7", "MESSAGE_TOO_LARGE", big}} {
		r := letters[i]
		if header(r, losses.HeaderTopic) != want.topic || header(r, losses.HeaderPartition) != "0" || header(r, losses.HeaderOffset) != want.offset ||
			!strings.Contains(header(r, losses.HeaderReason), want.reason) || header(r, losses.HeaderCut) != "" || !bytes.Equal(r.Value, want.value) {
			t.Errorf("letter %d of %d bytes has headers %v", i, len(r.Value), r.Headers)
		}
	}
	if r := letters[1]; string(r.Key) != "the seventh" || header(r, "colour") != "green" {
		t.Errorf("the letter's key is %q, its headers %v", r.Key, r.Headers)
	}
	var told struct {
		Losses []struct {
			Topic  string
			From   int64
			Action string
		}
	}
	askCode(t, 3, &told, "losses", tr.file, "--flow", tr.flow()) // the code says that there are losses
	found := map[string]string{}
	for _, l := range told.Losses {
		found[fmt.Sprint(l.Topic, " ", l.From)] = l.Action
	}
	if len(found) != 2 || found[large+" 7"] != "dead-lettered" || found[compacted+" 42"] != "dead-lettered" {
		t.Errorf("losses tells %v", told)
	}
	p.stop()
}
