package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSameSeedSameSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		length := time.Duration(rapid.IntRange(1, 30).Draw(t, "minutes")) * time.Minute
		if d := cmp.Diff(Draw(seed, length), Draw(seed, length)); d != "" {
			t.Fatal(d)
		}
	})
}

// A longer run begins as the shorter one of the same seed, its last fault aside.
func TestLongerRunGoesOn(t *testing.T) {
	short, long := Draw(3, 2*time.Minute), Draw(3, 10*time.Minute)
	n := len(short.Faults) - 1
	if d := cmp.Diff(short.Faults[:n], long.Faults[:n]); d != "" {
		t.Error(d)
	}
	if short.Setup != long.Setup {
		t.Errorf("set-up %v, want %v", long.Setup, short.Setup)
	}
}

func TestSeedsDiffer(t *testing.T) {
	if cmp.Equal(Draw(1, time.Minute).Faults, Draw(2, time.Minute).Faults) {
		t.Error("seeds 1 and 2 give the same faults")
	}
}

// Whatever the seed, faults strike brokers that exist and last as their kind allows.
func TestFaultsAreWithinBounds(t *testing.T) {
	limits := map[Kind]traits{}
	for _, k := range kinds {
		limits[k.kind] = k
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Draw(rapid.Uint64().Draw(t, "seed"), 5*time.Minute)
		for _, f := range s.Faults {
			k, known := limits[f.Kind]
			brokers := int32(targetBrokers)
			if f.Kind.atSource() {
				brokers = int32(s.SourceBrokers)
			}
			if !known || f.Broker < 1 || f.Broker > brokers || f.Lasting < k.least || f.Lasting > k.most || f.Killed && !k.killed {
				t.Fatalf("%v", f)
			}
		}
	})
}

// Every kind comes before any comes again, so long runs try all of them.
func TestEveryKindIsDealt(t *testing.T) {
	seen := map[Kind]bool{}
	for _, f := range Draw(5, 20*time.Minute).Faults[:len(kinds)] {
		seen[f.Kind] = true
	}
	if len(seen) != len(kinds) {
		t.Errorf("%d kinds in the first %d faults", len(seen), len(kinds))
	}
}

func TestJavaIsSparedWhatItCannotMeet(t *testing.T) {
	for _, f := range Draw(5, 20*time.Minute).forJava().Faults {
		if f.Kind == Zombie || f.Kind == PositionsDeleted {
			t.Errorf("%v", f)
		}
	}
}
