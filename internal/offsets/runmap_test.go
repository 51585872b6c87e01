package offsets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliograph/internal/mirror"
)

// copied is a partition as the map should see it: for every source offset the
// target offset of its record, or -1 where it has none to copy.
type copied struct {
	at  []mirror.DownstreamOffset
	end mirror.DownstreamOffset
}

func drawCopied(t *rapid.T) (copied, []Run) {
	var c copied
	var runs []Run
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"records", "marker", "foreign"}).Draw(t, "step") {
		case "records":
			n := rapid.IntRange(1, 5).Draw(t, "count")
			runs = append(runs, Run{mirror.UpstreamOffset(len(c.at)), c.end, int64(n)})
			for range n {
				c.at = append(c.at, c.end)
				c.end++
			}
		case "marker": // an offset of the source that is not copied
			c.at = append(c.at, -1)
		case "foreign": // an offset of the target that is not ours
			c.end++
		}
	}
	return c, runs
}

// want is where a reader at u goes on: at the first record at or after u.
func (c copied) want(u int) (mirror.DownstreamOffset, bool) {
	for ; u < len(c.at); u++ {
		if c.at[u] >= 0 {
			return c.at[u], true
		}
	}
	return c.end, false
}

func TestRunMapIsExactForEverythingCopied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, runs := drawCopied(t)
		m := &RunMap{}
		for _, r := range runs {
			if _, err := m.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		if reload := rapid.Bool().Draw(t, "after a restart"); reload && m.Len() > 0 {
			chunks := map[int64][]Run{}
			for n := m.FirstChunk(); n <= m.LastChunk(); n++ {
				var err error
				if chunks[n], err = DecodeChunk(m.Chunk(n)); err != nil {
					t.Fatal(err)
				}
			}
			m = LoadRuns(chunks, mirror.UpstreamOffset(len(c.at)), c.end)
		}
		for u := range len(c.at) + 1 {
			got := m.Translate(mirror.UpstreamOffset(u), mirror.UpstreamOffset(len(c.at)), c.end)
			want, record := c.want(u)
			switch got.Quality {
			case Exact, Next:
				if got.Offset > want {
					t.Fatalf("source offset %d: %v is ahead of %d", u, got, want)
				}
				if record && u < len(c.at) && c.at[u] >= 0 && got.Offset != want {
					t.Fatalf("source offset %d was copied to %d, the map says %v", u, want, got)
				}
			case Unknown:
				if m.Len() > 0 && mirror.UpstreamOffset(u) >= m.runs[0].Up {
					t.Fatalf("source offset %d: unknown behind the first run", u)
				}
			default:
				t.Fatalf("source offset %d: %v", u, got)
			}
		}
		if ahead := m.Translate(mirror.UpstreamOffset(len(c.at)+7), mirror.UpstreamOffset(len(c.at)), c.end); ahead.Quality != Before || ahead.Offset != c.end {
			t.Fatalf("a reader ahead of the copy: %v, want before %d", ahead, c.end)
		}
	})
}

func TestDenseDataIsOneRun(t *testing.T) {
	m := &RunMap{}
	for i := range int64(1000) {
		started, err := m.Append(Run{mirror.UpstreamOffset(i * 10), mirror.DownstreamOffset(i*10 + 5), 10})
		if err != nil || started != (i == 0) {
			t.Fatalf("batch %d: started %v, %v", i, started, err)
		}
	}
	if m.Len() != 1 {
		t.Fatalf("%d runs", m.Len())
	}
}

func TestRewindIsAnError(t *testing.T) {
	m := &RunMap{}
	_, _ = m.Append(Run{100, 50, 10})
	for _, r := range []Run{{105, 60, 1}, {110, 55, 1}, {0, 0, 1}} {
		if _, err := m.Append(r); err == nil {
			t.Errorf("%v was taken", r)
		}
	}
}

