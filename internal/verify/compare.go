package verify

import (
	"context"
	"math"
)

const (
	// maxListed bounds the differences of a partition that are told one by one.
	maxListed = 100
	// remembered is how many passed records an extra one is compared with, to tell
	// that it is a duplicate.
	remembered = 1 << 14
	// lookAhead is the most records that are held per log while two logs disagree.
	lookAhead = 1 << 18
	// firstAhead is where the look ahead begins; it grows by aheadFactor.
	firstAhead  = 16
	aheadFactor = 16
)

// Tally is what a comparison found.
type Tally struct {
	Equal      int64 // records, or keys, that have their equal
	Untimed    int64 // among them, those whose times could not be compared
	Missing    int64
	Extra      int64 // under the flow's own producers
	Duplicates int64
	Foreign    int64
	Changed    int64
	Reordered  int64
	// Listed are the first differences, in order.
	Listed []Difference
	// Apart says that the logs did not meet again within lookAhead records, and
	// that nothing behind the last difference was compared.
	Apart bool
}

// Different reports whether there is any difference.
func (t *Tally) Different() bool { return t.total() > 0 }

func (t *Tally) total() int64 {
	return t.Missing + t.Extra + t.Duplicates + t.Foreign + t.Changed + t.Reordered
}

// A comparison walks two logs in step from a start on.
//
// Invariant: what was passed on both sides is accounted for in the tally.
type comparison struct {
	source, target *queue
	// demanded is the offset up to which the target must hold the source's records.
	demanded int64

	tally  Tally
	digest *rolling
	ours   map[int64]bool  // producer ids of target records that have their equal
	others map[int64]int64 // extra target records by producer id
	last   int64           // the producer noted last, to spare the map

	memory []Item // a ring of passed source items
	passed int64
}

func newComparison(source, target feed, demanded int64) *comparison {
	return &comparison{
		source: &queue{feed: source}, target: &queue{feed: target}, demanded: demanded,
		digest: newRolling(), ours: map[int64]bool{}, others: map[int64]int64{}, last: math.MinInt64,
	}
}

// run compares to the end.
func (c *comparison) run(ctx context.Context) error {
	for done := false; !done && !c.tally.Apart; {
		if err := c.source.fill(ctx, 1); err != nil {
			return err
		}
		if err := c.target.fill(ctx, 1); err != nil {
			return err
		}
		a, b := c.source.view(), c.target.view()
		var err error
		switch {
		case len(a) > 0 && len(b) > 0:
			if n := equalRun(a, b, len(a)); n > 0 {
				c.pass(a[:n], b[:n])
				continue
			}
			err = c.differ(ctx)
		case len(a) > 0:
			done, err = c.targetOver(ctx, a[0].Offset)
		case len(b) > 0:
			done, err = c.sourceOver(ctx)
		default:
			done = true
		}
		if err != nil {
			return err
		}
	}
	c.settle()
	return nil
}

// pass accounts for equal records.
func (c *comparison) pass(a, b []Item) {
	for i := range a {
		c.digest.add(&a[i])
		if !timed(&a[i], &b[i]) {
			c.tally.Untimed++
		}
		if p := b[i].Producer; p != c.last {
			c.ours[p], c.last = true, p
		}
		c.remember(&a[i])
	}
	c.tally.Equal += int64(len(a))
	c.source.pass(len(a))
	c.target.pass(len(b))
}

func (c *comparison) remember(it *Item) {
	if len(c.memory) < remembered {
		c.memory = append(c.memory, *it)
	} else {
		c.memory[c.passed%remembered] = *it
	}
	c.passed++
}

// original finds the passed source record that b repeats.
func (c *comparison) original(b *Item) (offset int64, ok bool) {
	offset = noOffset
	for i := range c.memory {
		if m := &c.memory[i]; m.Offset > offset && same(m, b) {
			offset, ok = m.Offset, true
		}
	}
	return offset, ok
}

// targetOver is called when the source has a record at offset and the target
// none. It reports whether that is the end.
func (c *comparison) targetOver(ctx context.Context, offset int64) (done bool, err error) {
	if offset >= c.demanded {
		return true, nil // newer than what was asked for
	}
	if grew, err := c.target.revive(ctx); grew || err != nil {
		return false, err
	}
	d := Difference{Kind: Missing, SourceOffset: offset, TargetOffset: noOffset, Producer: noOffset, Original: noOffset}
	for a := c.source.view(); len(a) > 0; a = c.source.view() {
		for i := range a {
			if a[i].Offset >= c.demanded {
				c.note(d)
				return true, nil
			}
			d.SourceRecords++
		}
		c.source.pass(len(a))
		if err := c.source.fill(ctx, 1); err != nil {
			return false, err
		}
	}
	c.note(d)
	return true, nil
}

// sourceOver is called when the target has a record and the source none. Where
// the source has not grown meanwhile, the rest of the target is too much.
func (c *comparison) sourceOver(ctx context.Context) (done bool, err error) {
	if grew, err := c.source.revive(ctx); grew || err != nil {
		return false, err
	}
	for b := c.target.view(); len(b) > 0; b = c.target.view() {
		c.noteExtra(b, noOffset)
		c.target.pass(len(b))
		if err := c.target.fill(ctx, 1); err != nil {
			return false, err
		}
	}
	return true, nil
}

