package verify

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// list is a feed of items that are there from the beginning, in blocks of any size.
type list struct {
	items []Item
	block int
	later []Item // what more finds
}

func (l *list) next(context.Context) ([]Item, error) {
	n := min(max(l.block, 1), len(l.items))
	block := slices.Clone(l.items[:n]) // it is the caller's
	l.items = l.items[n:]
	if n == 0 {
		return nil, nil
	}
	return block, nil
}

func (l *list) more(context.Context) (bool, error) {
	l.items, l.later = l.later, nil
	return len(l.items) > 0, nil
}

// item is a record that content tells apart, at an offset.
func item(content, offset int) Item {
	var d Digest
	d[0], d[1], d[2], d[3] = byte(content), byte(content>>8), byte(content>>16), 1
	return Item{Digest: d, Time: int64(content), Offset: int64(offset), Producer: 7}
}

// sourceLog is n records at offsets that have holes, as transactions leave them.
func sourceLog(n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = item(i, 100+i+i/10)
	}
	return items
}

// copyOf is the log as it lies on a target: dense, from another offset on.
func copyOf(items []Item) []Item {
	out := make([]Item, len(items))
	for i := range items {
		out[i] = items[i]
		out[i].Offset = int64(i)
	}
	return out
}

func compare(t rapidOrT, a, b []Item, block int) *Tally {
	c := newComparison(&list{items: a, block: block}, &list{items: b, block: block + 1}, math.MaxInt64)
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return &c.tally
}

type rapidOrT interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func TestLogsWithTheSameRecordsAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sourceLog(rapid.IntRange(0, 300).Draw(t, "records"))
		tally := compare(t, a, copyOf(a), rapid.IntRange(1, 50).Draw(t, "block"))
		if tally.Different() || tally.Equal != int64(len(a)) {
			t.Fatalf("%+v", tally)
		}
	})
}

// One tampered record, wherever it lies, is found, named and placed exactly, and
// everything else still has its equal.
func TestOneTamperedRecordIsPlacedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 400).Draw(t, "records")
		a := sourceLog(n)
		at := rapid.IntRange(0, n-1).Draw(t, "at")
		b := copyOf(a)
		offset := func(items []Item, i int) int64 {
			if i < len(items) {
				return items[i].Offset
			}
			return noOffset
		}
		want := Difference{Producer: noOffset, Original: noOffset, SourceOffset: offset(a, at)}
		equal := n - 1
		switch tamper := rapid.SampledFrom([]string{"mutate", "time", "delete", "duplicate", "insert", "swap"}).Draw(t, "tamper"); tamper {
		case "mutate", "time":
			if b[at].Time++; tamper == "mutate" {
				b[at] = item(1<<20, at)
			}
			want.Kind, want.SourceRecords, want.TargetRecords, want.Producer = Changed, 1, 1, 7
			want.TargetOffset = int64(at)
		case "delete":
			b = append(b[:at:at], b[at+1:]...)
			want.Kind, want.SourceRecords, want.TargetOffset = Missing, 1, offset(b, at)
		case "duplicate":
			b = copyOf(append(append(append([]Item{}, b[:at+1]...), b[at]), b[at+1:]...))
			want.Kind, want.TargetRecords, want.Producer, equal = Duplicate, 1, 7, n
			want.SourceOffset, want.TargetOffset, want.Original = offset(a, at+1), int64(at+1), offset(a, at)
		case "insert":
			b = append(append(append([]Item{}, b[:at]...), item(1<<20, 0)), b[at:]...)
			b[at].Producer = 99
			b = copyOf(b)
			want.Kind, want.TargetRecords, want.Producer, equal = Foreign, 1, 99, n
			want.TargetOffset = int64(at)
		case "swap":
			at = min(at, n-2)
			b[at], b[at+1] = b[at+1], b[at]
			b = copyOf(b)
			want.Kind, want.SourceRecords, want.TargetRecords, want.Producer = Reordered, 2, 2, 7
			want.SourceOffset, want.TargetOffset, equal = offset(a, at), int64(at), n-2
		}
		tally := compare(t, a, b, rapid.IntRange(1, 64).Draw(t, "block"))
		if len(tally.Listed) != 1 || tally.Equal != int64(equal) || tally.Apart {
			t.Fatalf("tally %+v, want one difference and %d equal", tally, equal)
		}
		got := tally.Listed[0]
		if got.Kind != want.Kind || got.SourceOffset != want.SourceOffset || got.TargetOffset != want.TargetOffset ||
			got.SourceRecords != want.SourceRecords || got.TargetRecords != want.TargetRecords ||
			got.Producer != want.Producer || got.Original != want.Original {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Records that repeat must not make different logs look the same, nor lose count.
func TestRepeatingRecordsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		contents := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 120)
		build := func(cs []int) []Item {
			items := make([]Item, len(cs))
			for i, c := range cs {
				items[i] = item(c, i)
			}
			return items
		}
		x, y := contents.Draw(t, "source"), contents.Draw(t, "target")
		a, b := build(x), build(y)
		tally := compare(t, a, b, 7)
		equal := len(x) == len(y) && equalRun(a, b, len(a)) == len(a)
		if equal == tally.Different() {
			t.Fatalf("equal is %v, tally %+v", equal, tally)
		}
		targets := tally.Equal + tally.Extra + tally.Foreign + tally.Duplicates + tally.Changed + tally.Reordered
		sources := tally.Equal + tally.Missing + tally.Changed + tally.Reordered
		if sources != int64(len(a)) || targets != int64(len(b)) {
			t.Fatalf("accounts for %d of %d source and %d of %d target records: %+v", sources, len(a), targets, len(b), tally)
		}
	})
}

