package replicate

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

var (
	seedFlag = flag.Uint64("seed", 0, "replay one simulation")
	runsFlag = flag.Int("runs", 60, "simulations to run; thousands before a change of the delivery is believed")
)

const (
	positionsTopic = "mm2-offsets.A.internal"
	runsTopic      = "mm2-offset-runs.A.internal"
)

// rig is a task between two models.
type rig struct {
	source, target *model
	budget         *Budget
	task           *Task
	ledger         *memoryLedger
	policy         losses.Policy // of the tracks that spec makes
}

func newRig(seed uint64, fault float64, partitions int32) *rig {
	r := &rig{ledger: &memoryLedger{}, source: newModel(seed, fault, 2), target: newModel(seed+1, fault, 3), budget: NewBudget(1 << 20)}
	r.source.create("orders", partitions)
	r.target.create("A.orders", partitions)
	r.target.create(positionsTopic, 4)
	r.target.create(runsTopic, 4)
	r.task = New(Deps{
		Source: r.source, Target: r.target, Budget: r.budget, Log: slog.New(slog.DiscardHandler),
		Ledger: r.ledger, CountRecords: r.target.countRecords,
	}, Options{
		Flow: mirror.FlowID{Source: "A", Target: "B"}, FetchMaxBytes: 64 << 10, PartitionMaxBytes: 4 << 10,
		FetchMaxWait: 100 * time.Millisecond, MaxRequestBytes: 16 << 10, RequestTimeout: time.Second,
		Connections: 2, CommitEvery: 5 * time.Second, OffsetLagMax: 100,
	})
	return r
}

func (r *rig) open(lane int32, pid kafka.ProducerID, ended func(string, bool)) *Lane {
	return r.task.OpenLane(LaneSpec{
		Index: lane, Producer: pid, Positions: kafka.TopicPartition{Topic: positionsTopic, Partition: lane},
		Runs: kafka.TopicPartition{Topic: runsTopic, Partition: lane}, Ended: ended,
	})
}

// memoryLedger keeps entries, and fails the first write: a track must wait.
type memoryLedger struct {
	mu      sync.Mutex
	tries   int
	entries []losses.Entry
	letters []kafka.Record
}

func (m *memoryLedger) Write(_ context.Context, e losses.Entry, letter *losses.Letter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tries++; m.tries == 1 {
		return errors.New("ledger: not enough replicas")
	}
	m.entries = append(m.entries, e)
	if letter != nil {
		m.letters = append(m.letters, letter.Encode(e))
	}
	return nil
}

func (m *memoryLedger) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// spec is the track of a partition under the rig's policy.
func (r *rig) spec(p int32) TrackSpec {
	s := spec(p)
	s.Policy = r.policy
	return s
}

func spec(p int32) TrackSpec {
	return TrackSpec{Replica: Replica{
		Source: kafka.TopicPartition{Topic: "orders", Partition: p}, Target: kafka.TopicPartition{Topic: "A.orders", Partition: p},
	}}
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 10_000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

// TestEveryRecordOnceInOrderWhateverFails writes while connections are cut
// before and after the broker applied a request, answers are lost, leaders move
// and replicas are missing. The target must end with the source's records.
func TestEveryRecordOnceInOrderWhateverFails(t *testing.T) {
	runs := *runsFlag
	if testing.Short() {
		runs = 30
	}
	for i := range runs {
		seed := uint64(i + 1)
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		})
		if *seedFlag != 0 || t.Failed() {
			break
		}
	}
}