// differ is called where the next records of both logs are not equal. It looks
// ahead for the place where the logs meet again and accounts for what lies before.
func (c *comparison) differ(ctx context.Context) error {
	for n := firstAhead; ; n *= aheadFactor {
		n = min(n, lookAhead)
		if err := c.lookAhead(ctx, n); err != nil {
			return err
		}
		a, aOver := c.source.ahead(n)
		b, bOver := c.target.ahead(n)
		last := n == lookAhead || aOver && bOver
		i, j, ok := meet(a, b, aOver, bOver, false)
		if !ok && last {
			i, j, ok = meet(a, b, aOver, bOver, true)
		}
		if !ok && last {
			i, j, c.tally.Apart = len(a), len(b), true
		}
		if ok || last {
			c.stretch(a[:i], b[:j], next(a, i), next(b, j))
			c.source.pass(i)
			c.target.pass(j)
			return nil
		}
	}
}

// lookAhead brings up to n records of both logs into view. Behind the fixed end
// the source goes on as far as it has grown.
func (c *comparison) lookAhead(ctx context.Context, n int) error {
	if err := c.target.fill(ctx, n); err != nil {
		return err
	}
	if err := c.source.fill(ctx, n); err != nil {
		return err
	}
	if len(c.source.view()) >= n {
		return nil
	}
	if grew, err := c.source.revive(ctx); !grew || err != nil {
		return err
	}
	return c.source.fill(ctx, n)
}

// next is the offset of the item at i, or that of the log's end.
func next(items []Item, i int) int64 {
	if i < len(items) {
		return items[i].Offset
	}
	return noOffset
}

// stretch accounts for a source records against b target records between two
// places where the logs agree; afterA and afterB are the offsets behind them.
func (c *comparison) stretch(a, b []Item, afterA, afterB int64) {
	demanded := 0
	for demanded < len(a) && a[demanded].Offset < c.demanded {
		demanded++
	}
	if len(b) == 0 || demanded == len(a) {
		a = a[:demanded]
	}
	d := Difference{
		SourceOffset: afterA, TargetOffset: afterB, Producer: noOffset, Original: noOffset,
		SourceRecords: int64(len(a)), TargetRecords: int64(len(b)),
	}
	if len(a) > 0 {
		d.SourceOffset = a[0].Offset
	}
	if len(b) > 0 {
		d.TargetOffset, d.Producer = b[0].Offset, b[0].Producer
	}
	switch {
	case len(a) == 0 && len(b) == 0:
	case len(b) == 0:
		d.Kind = Missing
		c.note(d)
	case len(a) == 0:
		c.noteExtra(b, afterA)
	case permuted(a, b):
		d.Kind = Reordered
		c.note(d)
	default:
		c.noteChanged(d, a, b, afterA)
	}
}

// noteChanged pairs the records of both sides as far as they go; what one side
// has beyond is missing or extra.
func (c *comparison) noteChanged(d Difference, a, b []Item, afterA int64) {
	n := min(len(a), len(b))
	d.Kind, d.SourceRecords, d.TargetRecords = Changed, int64(n), int64(n)
	c.note(d)
	if len(a) > n {
		c.note(Difference{
			Kind: Missing, SourceOffset: a[n].Offset, TargetOffset: b[n-1].Offset + 1,
			SourceRecords: int64(len(a) - n), Producer: noOffset, Original: noOffset,
		})
	}
	if len(b) > n {
		c.noteExtra(b[n:], afterA)
	}
}

// permuted reports that b has the records of a in another order.
func permuted(a, b []Item) bool {
	if len(a) != len(b) {
		return false
	}
	counts := make(map[Digest]int, len(a))
	for i := range a {
		counts[a[i].Digest]++
		counts[b[i].Digest]--
	}
	for _, n := range counts {
		if n != 0 {
			return false
		}
	}
	// The same contents at the same places differ in their times alone.
	for i := range a {
		if a[i].Digest != b[i].Digest {
			return true
		}
	}
	return false
}

// noteExtra accounts for target records that the source lacks where the source
// has offset at next, as duplicates if the first one repeats a record.
func (c *comparison) noteExtra(b []Item, at int64) {
	d := Difference{
		Kind: Extra, SourceOffset: at, TargetOffset: b[0].Offset, TargetRecords: int64(len(b)),
		Producer: b[0].Producer, Original: noOffset,
	}
	if len(c.tally.Listed) < maxListed {
		if original, ok := c.original(&b[0]); ok {
			d.Kind, d.Original = Duplicate, original
		}
	}
	if d.Kind == Extra {
		for i := range b {
			c.others[b[i].Producer]++
		}
	}
	c.note(d)
}

// note counts a difference, and lists it if it is among the first or goes on
// where the one before ended.
func (c *comparison) note(d Difference) {
	t := &c.tally
	switch d.Kind {
	case Missing:
		t.Missing += d.SourceRecords
	case Extra, Foreign:
		t.Extra += d.TargetRecords // settle tells them apart
	case Duplicate:
		t.Duplicates += d.TargetRecords
	case Changed:
		t.Changed += d.SourceRecords
	case Reordered:
		t.Reordered += d.SourceRecords
	}
	if n := len(t.Listed); n > 0 {
		if l := &t.Listed[n-1]; d.Kind == Extra && l.Kind == d.Kind && l.SourceOffset == d.SourceOffset && l.Producer == d.Producer {
			l.TargetRecords += d.TargetRecords
			return
		}
	}
	if len(t.Listed) < maxListed {
		t.Listed = append(t.Listed, d)
	}
}

// settle tells foreign records apart from other extra ones, once all producers
// whose records were copied are known.
func (c *comparison) settle() {
	t := &c.tally
	if len(c.ours) == 0 {
		return
	}
	for id, n := range c.others {
		if !c.ours[id] {
			t.Extra -= n
			t.Foreign += n
		}
	}
	for i := range t.Listed {
		if d := &t.Listed[i]; d.Kind == Extra && !c.ours[d.Producer] {
			d.Kind = Foreign
		}
	}
}