func TestLargeGapsAreBridged(t *testing.T) {
	a := sourceLog(60_000)
	b := copyOf(append(append([]Item{}, a[:1000]...), a[51_000:]...))
	tally := compare(t, a, b, 4096)
	if len(tally.Listed) != 1 || tally.Missing != 50_000 || tally.Equal != 10_000 || tally.Listed[0].SourceOffset != a[1000].Offset {
		t.Fatalf("%+v", tally)
	}
}

func TestLogsThatNeverMeetAgainSaySo(t *testing.T) {
	a := sourceLog(10 + lookAhead + 10)
	b := copyOf(a)
	for i := 10; i < len(b); i++ {
		b[i].Digest[5] = 1
	}
	tally := compare(t, a, b, 1<<16)
	if !tally.Apart || !tally.Different() || tally.Equal != 10 || tally.Listed[0].TargetOffset != 10 {
		t.Fatalf("%+v", tally)
	}
}

// What the target has of the time after the fixed end is not too much, and what
// the source has got since is not demanded.
func TestRecordsBehindTheFixedEndCountForTheTargetOnly(t *testing.T) {
	all := sourceLog(50)
	for _, held := range []int{30, 37, 50} {
		c := newComparison(&list{items: all[:30], later: all[30:], block: 8}, &list{items: copyOf(all[:held]), block: 8}, all[29].Offset+1)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.tally.Different() || c.tally.Equal != int64(held) {
			t.Fatalf("target with %d records: %+v", held, c.tally)
		}
	}
	short := newComparison(&list{items: all[:30], later: all[30:], block: 8}, &list{items: copyOf(all[:28]), block: 8}, all[29].Offset+1)
	if err := short.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if short.tally.Missing != 2 || short.tally.Listed[0].SourceOffset != all[28].Offset || short.tally.Listed[0].TargetOffset != noOffset {
		t.Fatalf("%+v", short.tally)
	}
}

func TestTimesOfTheTargetItselfAreNotCompared(t *testing.T) {
	a := sourceLog(20)
	b := copyOf(a)
	for i := range b {
		b[i].Time, b[i].Stamped = 5, true
	}
	if tally := compare(t, a, b, 3); tally.Different() || tally.Untimed != 20 {
		t.Fatalf("%+v", tally)
	}
}

// The finder finds the place of a log's head in another log wherever it lies,
// even with a record of the head tampered with.
func TestHeadIsFoundInAnotherLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sourceLog(rapid.IntRange(40, 400).Draw(t, "records"))
		start := rapid.IntRange(0, len(a)-35).Draw(t, "start")
		b := copyOf(a[start:])
		tampered := rapid.IntRange(-1, 15).Draw(t, "tampered")
		if tampered >= 0 {
			b[tampered].Digest[9] = 1
		}
		f := newFinder(b[:min(len(b), needleLength*needleCount)])
		for i := range a {
			if h, ok := f.push(a[i]); ok {
				if h.haystack != a[start].Offset || h.skipped != start || h.needles != 0 || h.lacking != 0 {
					t.Fatalf("%+v, want source offset %d", h, a[start].Offset)
				}
				return
			}
		}
		t.Fatalf("not found")
	})
}

func TestHeadlessHaystackIsPlacedInTheNeedles(t *testing.T) {
	a := sourceLog(100)
	f := newFinder(a) // the haystack begins in the middle of the second needle
	b := copyOf(a[20:])
	for i := range b {
		if h, ok := f.push(b[i]); ok {
			if h.haystack != 0 || h.needles != a[20].Offset || h.lacking != 20 {
				t.Fatalf("%+v", h)
			}
			return
		}
	}
	t.Fatal("not found")
}

func FuzzMeet(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{2, 3}, true, true, false)
	f.Add([]byte{1, 1, 1, 1}, []byte{1}, false, true, true)
	f.Fuzz(func(t *testing.T, x, y []byte, aOver, bOver, loose bool) {
		build := func(cs []byte) []Item {
			items := make([]Item, len(cs))
			for i, c := range cs {
				items[i] = item(int(c), i)
			}
			return items
		}
		a, b := build(x), build(y)
		i, j, ok := meet(a, b, aOver, bOver, loose)
		if !ok {
			return
		}
		if i < 0 || j < 0 || i > len(a) || j > len(b) {
			t.Fatalf("meet at %d of %d, %d of %d", i, len(a), j, len(b))
		}
		if i < len(a) && j < len(b) && !same(&a[i], &b[j]) {
			t.Fatalf("they do not agree at %d, %d", i, j)
		}
	})
}