func simulate(t *testing.T, seed uint64) {
	const partitions = 4
	r := newRig(seed, 0.05, partitions)
	codecs := []recordbatch.Codec{recordbatch.CodecNone, recordbatch.CodecLz4, recordbatch.CodecSnappy}
	lanes := []*Lane{r.open(0, kafka.ProducerID{ID: 7, Epoch: 1}, nil), r.open(1, kafka.ProducerID{ID: 8, Epoch: 0}, nil)}
	for p := range int32(partitions) {
		lanes[p%2].Start([]TrackSpec{spec(p)})
	}
	hangs := sync.WaitGroup{}
	hangs.Go(func() { hangAndWake(r.source, seed) })
	hangs.Go(func() { hangAndWake(r.target, seed+1) })
	want := make([][]string, partitions)
	written := 0
	for n := range 200 {
		p := int32(n % partitions)
		count := 1 + n%9
		first := len(want[p])
		batch := batchOf(t, codecs[n%3], first, count)
		written += len(batch)
		r.source.appendRaw(spec(p).Source, batch)
		for i := range count {
			want[p] = append(want[p], fmt.Sprintf("record %d", first+i))
		}
		if n%7 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	time.Sleep(2 * time.Second)
	hangs.Wait()
	r.source.setCalm()
	r.target.setCalm()
	waitUntil(t, "all partitions caught up", func() bool {
		for _, s := range r.task.Snapshot() {
			if s.State == TrackParked {
				t.Fatalf("%s parked: %s", s.Source, s.Reason)
			}
			if int(s.Position) != len(want[s.Source.Partition]) {
				return false
			}
		}
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, l := range lanes {
		if err := l.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r.task.Close()
	for p := range int32(partitions) {
		if got := r.target.values(t, spec(p).Target); !slices.Equal(got, want[p]) {
			t.Fatalf("partition %d: %d records on the target, %d on the source", p, len(got), len(want[p]))
		}
	}
	if got := r.task.Traffic(); got.Delivered != int64(written) || got.Fetched < got.Delivered+got.Cut {
		t.Fatalf("%+v is told of %d bytes", got, written)
	}
	if used := r.budget.Used(); used != 0 {
		t.Fatalf("%d bytes of the budget were never given back", used)
	}
	if len(r.ledger.entries) > 0 {
		t.Fatalf("losses without a loss: %v", r.ledger.entries)
	}
}

// TestPositionNamesProducerBeforeItsFirstBatch: a successor must be able to
// tell whose batches lie behind the position.
func TestPositionNamesProducerBeforeItsFirstBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		first := true
		r.target.parts[spec(0).Target].refuse = func([]byte) kafka.Code {
			if first {
				first = false
				if n := len(r.target.parts[kafka.TopicPartition{Topic: positionsTopic, Partition: 0}].batches); n != 1 {
					t.Errorf("%d position batches lie on the target when the first data batch arrives, want 1", n)
				}
			}
			return kafka.CodeNone
		}
		l := r.open(0, kafka.ProducerID{ID: 7, Epoch: 3}, nil)
		l.Start([]TrackSpec{spec(0)})
		waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Records == 3 })
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.task.Close()
		if first {
			t.Fatal("no data batch was seen")
		}
		got := positionsIn(t, r.target, 0)
		if len(got) != 2 {
			t.Fatalf("%d position records, want the announcement and the clean stop", len(got))
		}
		announced, clean := got[0], got[1]
		if announced.facts.Clean || announced.facts.ProducerID != 7 || announced.facts.ProducerEpoch != 3 || announced.facts.NextTarget != 0 || announced.last != -1 {
			t.Errorf("announcement: %+v", announced)
		}
		if !clean.facts.Clean || clean.facts.NextTarget != 3 || clean.last != 2 {
			t.Errorf("clean stop: %+v", clean)
		}
	})
}

type writtenPosition struct {
	last  mirror.UpstreamOffset
	facts mirror.PositionFacts
}

func positionsIn(t *testing.T, m *model, lane int32) []writtenPosition {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []writtenPosition
	for _, raw := range m.parts[kafka.TopicPartition{Topic: positionsTopic, Partition: lane}].batches {
		h, _ := recordbatch.ParseHeader(raw)
		records, err := recordbatch.Records(&recordbatch.Batch{Header: h, Bytes: raw})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			w := writtenPosition{last: -1}
			last, ok, err := mirror.DecodePositionValue(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				w.last = last
			}
			if w.facts, ok, err = mirror.DecodePositionFacts(r.Headers); err != nil || !ok {
				t.Fatalf("facts: %v, %v", ok, err)
			}
			out = append(out, w)
		}
	}
	return out
}

