package replicate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// TestExactlyOnceWhateverFails is the simulation of the default mode under
// transactions of both protocols: besides the brokers' faults the coordinator's
// answers get lost, transactions are aborted for their age, other owners take the id,
// epochs run out, the feature level changes, and every lane that ends is taken over
// anew from its last committed positions.
func TestExactlyOnceWhateverFails(t *testing.T) {
	runs := *runsFlag / 3 // a transaction simulates more time than a batch
	if testing.Short() {
		runs = 30
	}
	for i := range runs {
		seed := uint64(i + 1)
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulateExactlyOnce(t, seed) })
		})
		if *seedFlag != 0 || t.Failed() {
			break
		}
	}
}

// owner opens a lane again whenever it ends, as coord does.
type owner struct {
	t     *testing.T
	rig   *rig
	pid   kafka.ProducerID // as it was taken
	parts []int32

	stop  chan struct{}
	done  chan struct{}
	lives int
}

func (o *owner) run() {
	defer close(o.done)
	for {
		o.lives++
		o.pid = o.rig.target.initProducer()
		ended := make(chan struct{})
		lane := o.rig.task.OpenLane(LaneSpec{
			Index: 0, Producer: o.pid,
			Positions:       kafka.TopicPartition{Topic: positionsTopic},
			Runs:            kafka.TopicPartition{Topic: runsTopic},
			TransactionalID: "A-mm2-MirrorSourceConnector-0",
			Transactions:    modelTransactions{o.rig.target},
			Ended:           func(string, bool) { close(ended) },
		})
		committed := committedPositions(o.t, o.rig.target)
		for _, p := range o.parts {
			s := o.rig.spec(p)
			s.Next = committed[s.Source]
			s.Write = mirror.DownstreamOffset(o.rig.target.ListOffsets(o.t.Context(), []kafka.TopicPartition{s.Target}, kafka.Latest, 0)[s.Target].Offset)
			lane.Start([]TrackSpec{s})
		}
		select {
		case <-ended:
			lane.abandon()
		case <-o.stop:
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := lane.Close(ctx); err != nil {
				o.t.Error(err)
			}
			return
		}
	}
}

// committedPositions are the next source offsets that a read_committed reader
// finds in the lane.
func committedPositions(t *testing.T, m *model) map[kafka.TopicPartition]mirror.UpstreamOffset {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[kafka.TopicPartition]mirror.UpstreamOffset{}
	p := m.parts[kafka.TopicPartition{Topic: positionsTopic}]
	for i, raw := range p.batches {
		if txn := p.fates[i]; txn != nil && !txn.committed {
			continue
		}
		h, _ := recordbatch.ParseHeader(raw)
		records, err := recordbatch.Records(&recordbatch.Batch{Header: h, Bytes: raw})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			key, err := mirror.DecodePositionKey(r.Key)
			if err != nil {
				t.Fatal(err)
			}
			if last, ok, err := mirror.DecodePositionValue(r.Value); err == nil && ok {
				next[kafka.TopicPartition{Topic: key.Topic, Partition: key.Partition}] = last + 1
			}
		}
	}
	return next
}

func simulateExactlyOnce(t *testing.T, seed uint64) {
	const partitions = 3
	r := newRig(seed, 0.04, partitions)
	// Nobody else writes: a track that parks has taken a marker for somebody.
	r.policy.ParkForeign = true
	o := &owner{t: t, rig: r, parts: []int32{0, 1, 2}, stop: make(chan struct{}), done: make(chan struct{})}
	rng := rand.New(rand.NewPCG(seed, 3))
	epoch := int16(0)
	if rng.IntN(2) == 0 {
		epoch = lastEpoch - int16(rng.IntN(5))
	}
	levels := []int16{0, 2, 2}
	r.target.transactional(kafka.ProducerID{ID: 7, Epoch: epoch}, levels[rng.IntN(3)])
	go o.run()
	want := make([][]string, partitions)
	for n := range 120 {
		p := int32(n % partitions)
		count := 1 + n%5
		first := len(want[p])
		r.source.appendRaw(spec(p).Source, batchOf(t, recordbatch.CodecNone, first, count))
		for i := range count {
			want[p] = append(want[p], fmt.Sprintf("record %d", first+i))
		}
		time.Sleep(50 * time.Millisecond)
		switch rng.IntN(40) {
		case 0:
			r.target.abort() // it has timed out
		case 1:
			r.target.initProducer() // another owner comes and goes
		case 2, 3:
			r.target.setLevel(levels[rng.IntN(3)])
		}
	}
	r.source.setCalm()
	r.target.setCalm()
	waitUntil(t, "everything committed", func() bool {
		done := 0
		for _, s := range r.task.Snapshot() {
			if s.State == TrackParked {
				t.Fatalf("%s parked: %s", s.Source, s.Reason)
			}
			if int(s.Position) == len(want[s.Source.Partition]) {
				done++
			}
		}
		return done == partitions
	})
	close(o.stop)
	<-o.done
	t.Logf("%d lives", o.lives)
	r.task.Close()
	for p := range int32(partitions) {
		if got := r.target.values(t, spec(p).Target); !slices.Equal(got, want[p]) {
			t.Fatalf("partition %d: a read_committed reader sees %d records, %d are on the source (%d lives)", p, len(got), len(want[p]), o.lives)
		}
	}
	if used := r.budget.Used(); used != 0 {
		t.Fatalf("%d bytes of the budget were never given back", used)
	}
	final := committedPositions(t, r.target)
	for p := range int32(partitions) {
		if got := final[spec(p).Source]; int(got) != len(want[p]) {
			t.Errorf("partition %d: the last position is %d, want %d", p, got, len(want[p]))
		}
	}
}

