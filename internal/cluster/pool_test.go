package cluster

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
)

func TestBlocksFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<30).Draw(t, "n")
		size := blockSize(n)
		switch {
		case size < n:
			t.Fatalf("%d bytes in a block of %d", n, size)
		case n > 1<<minBlockBits && size > n+n/stepsPerDoubling:
			t.Fatalf("%d bytes waste %d", n, size-n)
		}
	})
}

// TestBlocksAreFewWhateverSizesAreAskedFor holds what the pool makes and keeps
// against a program that has a few answers at a time.
func TestBlocksAreFewWhateverSizesAreAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPool(nil)
		blocks := map[*kafka.Buffer]bool{} // ever made
		var held []*kafka.Buffer
		for range 200 {
			n := rapid.IntRange(4<<20, 8<<20).Draw(t, "n")
			buf, err := p.get(t.Context(), n)
			if err != nil || len(buf.Bytes()) != n {
				t.Fatalf("%d bytes: got %d, %v", n, len(buf.Bytes()), err)
			}
			for _, other := range held {
				if other == buf {
					t.Fatal("one block was given to two")
				}
			}
			blocks[buf] = true
			if held = append(held, buf); len(held) > 3 {
				held[0].Release()
				held = held[1:]
			}
			if p.bytes > max(maxFree, p.used/2) || len(p.free) > maxBlocks {
				t.Fatalf("%d bytes in %d blocks lie free", p.bytes, len(p.free))
			}
		}
		// Four are in use at a time; a size step more or less makes a few others.
		if len(blocks) > 16 {
			t.Fatalf("%d blocks for 4 at a time", len(blocks))
		}
	})
}

func TestClosedPoolKeepsNothing(t *testing.T) {
	p := newPool(nil)
	held, _ := p.get(t.Context(), 1<<20)
	free, _ := p.get(t.Context(), 1<<20)
	free.Release()
	p.close()
	held.Release()
	if len(p.free) != 0 || p.bytes != 0 || p.used != 0 {
		t.Errorf("%d blocks of %d bytes are kept, %d in use", len(p.free), p.bytes, p.used)
	}
}

func TestSmallAnswersTakeNoLargeBlocks(t *testing.T) {
	p := newPool(nil)
	large, _ := p.get(t.Context(), 8<<20)
	large.Release()
	if small, _ := p.get(t.Context(), 100); cap(small.Bytes()) > smallFit {
		t.Errorf("100 bytes took a block of %d", cap(small.Bytes()))
	}
	if again, _ := p.get(t.Context(), 5<<20); again != large {
		t.Error("a block that fits lay free")
	}
}

func TestBlocksAreCountedWhileHeld(t *testing.T) {
	b := &countingBudget{}
	p := newPool(b)
	ctx := t.Context()
	for _, n := range []int{1, 5000, 1 << 20, 1<<27 + 1} {
		buf, err := p.get(ctx, n)
		if err != nil || len(buf.Bytes()) != n {
			t.Fatalf("%d bytes: got %d, %v", n, len(buf.Bytes()), err)
		}
		if held := b.now.Load(); held < int64(n) {
			t.Errorf("%d bytes count as %d", n, held)
		}
		buf.Retain()
		buf.Release()
		if b.now.Load() == 0 {
			t.Error("released while a reference was left")
		}
		buf.Release()
		if held := b.now.Load(); held != 0 {
			t.Errorf("%d bytes are still counted", held)
		}
	}
}

type fullBudget struct{ err error }

func (b fullBudget) Acquire(context.Context, int) error { return b.err }
func (b fullBudget) Release(int)                        { panic("released what was refused") }

func TestRefusedBudgetGivesNoBlock(t *testing.T) {
	full := errors.New("full")
	p := newPool(nil)
	buf, _ := p.get(t.Context(), 10)
	buf.Release()
	p.budget = fullBudget{full}
	if _, err := p.get(t.Context(), 10); !errors.Is(err, full) || len(p.free) != 1 {
		t.Errorf("%v, %d blocks are free", err, len(p.free))
	}
}