// TestFencedLaneStopsAtOnce: a newer epoch on the target means another owner.
func TestFencedLaneStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		r.target.parts[spec(0).Target].producers[7] = &modelProducer{epoch: 4}
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		ended := make(chan bool, 1)
		l := r.open(0, kafka.ProducerID{ID: 7, Epoch: 3}, func(_ string, fenced bool) { ended <- fenced })
		l.Start([]TrackSpec{spec(0)})
		if !<-ended {
			t.Error("the lane ended, but not as fenced")
		}
		r.task.Close()
		if got := r.target.values(t, spec(0).Target); len(got) != 0 {
			t.Errorf("a fenced owner wrote %v", got)
		}
	})
}

// TestAFencedLaneIsLeftAtOnce: what nobody will acknowledge is not waited for.
func TestAFencedLaneIsLeftAtOnce(t *testing.T) {
	for _, when := range []string{"before the stop", "during the stop"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 1)
				l := r.open(0, kafka.ProducerID{ID: 7}, func(string, bool) {})
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
				l.Start([]TrackSpec{spec(0)})
				waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Position == 3 })
				log := r.target.parts[spec(0).Target]
				r.target.mu.Lock()
				log.refuse = func([]byte) kafka.Code {
					if when == "during the stop" {
						time.Sleep(time.Second)
					}
					return kafka.CodeInvalidProducerEpoch
				}
				r.target.mu.Unlock()
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 3, 3))
				if when == "before the stop" {
					waitUntil(t, "fenced", func() bool { return r.task.Snapshot()[0].State == TrackWaiting })
				} else {
					time.Sleep(200 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				began := time.Now()
				if err := l.Close(ctx); err == nil {
					t.Error("the lane says that all was written")
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %v of the bubble's time", took)
				}
				r.task.Close()
			})
		})
	}
}

// TestRefusedBatchIsSplitThenGivenToThePolicy: a batch too large goes down to
// its records, and only the record that cannot fit is the policy's.
func TestRefusedBatchIsSplitThenGivenToThePolicy(t *testing.T) {
	for _, policy := range []losses.Poison{losses.PoisonStop, losses.PoisonSkip, losses.PoisonDeadLetter} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 2)
				r.policy.Poison = policy
				big := make([]byte, 900)
				records := []kafka.Record{{Value: []byte("a")}, {Value: big}, {Value: []byte("c")}}
				batch, err := recordbatch.Build(records, recordbatch.BuildOptions{})
				if err != nil {
					t.Fatal(err)
				}
				r.source.appendRaw(spec(0).Source, batch)
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 7, 1))
				r.source.appendRaw(spec(1).Source, batchOf(t, recordbatch.CodecNone, 0, 2))
				r.target.parts[spec(0).Target].refuse = func(b []byte) kafka.Code {
					if len(b) > 500 {
						return kafka.CodeMessageTooLarge
					}
					return kafka.CodeNone
				}
				l := r.open(0, kafka.ProducerID{ID: 7}, nil)
				l.Start([]TrackSpec{r.spec(0), r.spec(1)})
				var track TrackStatus
				waitUntil(t, "settled", func() bool {
					for _, s := range r.task.Snapshot() {
						if s.Source == spec(0).Source {
							track = s
						} else if s.Records != 2 {
							return false // the neighbour goes on whatever happens
						}
					}
					return track.State == TrackParked || track.Position == 4
				})
				if err := l.Close(t.Context()); err != nil {
					t.Errorf("a parked partition must not hold up the stop: %v", err)
				}
				r.task.Close()
				got := r.target.values(t, spec(0).Target)
				if policy == losses.PoisonStop {
					if track.State != TrackParked || track.Position != 1 || !slices.Equal(got, []string{"a"}) {
						t.Errorf("state %s (%s), position %d, target %q", track.State, track.Reason, track.Position, got)
					}
					return
				}
				if track.Skipped != 1 || !slices.Equal(got, []string{"a", "c", "record 7"}) || len(r.ledger.entries) != 1 || r.ledger.entries[0].From != 1 || r.ledger.entries[0].To != 2 {
					t.Errorf("skipped %d, losses %v, target %q", track.Skipped, r.ledger.entries, got)
				}
				if policy == losses.PoisonSkip {
					if len(r.ledger.letters) > 0 || r.ledger.entries[0].Action != losses.Continued {
						t.Errorf("letters %v, entries %v", r.ledger.letters, r.ledger.entries)
					}
					return
				}
				if len(r.ledger.letters) != 1 || r.ledger.entries[0].Action != losses.DeadLettered || !bytes.Equal(r.ledger.letters[0].Value, big) {
					t.Fatalf("letters %v, entries %v", r.ledger.letters, r.ledger.entries)
				}
				if got := header(r.ledger.letters[0], losses.HeaderOffset); got != "1" {
					t.Errorf("the letter names source offset %q", got)
				}
			})
		})
	}
}