// A partition that was added to a transaction gets a marker at its end, also
// where nothing was written to it and where the answer to the adding got lost.
// Under identity naming such a marker must not be taken for somebody's records.
func TestMarkersWithoutRecordsAreOurs(t *testing.T) {
	for _, row := range []struct {
		name string
		lost bool // the answer to the adding
	}{{"nothing was sent in time", false}, {"the answer to the adding was lost", true}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 2)
				r.policy.ParkForeign = true
				pid := kafka.ProducerID{ID: 7, Epoch: 1}
				txn := &deafTransactions{modelTransactions: r.target.transactional(pid, 0)}
				lane := r.task.OpenLane(LaneSpec{
					Producer: pid, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
					TransactionalID: "A-mm2-MirrorSourceConnector-0", Transactions: txn, Ended: func(string, bool) {},
				})
				lane.Start([]TrackSpec{r.spec(0), r.spec(1)})
				idle, other := r.task.track(spec(0).Source), r.task.track(spec(1).Source)
				for range 3 {
					txn.deaf = row.lost
					lane.joinTransaction(t.Context(), []*Track{idle})
					txn.deaf = false
					lane.joinTransaction(t.Context(), []*Track{other})
					lane.commitTransaction(t.Context())
				}
				time.Sleep(50 * time.Millisecond) // the last markers are written
				if end := r.target.ListOffsets(t.Context(), []kafka.TopicPartition{idle.tp}, kafka.Latest, 0)[idle.tp].Offset; end != 3 {
					t.Errorf("the model wrote %d markers, want 3", end)
				}
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 5))
				waitUntil(t, "the records are copied", func() bool {
					s := idle.status(time.Now())
					if s.State == TrackParked {
						t.Errorf("%s parked: %s", s.Source, s.Reason)
					}
					return s.Position == 5 || t.Failed()
				})
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := lane.Close(ctx); err != nil {
					t.Error(err)
				}
				r.task.Close()
			})
		})
	}
}

// deafTransactions adds partitions and does not hear that it was done.
type deafTransactions struct {
	modelTransactions
	deaf bool
}

func (d *deafTransactions) Add(ctx context.Context, pid kafka.ProducerID, tps []kafka.TopicPartition) error {
	if err := d.modelTransactions.Add(ctx, pid, tps); err != nil || !d.deaf {
		return err
	}
	return errCut
}

// A lane's books whose leader moves in the middle of a commit are brought back
// there and then: the commit waits for nothing but their answers.
func TestBooksAreBroughtBackDuringACommit(t *testing.T) {
	for _, topic := range []string{positionsTopic, runsTopic} {
		t.Run(topic, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 1)
				refusals := 0
				r.target.parts[kafka.TopicPartition{Topic: topic}].refuse = func([]byte) kafka.Code {
					if refusals++; refusals <= 2 {
						return kafka.CodeNotLeaderOrFollower
					}
					return kafka.CodeNone
				}
				ended := make(chan string, 1)
				lane := r.task.OpenLane(LaneSpec{
					Producer: kafka.ProducerID{ID: 7, Epoch: 1}, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
					TransactionalID: "A-mm2-MirrorSourceConnector-0", Transactions: r.target.transactional(kafka.ProducerID{ID: 7, Epoch: 1}, 2),
					Ended: func(reason string, _ bool) { ended <- reason },
				})
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 5))
				lane.Start([]TrackSpec{r.spec(0)})
				waitUntil(t, "the transaction ends", func() bool {
					return committedPositions(t, r.target)[spec(0).Source] == 5 || len(ended) > 0
				})
				select {
				case reason := <-ended:
					t.Errorf("the lane ended: %s", reason)
				default:
				}
				if got := r.target.values(t, spec(0).Target); len(got) != 5 {
					t.Errorf("a read_committed reader sees %d records, want 5", len(got))
				}
				r.task.Close()
			})
		})
	}
}

