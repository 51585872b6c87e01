package verify

import (
	"cmp"
	"encoding/binary"
	"slices"

	"heliograph/internal/kafka"
)

// maxKeys bounds the keys that are held at once, to about 100 MB. A partition
// with more is read several times, each time for another part of its keys.
const maxKeys = 1 << 19

// A share is a part of all keys: those whose digests begin with the given bits.
type share struct{ bits, prefix uint32 }

// has reports whether a key is in the share.
func (s share) has(key Digest) bool {
	return s.bits == 0 || binary.BigEndian.Uint32(key[:])>>(32-s.bits) == s.prefix
}

// halves splits the share.
func (s share) halves() (a, b share) {
	return share{s.bits + 1, s.prefix << 1}, share{s.bits + 1, s.prefix<<1 | 1}
}

// A value is the last record of a key on one side.
type value struct {
	item      Item // its digest is of value and headers
	there     bool
	tombstone bool
}

// live reports that the key has a value.
func (v *value) live() bool { return v.there && !v.tombstone }

// A keyed is what both sides last said of a key.
type keyed struct {
	source, target value
	// later is the target offset whose record is also a source record behind the
	// fixed end: the target has merely read on.
	later int64
}

// agrees reports that both sides say the same. A tombstone says as much as
// nothing, because compaction takes it away some time.
func (k *keyed) agrees() bool {
	switch {
	case k.target.there && k.later == k.target.item.Offset:
		return true
	case !k.source.live() || !k.target.live():
		return k.source.live() == k.target.live()
	}
	return same(&k.source.item, &k.target.item)
}

// latest is the last values of a share of the keys.
//
// Invariant: it holds at most limit keys; the shares of keys that it gave up for
// that are in rest.
type latest struct {
	share share
	rest  []share
	keys  map[Digest]keyed
	limit int
	hash  hasher
}

func newLatest(s share, limit int) *latest {
	return &latest{share: s, keys: map[Digest]keyed{}, limit: limit}
}

// put takes a record of either side, in the order of its log.
func (l *latest) put(r *kafka.Record, target, stamped bool) {
	key := l.hash.key(r)
	if !l.share.has(key) {
		return
	}
	k, ok := l.keys[key]
	if !ok {
		k.later = noOffset
	}
	v := value{there: true, tombstone: r.Value == nil, item: Item{Digest: l.hash.value(r), Time: r.Timestamp, Offset: r.Offset, Stamped: stamped}}
	if target {
		k.target = v
	} else {
		k.source = v
	}
	l.keys[key] = k
	for len(l.keys) > l.limit && l.share.bits < 32 {
		l.split()
	}
}

// split gives up one half of the share for a later pass.
func (l *latest) split() {
	kept, given := l.share.halves()
	l.share = kept
	l.rest = append(l.rest, given)
	for key := range l.keys {
		if !kept.has(key) {
			delete(l.keys, key)
		}
	}
}

// putLater takes a source record from behind the fixed end.
func (l *latest) putLater(r *kafka.Record) {
	key := l.hash.key(r)
	k, ok := l.keys[key]
	if !ok || !k.target.there {
		return
	}
	it := Item{Digest: l.hash.value(r), Time: r.Timestamp, Offset: r.Offset}
	if same(&it, &k.target.item) {
		k.later = k.target.item.Offset
		l.keys[key] = k
	}
}

// settled reports that both sides agree on every key.
func (l *latest) settled() bool {
	for key := range l.keys {
		if k := l.keys[key]; !k.agrees() {
			return false
		}
	}
	return true
}

// unheld says which side may have lost a key's last value to retention.
type unheld struct{ source, target bool }

// tally counts what the keys of this share say, into t.
func (l *latest) tally(t *Tally, lost unheld) {
	var found []Difference
	for key := range l.keys {
		k := l.keys[key]
		if k.agrees() {
			if k.target.live() || k.source.live() {
				t.Equal++
				if k.source.there && !timed(&k.source.item, &k.target.item) {
					t.Untimed++
				}
			}
			continue
		}
		d := Difference{Kind: Changed, SourceOffset: noOffset, TargetOffset: noOffset, Producer: noOffset, Original: noOffset}
		if k.source.there {
			d.SourceOffset, d.SourceRecords = k.source.item.Offset, 1
		}
		if k.target.there {
			d.TargetOffset, d.TargetRecords = k.target.item.Offset, 1
		}
		switch {
		case !k.target.there && lost.target, !k.source.there && lost.source:
			continue
		case !k.target.there:
			d.Kind = Missing
			t.Missing++
		case !k.source.there:
			d.Kind = Extra
			t.Extra++
		default:
			t.Changed++
		}
		found = append(found, d)
		if len(found) >= 4*maxListed {
			found = first(found)
		}
	}
	t.Listed = first(append(t.Listed, found...))
}

// first keeps the differences that come first.
func first(list []Difference) []Difference {
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(uint64(a.SourceOffset), uint64(b.SourceOffset)), cmp.Compare(a.TargetOffset, b.TargetOffset))
	})
	return list[:min(len(list), maxListed)]
}