func header(r kafka.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// A batch that is refused for one of its records loses that record and no
// other, wherever it stands and however often.
func TestOnlyTheRefusedRecordIsLost(t *testing.T) {
	for _, codec := range []recordbatch.Codec{recordbatch.CodecNone, recordbatch.CodecLz4} {
		for _, bad := range [][]int{{0}, {63}, {99}, {10, 11, 98}} {
			t.Run(fmt.Sprint(codec, bad), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(1, 0, 1)
					r.policy.Poison = losses.PoisonDeadLetter
					records := make([]kafka.Record, 100)
					var want, refused []string
					for i := range records {
						records[i].Key, records[i].Value = []byte("key"), fmt.Appendf(nil, "record %d", i)
						if slices.Contains(bad, i) {
							records[i].Key = nil // what a compacted topic refuses
							refused = append(refused, string(records[i].Value))
						} else {
							want = append(want, string(records[i].Value))
						}
					}
					batch, err := recordbatch.Build(records, recordbatch.BuildOptions{Codec: codec})
					if err != nil {
						t.Fatal(err)
					}
					r.source.appendRaw(spec(0).Source, batch)
					r.target.parts[spec(0).Target].refuse = func(raw []byte) kafka.Code {
						b, err := recordbatch.Parse(raw)
						if err != nil {
							return kafka.CodeCorruptMessage
						}
						got, err := recordbatch.Records(&b)
						if err != nil {
							return kafka.CodeCorruptMessage
						}
						if slices.ContainsFunc(got, func(r kafka.Record) bool { return r.Key == nil }) {
							return kafka.CodeInvalidRecord
						}
						return kafka.CodeNone
					}
					l := r.open(0, kafka.ProducerID{ID: 7}, nil)
					l.Start([]TrackSpec{r.spec(0)})
					waitUntil(t, "settled", func() bool { return r.task.Snapshot()[0].Position == 100 })
					if err := l.Close(t.Context()); err != nil {
						t.Error(err)
					}
					r.task.Close()
					if got := r.target.values(t, spec(0).Target); !slices.Equal(got, want) {
						t.Errorf("the target holds %d records, want %d: %q", len(got), len(want), got)
					}
					var letters []string
					for i, letter := range r.ledger.letters {
						letters = append(letters, string(letter.Value))
						if got := header(letter, losses.HeaderOffset); got != fmt.Sprint(bad[i]) {
							t.Errorf("letter %d names source offset %s, want %d", i, got, bad[i])
						}
					}
					if !slices.Equal(letters, refused) {
						t.Errorf("letters %q, want %q", letters, refused)
					}
				})
			})
		}
	}
}

