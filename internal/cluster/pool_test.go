package cluster

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestBlockClassesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<(maxBlockBits+1)).Draw(t, "n")
		class, size := classOf(n)
		switch {
		case size < n:
			t.Fatalf("%d bytes in a block of %d", n, size)
		case class >= blockClasses:
			t.Fatalf("class %d of %d", class, blockClasses)
		case class < 0 && n < 1<<maxBlockBits/2:
			t.Fatalf("%d bytes are not kept", n)
		case n > 1<<minBlockBits && size > n+n/stepsPerDoubling:
			t.Fatalf("%d bytes waste %d", n, size-n)
		}
		if again, same := classOf(size); again != class || same != size {
			t.Fatalf("a block of class %d and size %d goes back to class %d", class, size, again)
		}
	})
}

func TestBlocksAreCountedWhileHeld(t *testing.T) {
	b := &countingBudget{}
	p := newPool(b)
	ctx := t.Context()
	for _, n := range []int{1, 5000, 1 << 20, 1<<maxBlockBits + 1} {
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
	if _, err := newPool(fullBudget{full}).get(t.Context(), 10); !errors.Is(err, full) {
		t.Error(err)
	}
}