// What is read while a transaction ends waits for the next one, also where the
// source is away just then and nothing comes behind it.
func TestWhatWaitsBehindACommitIsSentThoughItsSourceWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		pid := kafka.ProducerID{ID: 7, Epoch: 1}
		txn := &slowTransactions{modelTransactions: r.target.transactional(pid, 2), asked: make(chan struct{}), end: make(chan struct{})}
		lane := r.task.OpenLane(LaneSpec{
			Producer: pid, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
			TransactionalID: "A-mm2-MirrorSourceConnector-0", Transactions: txn,
			Ended: func(reason string, _ bool) { t.Errorf("the lane ended: %s", reason) },
		})
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 1))
		lane.Start([]TrackSpec{r.spec(0)})
		<-txn.asked
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 1, 1))
		tr := r.task.track(spec(0).Source)
		waitUntil(t, "the second record is read", func() bool {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			return tr.app.queued > 0
		})
		tr.sourceTrouble("source: away")
		close(txn.end)
		waitUntil(t, "the second record is copied", func() bool { return committedPositions(t, r.target)[spec(0).Source] == 2 })
		r.task.Close()
	})
}

// slowTransactions ends its first transaction only when it is let.
type slowTransactions struct {
	modelTransactions
	asked, end chan struct{}
	once       sync.Once
}

func (s *slowTransactions) Commit(ctx context.Context, p Protocol, pid kafka.ProducerID) (kafka.ProducerID, error) {
	s.once.Do(func() {
		close(s.asked)
		<-s.end
	})
	return s.modelTransactions.Commit(ctx, p, pid)
}

// A lane that goes on by protocol 2 behind a commit of protocol 1 writes under the
// same epoch once more. A leader that has not got its marker yet would take a batch
// for one of the transaction that is committed, and the position would not cover it.
func TestRaisedLevelWaitsForTheMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		pid := kafka.ProducerID{ID: 7, Epoch: 1}
		txn := r.target.transactional(pid, 1)
		r.target.coordinator.slow = 700 * time.Millisecond
		lane := r.task.OpenLane(LaneSpec{
			Producer: pid, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
			TransactionalID: "A-mm2-MirrorSourceConnector-0", Transactions: txn, Ended: func(reason string, _ bool) { t.Error(reason) },
		})
		lane.Start([]TrackSpec{r.spec(0)})
		for n := range 6 {
			if n == 2 {
				r.target.setLevel(2)
			}
			r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 2*n, 1))
			time.Sleep(700 * time.Millisecond)
			r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 2*n+1, 1))
			time.Sleep(700 * time.Millisecond)
		}
		waitUntil(t, "everything is committed", func() bool { return committedPositions(t, r.target)[spec(0).Source] == 12 })
		if n := r.target.coordinator.late; n > 0 {
			t.Errorf("%d batches came into a transaction that had ended", n)
		}
		if !r.target.coordinator.second {
			t.Error("the raised level was not followed")
		}
		r.task.Close()
	})
}

// What needs the lane's transactional id for itself comes between two transactions,
// and is told the epoch that the last commit gave.
func TestFenceComesBetweenTransactions(t *testing.T) {
	for _, level := range []int16{1, 2} {
		t.Run(fmt.Sprintf("level %d", level), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 2)
				pid := kafka.ProducerID{ID: 7, Epoch: 1}
				lane := r.task.OpenLane(LaneSpec{
					Producer: pid, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
					TransactionalID: "A-mm2-MirrorSourceConnector-0", Transactions: r.target.transactional(pid, level), Ended: func(reason string, _ bool) { t.Error(reason) },
				})
				lane.Start([]TrackSpec{r.spec(0)})
				write := func(n int) {
					r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, n, 1))
					waitUntil(t, "the record is on the target", func() bool {
						r.target.mu.Lock()
						defer r.target.mu.Unlock()
						return len(r.target.parts[spec(0).Target].batches) == n+1
					})
				}
				open := 0
				for n := range 5 {
					write(n)
					if r.target.coordinator.state == txnOpen {
						open++
					}
					if err := lane.Apart(t.Context(), func(p kafka.ProducerID) error {
						if c := &r.target.coordinator; c.state == txnOpen || p != c.pid {
							t.Errorf("in phase %d, under %v while the id is held by %v", c.state, p, c.pid)
						}
						return fence(r.target, p, spec(1).Target)
					}); err != nil {
						t.Fatal(err)
					}
				}
				if open == 0 {
					t.Error("no transaction was ever open")
				}
				write(5)
				waitUntil(t, "everything is committed", func() bool { return committedPositions(t, r.target)[spec(0).Source] == 6 })
				if got := r.target.values(t, spec(0).Target); len(got) != 6 {
					t.Errorf("a read_committed reader sees %d records, want 6", len(got))
				}
				r.task.Close()
			})
		})
	}
}

// fence aborts a transaction of protocol 1.
func fence(m *model, pid kafka.ProducerID, tp kafka.TopicPartition) error {
	if err := (modelTransactions{m}).Add(context.Background(), pid, []kafka.TopicPartition{tp}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, code := m.endLocked(pid, false, Protocol1)
	return code.Err()
}
