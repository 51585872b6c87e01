package verify

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

// write is one record of a compacted topic.
type write struct{ key, value int } // a value of 0 is a tombstone

func (w write) record(offset int) *kafka.Record {
	r := &kafka.Record{Key: fmt.Appendf(nil, "key-%d", w.key), Offset: int64(offset), Timestamp: 1}
	if w.value > 0 {
		r.Value = fmt.Appendf(nil, "value-%d", w.value)
	}
	return r
}

// tallyOf runs all passes over two logs.
func tallyOf(source, target []write, limit int) (Tally, int) {
	var tally Tally
	passes := 0
	for todo := []share{{}}; len(todo) > 0; passes++ {
		l := newLatest(todo[0], limit)
		for i, w := range source {
			l.put(w.record(i), false, false)
		}
		for i, w := range target {
			l.put(w.record(i), true, false)
		}
		todo = append(l.rest, todo[1:]...)
		l.tally(&tally, unheld{})
	}
	return tally, passes
}

// Whatever compaction has taken from either side, the last values decide, and in
// however many passes they are compared, the answer is that of plain maps.
func TestLastValuesDecide(t *testing.T) {
	writes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) write {
		return write{rapid.IntRange(0, 20).Draw(t, "key"), rapid.IntRange(0, 3).Draw(t, "value")}
	}), 0, 200)
	rapid.Check(t, func(t *rapid.T) {
		source, target := writes.Draw(t, "source"), writes.Draw(t, "target")
		if rapid.Bool().Draw(t, "copy") {
			target = source
		}
		tally, _ := tallyOf(source, target, rapid.IntRange(1, 30).Draw(t, "limit"))
		model := func(ws []write) map[int]int {
			m := map[int]int{}
			for _, w := range ws {
				m[w.key] = w.value
			}
			return m
		}
		a, b := model(source), model(target)
		var equal, different int64
		for key := range 21 {
			switch {
			case a[key] != b[key]:
				different++
			case a[key] != 0:
				equal++
			}
		}
		if tally.Equal != equal || tally.total() != different {
			t.Fatalf("%+v, want %d equal and %d different keys", tally, equal, different)
		}
	})
}

func TestManyKeysTakeSeveralPasses(t *testing.T) {
	var log []write
	for i := range 1000 {
		log = append(log, write{i, 1})
	}
	tally, passes := tallyOf(log, log, 100)
	if tally.Equal != 1000 || tally.Different() {
		t.Fatalf("%+v", tally)
	}
	if passes < 10 || passes > 40 {
		t.Fatalf("%d passes for 1000 keys, 100 at a time", passes)
	}
}

// A key that the target has newer than the fixed end of the source is no
// difference if the source has that record too.
func TestKeysReadOnBehindTheFixedEndAgree(t *testing.T) {
	l := newLatest(share{}, 10)
	l.put(write{1, 1}.record(0), false, false)
	l.put(write{1, 2}.record(0), true, false)
	if l.settled() {
		t.Fatal("two values of a key are settled")
	}
	l.putLater(write{1, 3}.record(1))
	if l.settled() {
		t.Fatal("a later value that the target does not have settled the key")
	}
	l.putLater(write{1, 2}.record(2))
	if !l.settled() {
		t.Fatal("the later value did not settle the key")
	}
	l.put(write{1, 9}.record(1), true, false)
	if l.settled() {
		t.Fatal("the target's next value counts as settled")
	}
}