func TestLongMapLetsItsOldestChunksGo(t *testing.T) {
	m := &RunMap{}
	for i := range int64(maxRuns + 10) {
		if _, err := m.Append(Run{mirror.UpstreamOffset(i * 2), mirror.DownstreamOffset(i), 1}); err != nil {
			t.Fatal(err)
		}
	}
	if m.Len() > maxRuns || m.FirstChunk() != 1 || m.LastChunk() != maxRuns/ChunkRuns {
		t.Fatalf("%d runs in chunks %d to %d", m.Len(), m.FirstChunk(), m.LastChunk())
	}
	// Of what was let go anchors are left: exact for themselves, a place further
	// back between them, also after a restart.
	chunks := map[int64][]Run{}
	for n := m.FirstChunk(); n <= m.LastChunk(); n++ {
		chunks[n], _ = DecodeChunk(m.Chunk(n))
	}
	var err error
	if chunks[AnchorsChunk], err = DecodeChunk(m.Anchors()); err != nil {
		t.Fatal(err)
	}
	last := mirror.UpstreamOffset(2*(maxRuns+10) - 1)
	for _, m := range []*RunMap{m, LoadRuns(chunks, last, maxRuns+10)} {
		for u := range mirror.UpstreamOffset(2 * ChunkRuns) {
			got := m.Translate(u, last, maxRuns+10)
			want := Translation{mirror.DownstreamOffset(u / 2 / anchorEvery * anchorEvery), Exact}
			if u%(2*anchorEvery) != 0 {
				want = Translation{want.Offset + 1, Before}
			}
			if got != want {
				t.Fatalf("source offset %d: %v, want %v", u, got, want)
			}
			up, down, ok := m.Known(u)
			if u > 0 && (!ok || up >= u || up != 2*mirror.UpstreamOffset(down) || u-up > 2*anchorEvery) {
				t.Fatalf("source offset %d: the last known record is %d at %d (%v)", u, up, down, ok)
			}
		}
	}
}

// A crash between the map and the position leaves runs ahead of the position.
func TestLoadLeavesOutRunsAheadOfThePosition(t *testing.T) {
	m := LoadRuns(map[int64][]Run{0: {{0, 0, 10}, {11, 10, 10}, {22, 20, 10}}}, 15, 14)
	if d := cmp.Diff([]Run{{0, 0, 10}, {11, 10, 4}}, m.runs); d != "" {
		t.Fatal(d)
	}
}

// Anchors are bounded, and the very first run stays among them.
func TestAnchorsThinOut(t *testing.T) {
	m := &RunMap{}
	for i := range int64(86_400 * 2) {
		if _, err := m.Append(Run{mirror.UpstreamOffset(i*12 + 3), mirror.DownstreamOffset(i * 11), 10}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.anchors); n > maxAnchors || n < maxAnchors/2 {
		t.Errorf("%d anchors", n)
	}
	if size := len(m.Anchors()); size > 32<<10 {
		t.Errorf("the anchors take %d bytes", size)
	}
	for u, want := range map[mirror.UpstreamOffset]Translation{0: {0, Next}, 3: {0, Exact}, 12: {9, Exact}, 13: {10, Before}} {
		if got := m.Translate(u, 1<<40, 1<<40); got != want {
			t.Errorf("source offset %d: %v, want %v", u, got, want)
		}
	}
}

func FuzzChunk(f *testing.F) {
	m := &RunMap{}
	_, _ = m.Append(Run{5, 7, 3})
	_, _ = m.Append(Run{9, 10, 300})
	f.Add(m.Chunk(0))
	f.Fuzz(func(t *testing.T, value []byte) {
		runs, err := DecodeChunk(value)
		if err != nil {
			return
		}
		for i := 1; i < len(runs); i++ {
			if runs[i].Up < runs[i-1].End() || runs[i].Down < runs[i-1].DownEnd() {
				t.Fatalf("runs %v and %v overlap", runs[i-1], runs[i])
			}
		}
	})
}
