package recordbatch

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

func TestControlReadsMarkers(t *testing.T) {
	for _, want := range []ControlKind{ControlAbort, ControlCommit} {
		if kind, ok := Control(view(t, markerBatch(9, 5, want))); !ok || kind != want {
			t.Errorf("got %v, %v, want %v", kind, ok, want)
		}
	}
	empty := with(markerBatch(9, 5, ControlAbort)[:HeaderSize], func(h *Header) { h.Count, h.Length = 0, minLength })
	shortKey := with(built([]kafka.Record{{Key: []byte{0, 0, 0}}}, BuildOptions{}), func(h *Header) { h.Attributes |= attrControl })
	for name, batch := range map[string][]byte{
		"data":       plainBatch(),
		"old format": legacyEntry(0, 0, 1, 0, []byte{0, 0, 0, 0}, nil),
		"other kind": markerBatch(9, 5, 2),
		"compacted":  empty,
		"short key":  shortKey,
	} {
		if kind, ok := Control(view(t, batch)); ok {
			t.Errorf("%s was taken for a marker: %v", name, kind)
		}
	}
}

// logStep is what one producer does to the model's log.
type logStep int

const (
	stepWrite logStep = iota
	stepPlain
	stepAbort
	stepCommit
)

// TestAbortFilterAgreesWithClientLibrary plays random transactions and compares
// what is left of the log with what a read_committed consumer sees.
func TestAbortFilterAgreesWithClientLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			log     []byte
			offset  int64
			open    = map[int64]int64{} // producer to first offset
			aborted []kafka.AbortedTxn
		)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			producer := rapid.Int64Range(1, 3).Draw(t, "producer")
			value := fmt.Sprintf("p%d@%d", producer, offset)
			first, inTxn := open[producer]
			step := logStep(rapid.IntRange(int(stepWrite), int(stepCommit)).Draw(t, "step"))
			switch {
			case step == stepPlain:
				log = append(log, built([]kafka.Record{{Value: []byte(value), Offset: offset}}, BuildOptions{})...)
			case step == stepWrite || !inTxn:
				if !inTxn {
					open[producer] = offset
				}
				log = append(log, transactionalBatch(producer, offset, value)...)
			case step == stepAbort:
				aborted = append(aborted, kafka.AbortedTxn{ProducerID: producer, FirstOffset: first})
				log = append(log, markerBatch(producer, offset, ControlAbort)...)
				delete(open, producer)
			default:
				log = append(log, markerBatch(producer, offset, ControlCommit)...)
				delete(open, producer)
			}
			offset++
		}
		shuffled := rapid.Permutation(aborted).Draw(t, "order")

		var filter AbortFilter
		filter.Reset([]kafka.AbortedTxn{{ProducerID: 1, FirstOffset: 0}}) // left over from another answer
		filter.Reset(shuffled)
		kept := []kafka.Record{}
		s := NewScanner(log)
		var b Batch
		for s.Next(&b) {
			if filter.Aborted(&b) {
				continue
			}
			if verdict, _ := Judge(&b, 0, Target{}); verdict == Forward {
				kept = append(kept, mustRecords(t, b.Bytes)...)
			}
		}
		wantSame(t, "what is left", kept, viaKgo(t, log, shuffled...))
	})
}