// A batch that stays damaged is the policy's, too: it is kept whole, as it is.
func TestDamagedBatchIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		r.policy.Poison = losses.PoisonDeadLetter
		damaged := batchOf(t, recordbatch.CodecNone, 0, 3)
		damaged[len(damaged)-1] ^= 1
		r.source.appendRaw(spec(0).Source, damaged)
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 3, 2))
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		l.Start([]TrackSpec{r.spec(0)})
		waitUntil(t, "settled", func() bool { return r.task.Snapshot()[0].Position == 5 })
		_ = l.Close(t.Context())
		r.task.Close()
		if got := r.target.values(t, spec(0).Target); !slices.Equal(got, []string{"record 3", "record 4"}) {
			t.Errorf("the target holds %q", got)
		}
		if len(r.ledger.letters) != 1 || header(r.ledger.letters[0], losses.HeaderForm) != "batch" || !bytes.Equal(r.ledger.letters[0].Value[17:], damaged[17:]) {
			t.Errorf("letters %v", r.ledger.letters)
		}
		if e := r.ledger.entries[0]; e.From != 0 || e.To != 3 || e.Kind != losses.Undecodable || e.Action != losses.DeadLettered {
			t.Errorf("entry %v", e)
		}
	})
}

// TestRetentionOvertakingIsALoss: the hole is named, and copying goes on behind it.
func TestRetentionOvertakingIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		src := r.source.parts[spec(0).Source]
		src.end = 50
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 50, 5))
		s := spec(0)
		s.Next = 20
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		l.Start([]TrackSpec{s})
		waitUntil(t, "copied behind the hole", func() bool { return r.task.Snapshot()[0].Position == 55 })
		_ = l.Close(t.Context())
		r.task.Close()
		if len(r.ledger.entries) != 1 || r.ledger.entries[0].From != 20 || r.ledger.entries[0].To != 50 || r.ledger.entries[0].Kind != losses.Overtaken {
			t.Errorf("losses %v", r.ledger.entries)
		}
	})
}

// TestDeniedPartitionParksUntilItMayBeRead: others run meanwhile, and trying
// again does not make the state flap.
func TestDeniedPartitionParksUntilItMayBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 2)
		for p := range int32(2) {
			r.source.appendRaw(spec(p).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		}
		deny := func(denied bool) {
			r.source.mu.Lock()
			defer r.source.mu.Unlock()
			r.source.parts[spec(0).Source].denied = denied
		}
		deny(true)
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		l.Start([]TrackSpec{spec(0), spec(1)})
		status := func(p int32) TrackStatus {
			for _, s := range r.task.Snapshot() {
				if s.Source == spec(p).Source {
					return s
				}
			}
			return TrackStatus{}
		}
		waitUntil(t, "the other partition is copied", func() bool { return status(1).Records == 3 })
		waitUntil(t, "parked", func() bool { return status(0).State == TrackParked })
		parked := status(0)
		if !strings.Contains(parked.Reason, "grant READ on topic orders") {
			t.Errorf("the reason is %q", parked.Reason)
		}
		time.Sleep(5 * deniedPause)
		if now := status(0); now.State != TrackParked || !now.Since.Equal(parked.Since) {
			t.Errorf("after some tries: %s since %s, was parked since %s", now.State, now.Since, parked.Since)
		}
		deny(false)
		waitUntil(t, "copied", func() bool { return status(0).Records == 3 && status(0).State == TrackRunning })
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.task.Close()
	})
}

// TestNothingMirroredIsNotTranslated: a group that stands on a partition of
// which nothing was copied gets no place on the target, at its start neither.
func TestNothingMirroredIsNotTranslated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		l.Start([]TrackSpec{spec(0)})
		synctest.Wait()
		for _, u := range []mirror.UpstreamOffset{0, 3} {
			if got := r.task.Translate(spec(0).Source, u); got.Known() {
				t.Errorf("offset %d before anything was copied: %v", u, got)
			}
		}
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Records == 3 })
		if got := r.task.Translate(spec(0).Source, 3); !got.Known() || got.Offset != 3 {
			t.Errorf("the end is translated to %v, want 3", got)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.task.Close()
	})
}
