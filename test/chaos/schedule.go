package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault, in the words of the report.
type Kind string

// The kinds of faults.
const (
	ProcessKilled     Kind = "kill -9 of the process"
	ProcessKilledSoon Kind = "kill -9 right after a start"
	Zombie            Kind = "zombie (SIGSTOP past the session, SIGCONT)"
	SecondProcess     Kind = "second process of the flow, one killed"
	TargetKilled      Kind = "target broker killed"
	TargetRestarted   Kind = "target broker restarted"
	TargetPaused      Kind = "target broker paused"
	TargetCut         Kind = "target cut off"
	TargetReset       Kind = "target connections reset"
	TargetHalfOpen    Kind = "target half-open"
	TargetDelayed     Kind = "target far away"
	LeadersMoved      Kind = "target leaders moved"
	CoordinatorKilled Kind = "coordinator broker killed"
	SourceKilled      Kind = "source broker killed"
	SourceRestarted   Kind = "source broker restarted"
	SourcePaused      Kind = "source broker paused"
	SourceCut         Kind = "source cut off"
	SourceReset       Kind = "source connections reset"
	SourceHalfOpen    Kind = "source half-open"
	InternalDeleted   Kind = "internal topic deleted"
	PositionsDeleted  Kind = "positions deleted, then kill -9"
	TargetDiskFull    Kind = "target disk full"
	TargetLeaderless  Kind = "target partitions leaderless at takeover"
	TargetReaddressed Kind = "target addresses replaced"
	TargetUpgraded    Kind = "target upgraded while it runs"
	LoginRevoked      Kind = "login revoked and given back"
)

// traits say what a kind is drawn with.
type traits struct {
	kind        Kind
	least, most time.Duration // how long it lasts
	killed      bool          // the process may be killed while it lasts
	java        bool          // it also applies to Java MirrorMaker 2
	once        bool          // no run can have it twice
	reckoned    time.Duration // for making and healing it, beside what it lasts
}

// kinds are all kinds, in the order of the report.
var kinds = []traits{
	{kind: ProcessKilled, most: 2 * time.Second, java: true},
	{kind: ProcessKilledSoon, most: 1500 * time.Millisecond, java: true},
	{kind: Zombie, least: 2 * time.Second, most: 5 * time.Second},
	{kind: SecondProcess, least: 2 * time.Second, most: 6 * time.Second},
	{kind: TargetKilled, least: 2 * time.Second, most: 8 * time.Second, killed: true, java: true},
	{kind: TargetRestarted, most: time.Second, killed: true, java: true},
	{kind: TargetPaused, least: 2 * time.Second, most: 24 * time.Second, killed: true, java: true},
	{kind: TargetCut, least: time.Second, most: 6 * time.Second, killed: true, java: true},
	{kind: TargetReset, least: 500 * time.Millisecond, most: 3 * time.Second, java: true},
	{kind: TargetHalfOpen, least: 2 * time.Second, most: 12 * time.Second, killed: true, java: true},
	{kind: TargetDelayed, least: 3 * time.Second, most: 8 * time.Second, killed: true, java: true},
	{kind: LeadersMoved, most: 2 * time.Second, killed: true, java: true},
	{kind: CoordinatorKilled, least: 2 * time.Second, most: 6 * time.Second, killed: true},
	{kind: SourceKilled, least: 2 * time.Second, most: 6 * time.Second, killed: true, java: true},
	{kind: SourceRestarted, most: time.Second, java: true},
	{kind: SourcePaused, least: 2 * time.Second, most: 20 * time.Second, java: true},
	{kind: SourceCut, least: time.Second, most: 6 * time.Second, java: true},
	{kind: SourceReset, least: 500 * time.Millisecond, most: 3 * time.Second, java: true},
	{kind: SourceHalfOpen, least: 2 * time.Second, most: 12 * time.Second, java: true},
	{kind: InternalDeleted, most: time.Second},
	{kind: PositionsDeleted, least: time.Second, most: 4 * time.Second},
	{kind: TargetDiskFull, least: time.Second, most: 6 * time.Second, killed: true, java: true, reckoned: 15 * time.Second},
	{kind: TargetLeaderless, least: 2 * time.Second, most: 10 * time.Second, java: true, reckoned: 15 * time.Second},
	{kind: TargetReaddressed, most: time.Second, killed: true, java: true, reckoned: 25 * time.Second},
	{kind: TargetUpgraded, most: time.Second, killed: true, java: true, once: true, reckoned: 40 * time.Second},
	{kind: LoginRevoked, least: time.Second, most: 8 * time.Second, killed: true, java: true},
}

// targetBrokers is how many brokers the target has.
const targetBrokers = 3

