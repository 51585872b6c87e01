package coord

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/replicate"
)

// crash is a last owner that wrote some records behind its last position and
// died, with others writing between.
type crash struct {
	contents []string // of the source
	position int      // of the last position, as a number of records
	batches  []int    // sizes of what was written behind it
	foreign  []int    // how many records others wrote before each of these
	lease    bool     // the target gives no transactional ids
}

func drawCrash(t *rapid.T) crash {
	c := crash{lease: rapid.Bool().Draw(t, "lease")}
	c.contents = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 40).Draw(t, "contents")
	c.position = rapid.IntRange(0, len(c.contents)).Draw(t, "position")
	for left := len(c.contents) - c.position; left > 0 && rapid.IntRange(0, 3).Draw(t, "more") > 0; {
		n := rapid.IntRange(1, left).Draw(t, "batch")
		c.batches, left = append(c.batches, n), left-n
		c.foreign = append(c.foreign, rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "foreign"))
	}
	return c
}

// replay lets the owner die and a new one take over, and tells how many records
// the new one wrote and what a reader of ours finds on the target.
func (c crash) replay() (copied int64, target string) {
	r := newRig()
	if c.lease {
		r.target.denied = errDenied
	}
	source := records(0, c.contents...)
	r.fill(source)
	if c.position > 0 {
		r.target.write(copies, before, source[:c.position]...)
	}
	r.stand(r.lane(), positionAt(orders, int64(c.position), r.facts(int64(c.position), false)))
	at := c.position
	for i, n := range c.batches {
		if c.foreign[i] > 0 {
			r.target.write(copies, foreign, records(0, slices.Repeat([]string{"x"}, c.foreign[i])...)...)
		}
		r.target.write(copies, before, source[at:at+n]...)
		at += n
	}
	r.takeOver()
	s := r.settle()
	r.close()
	ours := slices.DeleteFunc(r.target.data(copies), func(r kafka.Record) bool { return string(r.Value) == "x" })
	return s.Records, values(ours)
}

func TestThePlaceFoundIsWhereTheLastOwnerDied(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCrash(rt)
		written := c.position
		for _, n := range c.batches {
			written += n
		}
		var copied int64
		var target string
		synctest.Test(t, func(*testing.T) { copied, target = c.replay() })
		if want := int64(len(c.contents) - written); copied != want {
			rt.Errorf("%d records copied, want %d", copied, want)
		}
		if want := strings.Join(c.contents, " "); target != want {
			rt.Errorf("the copy holds %q, want %q", target, want)
		}
	})
}

// javaCrash is Java MirrorMaker, killed: its position is old, it may have begun
// again before and copied records twice, and records repeat.
type javaCrash struct {
	contents []string
	first    int // how many records its first life copied
	again    int // where its second life began
	written  int // where that ended
	position int
	sync     int // the record of the newest offset sync
}

func drawJavaCrash(t *rapid.T) javaCrash {
	c := javaCrash{contents: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 40).Draw(t, "contents")}
	c.first = rapid.IntRange(1, len(c.contents)).Draw(t, "first")
	c.again = rapid.IntRange(0, c.first).Draw(t, "again")
	c.written = rapid.IntRange(c.again, len(c.contents)).Draw(t, "written")
	c.position = rapid.IntRange(max(c.again, 1), max(c.written, 1)).Draw(t, "position")
	if c.written > c.again {
		c.sync = rapid.IntRange(c.again, c.written-1).Draw(t, "sync")
	} else {
		c.sync = rapid.IntRange(0, c.first-1).Draw(t, "sync")
	}
	return c
}

// want is the copy in the end: what MirrorMaker doubled stays doubled.
func (c javaCrash) want() []string {
	return append(slices.Clone(c.contents[:c.first]), c.contents[c.again:c.written]...)
}

// rest is what is left to copy.
func (c javaCrash) rest() []string {
	if c.written == c.again {
		return c.contents[c.first:]
	}
	return c.contents[c.written:]
}

func (c javaCrash) replay() (s replicate.TrackStatus, target string) {
	r := newRig()
	source := records(0, c.contents...)
	r.fill(source)
	r.target.write(copies, before, source[:c.first]...)
	if c.written > c.again {
		r.target.write(copies, before, source[c.again:c.written]...)
		r.sync(mirror.UpstreamOffset(c.sync), mirror.DownstreamOffset(c.first+c.sync-c.again))
	} else {
		r.sync(mirror.UpstreamOffset(c.sync), mirror.DownstreamOffset(c.sync))
	}
	r.stand(r.lane(), positionAt(orders, int64(c.position), nil))
	r.takeOver()
	s = r.settle()
	r.close()
	return s, values(r.target.data(copies))
}

// An offset sync of MirrorMaker's last life tells where a record lies. From there
// on nothing is copied once more and nothing left out.
func TestThePlaceFoundIsWhereMirrorMakerDied(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawJavaCrash(rt)
		var s replicate.TrackStatus
		var target string
		synctest.Test(t, func(*testing.T) { s, target = c.replay() })
		if s.State != replicate.TrackRunning || s.Records != int64(len(c.rest())) {
			rt.Errorf("%s (%s), %d records copied, want %d", s.State, s.Reason, s.Records, len(c.rest()))
		}
		if want := strings.Join(append(c.want(), c.rest()...), " "); target != want {
			rt.Errorf("the copy holds %q, want %q", target, want)
		}
	})
}