// Setup is what a seed says about the clusters and the flow.
type Setup struct {
	SourceBrokers int // and the source's replication factor
	Identity      bool
	ExactlyOnce   bool
	Age           time.Duration // how far back the records' times lie
	Codec         string        // of the load's producers
}

// Fault is one fault of a schedule.
type Fault struct {
	Kind    Kind
	After   time.Duration // how long the flow is left alone before
	Lasting time.Duration
	Broker  int32 // which one, where the kind takes one
	Choice  int   // of a kind's variants
	Killed  bool  // the process is killed too, in the middle of it
	Hurried bool  // the next fault does not wait for recovery from this one
}

// String is one line of the printed schedule.
func (f Fault) String() string {
	s := fmt.Sprintf("after %v: %s, %v, broker %d, variant %d", f.After, f.Kind, f.Lasting, f.Broker, f.Choice)
	if f.Killed {
		s += ", process killed meanwhile"
	}
	if f.Hurried {
		s += ", recovery not waited for"
	}
	return s
}

// Schedule is all that a seed decides.
type Schedule struct {
	Seed uint64
	Setup
	Faults []Fault
}

// recovery is what a schedule reckons for the time from a fault's end to lag zero.
const recovery = 4 * time.Second

// Draw makes the schedule of a seed. Faults are dealt as from a shuffled deck, so
// that each kind comes before any comes again. With words in only, the deck holds just
// the kinds that contain one of them.
func Draw(seed uint64, length time.Duration, only ...string) Schedule {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	codecs := []string{"none", "lz4", "zstd", "snappy", "gzip"}
	s := Schedule{Seed: seed, Setup: Setup{
		SourceBrokers: 1 + rng.IntN(2),
		Identity:      rng.IntN(2) == 0,
		ExactlyOnce:   rng.IntN(3) == 0,
		Codec:         codecs[rng.IntN(len(codecs))],
	}}
	if rng.IntN(3) == 0 {
		s.Age = time.Duration(2+rng.IntN(9)) * 24 * time.Hour
	}
	var deck []int
	for spent := time.Duration(0); spent < length; {
		if len(deck) == 0 {
			deck = slices.DeleteFunc(rng.Perm(len(kinds)), func(k int) bool {
				return !wanted(kinds[k].kind, only) || kinds[k].once && s.has(kinds[k].kind)
			})
			if len(deck) == 0 {
				return s // no kind has such a name, or none can come again
			}
		}
		f := deal(rng, kinds[deck[0]], s.SourceBrokers)
		spent += f.After + f.Lasting + kinds[deck[0]].reckoned + recovery
		deck = deck[1:]
		s.Faults = append(s.Faults, f)
	}
	// The last fault's recovery is always seen.
	if n := len(s.Faults); n > 0 {
		s.Faults[n-1].Hurried = false
	}
	return s
}

// has reports whether a kind was dealt.
func (s Schedule) has(k Kind) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == k })
}

func wanted(k Kind, only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(word string) bool { return strings.Contains(string(k), word) })
}

func deal(rng *rand.Rand, t traits, sourceBrokers int) Fault {
	between := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(rng.Int64N(int64(most-least)))).Round(time.Millisecond)
	}
	f := Fault{Kind: t.kind, After: between(0, 3*time.Second), Lasting: between(t.least, t.most), Choice: rng.IntN(4)}
	brokers := targetBrokers
	if t.kind.atSource() {
		brokers = sourceBrokers
	}
	f.Broker = 1 + rng.Int32N(int32(brokers))
	f.Killed = rng.IntN(4) == 0 && t.killed
	f.Hurried = rng.IntN(5) == 0
	return f
}

// atSource reports whether the kind strikes a broker of the source.
func (k Kind) atSource() bool { return strings.HasPrefix(string(k), "source ") }

// String is the schedule as it is printed before a run.
func (s Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n", s.Seed, s.Setup)
	for i, f := range s.Faults {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, f)
	}
	return b.String()
}

// String is the set-up in words.
func (s Setup) String() string {
	naming, mode, times := "default naming", "default delivery", "fresh records"
	if s.Identity {
		naming = "identity naming"
	}
	if s.ExactlyOnce {
		mode = "exactly-once"
	}
	if s.Age > 0 {
		times = fmt.Sprintf("records %d days old", int(s.Age.Hours())/24)
	}
	return fmt.Sprintf("%d source broker(s), %s, %s, %s, codec %s", s.SourceBrokers, naming, mode, times, s.Codec)
}

// forJava leaves out what does not apply to Java MirrorMaker 2.
func (s Schedule) forJava() Schedule {
	applies := map[Kind]bool{}
	for _, t := range kinds {
		applies[t.kind] = t.java
	}
	var faults []Fault
	for _, f := range s.Faults {
		if applies[f.Kind] {
			faults = append(faults, f)
		}
	}
	s.Faults = faults
	return s
}
