package coord

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/recordbatch"
	"heliograph/internal/replicate"
)

var (
	orders = kafka.TopicPartition{Topic: "orders"}
	copies = kafka.TopicPartition{Topic: "A.orders"}
	// before is who owned the lane before us, under the lane's transactional id.
	before = kafka.ProducerID{ID: 7, Epoch: 3}
	// foreign is a producer that is none of ours.
	foreign = kafka.ProducerID{ID: 99}
)

// rig is a keeper between two models: partition orders-0 is copied to A.orders-0.
type rig struct {
	source, target *model
	opts           Options
	replica        Replica
	ledger         *memoryLedger
	syncs          []mirror.OffsetSync
	task           *replicate.Task
	keeper         *Keeper
	left           error // of closing the keeper
}

func newRig() *rig {
	r := &rig{
		source: newModel(kafka.ProducerID{}), target: newModel(before), ledger: &memoryLedger{},
		opts: Options{
			Flow: mirror.FlowID{Source: "A", Target: "B"}, GroupID: "A-mm2", PositionsTopic: "mm2-offsets.A.internal", Lanes: 3,
			RunsTopic: "mm2-offset-runs.A.internal", RunsPartitions: 3, SourceClusterID: "a", TargetClusterID: "b", Reset: plan.ResetEarliest,
		},
	}
	r.source.create(orders.Topic, 1, 1)
	r.target.create(copies.Topic, 2, 1)
	r.target.create(r.opts.PositionsTopic, 3, r.opts.Lanes)
	r.target.create(r.opts.RunsTopic, 4, r.opts.RunsPartitions)
	r.replica = Replica{Replica: replicate.Replica{
		Source: orders, SourceID: kafka.TopicID{1}, Target: copies, TargetID: kafka.TopicID{2},
	}}
	return r
}

// sync is an offset sync of the partition, older ones behind it.
func (r *rig) sync(up mirror.UpstreamOffset, down mirror.DownstreamOffset) {
	r.syncs = append([]mirror.OffsetSync{{TopicPartition: orders, Upstream: up, Downstream: down}}, r.syncs...)
	r.opts.Syncs = func(context.Context) (func(kafka.TopicPartition) []mirror.OffsetSync, error) {
		return func(kafka.TopicPartition) []mirror.OffsetSync { return r.syncs }, nil
	}
}

// records are numbered from the offset first on, their contents given.
func records(first int64, values ...string) []kafka.Record {
	out := make([]kafka.Record, len(values))
	for i, v := range values {
		out[i] = kafka.Record{Offset: first + int64(i), Key: []byte("k" + v), Value: []byte(v), Timestamp: 1_700_000_000_000}
	}
	return out
}

func numbered(first, n int64) []kafka.Record {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprint(first + int64(i))
	}
	return records(first, values...)
}

// fill lays records into the source.
func (r *rig) fill(recs []kafka.Record) { r.source.lay(orders, recs, 3, recordbatch.BuildOptions{}) }

// facts are those of a position that the last owner wrote at a target offset.
func (r *rig) facts(nextTarget int64, clean bool) *mirror.PositionFacts {
	return &mirror.PositionFacts{
		Clean: clean, ProducerID: before.ID, ProducerEpoch: before.Epoch, NextTarget: mirror.DownstreamOffset(nextTarget),
		SourceCluster: "a", TargetCluster: "b", SourceTopicID: kafka.TopicID{1}, TargetTopicID: kafka.TopicID{2}, Mode: replicate.ModeDefault,
	}
}

// stand writes the position of the partition into a lane.
func (r *rig) stand(lane int32, position kafka.Record) {
	r.target.write(kafka.TopicPartition{Topic: r.opts.PositionsTopic, Partition: lane}, before, position)
}

// lane is the lane of the partition.
func (r *rig) lane() int32 { return booksOf(r.opts, r.target, nil).laneOf(orders) }

// takeOver makes the keeper and gives it all lanes.
func (r *rig) takeOver() {
	log := slog.New(slog.DiscardHandler)
	r.task = replicate.New(replicate.Deps{
		Source: r.source, Target: r.target, Budget: replicate.NewBudget(1 << 20), Log: log, Ledger: r.ledger,
		CountRecords: func(ctx context.Context, tp kafka.TopicPartition, from, to mirror.DownstreamOffset) (int64, error) {
			return CountRecords(ctx, r.target, tp, from, to)
		},
	}, replicate.Options{
		Flow: r.opts.Flow, SourceClusterID: "a", TargetClusterID: "b", FetchMaxBytes: 1 << 20, PartitionMaxBytes: 1 << 20,
		FetchMaxWait: 100 * time.Millisecond, MaxRequestBytes: 1 << 20, RequestTimeout: time.Second,
		Connections: 1, CommitEvery: 5 * time.Second, OffsetLagMax: 100,
	})
	r.keeper = NewKeeper(r.opts, r.source, r.target, r.task, r.ledger, log)
	r.keeper.SetReplicas([]Replica{r.replica})
	r.keeper.Assigned([]int32{0, 1, 2})
}

func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r.left = r.keeper.Close(ctx)
	r.task.Close()
}

// settle gives the takeover a minute of the bubble's time, and returns the
// partition's status; none where it has no track.
func (r *rig) settle() replicate.TrackStatus {
	time.Sleep(time.Minute)
	synctest.Wait()
	if s := r.task.Snapshot(); len(s) > 0 {
		return s[0]
	}
	return replicate.TrackStatus{}
}

func values(recs []kafka.Record) string {
	out := make([]string, len(recs))
	for i, r := range recs {
		out[i] = string(r.Value)
	}
	return strings.Join(out, " ")
}

// takeover is one situation that a new owner finds, and what comes of it.
type takeover struct {
	name string
	find func(r *rig)
	// parked is part of the reason, where a person is asked.
	parked string
	// copied is how many records the new owner writes, and target what it leaves.
	copied int64
	target string
	// marked says that the copy got the fence's marker.
	marked bool
	lost   []losses.Kind
	fence  Fence // the marker, unless another is named
}

var takeovers = []takeover{
	{
		name: "nothing is there yet",
		find: func(r *rig) { r.fill(numbered(0, 4)) }, copied: 4, target: "0 1 2 3",
	},
	{
		name: "stopped in order",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
			r.stand(r.lane(), positionAt(orders, 4, r.facts(4, true)))
		}, copied: 2, target: "0 1 2 3 4 5",
	},
	{
		name: "killed between a position and the next",
		find: func(r *rig) {
			r.fill(numbered(0, 8))
			r.target.write(copies, before, numbered(0, 3)...)
			r.stand(r.lane(), positionAt(orders, 3, r.facts(3, false)))
			r.target.write(copies, before, numbered(3, 3)...)
		}, copied: 2, target: "0 1 2 3 4 5 6 7", marked: true,
	},
	{
		name: "killed before the first batch",
		find: func(r *rig) {
			r.fill(numbered(0, 3))
			r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
		}, copied: 3, target: "0 1 2", marked: true,
	},
	{
		name: "killed, and the target gives no transactional ids",
		find: func(r *rig) {
			r.target.denied = errDenied
			r.fill(numbered(0, 8))
			r.target.write(copies, before, numbered(0, 3)...)
			r.stand(r.lane(), positionAt(orders, 3, r.facts(3, false)))
			r.target.write(copies, before, numbered(3, 3)...)
		}, copied: 2, target: "0 1 2 3 4 5 6 7", fence: FenceLease,
	},
	{
		name: "killed, and others wrote between our records",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
			r.target.write(copies, before, numbered(0, 2)...)
			r.target.write(copies, foreign, records(0, "x", "y")...)
			r.target.write(copies, before, numbered(2, 2)...)
		}, copied: 2, target: "0 1 x y 2 3 4 5", marked: true,
	},
	{
		name: "others wrote, under identity naming",
		find: func(r *rig) {
			r.replica.Policy.ParkForeign = true
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
			r.stand(r.lane(), positionAt(orders, 4, r.facts(4, true)))
			r.target.write(copies, foreign, records(0, "x", "y")...)
		}, parked: "somebody else wrote 2 records", target: "0 1 2 3 x y", lost: []losses.Kind{losses.ForeignWriter},
	},
	{
		name: "the position is in another lane",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
			r.stand((r.lane()+1)%r.opts.Lanes, positionAt(orders, 4, r.facts(4, true)))
		}, copied: 2, target: "0 1 2 3 4 5",
	},
	{
		name: "no position, and the copy holds data",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
		}, parked: "set heliograph.missing.position to one of scan, end, start", target: "0 1 2 3",
	},
	{
		name: "no position, told to scan",
		find: func(r *rig) {
			r.replica.Missing = plan.ChoiceScan
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
		}, copied: 2, target: "0 1 2 3 4 5",
	},
	{
		name: "what the last owner wrote was compacted away at the source",
		find: func(r *rig) {
			r.replica.Demands.Compacted = true
			r.fill(append(records(2, "2", "3"), records(6, "6")...)) // 0, 1, 4 and 5 are gone
			r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
			r.target.write(copies, before, numbered(0, 3)...)
		}, copied: 2, target: "0 1 2 3 6", marked: true,
	},
	{
		name: "the source holds other records than were written",
		find: func(r *rig) {
			r.fill(records(0, "a", "b", "c"))
			r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
			r.target.write(copies, before, numbered(0, 2)...)
		}, parked: "where the last owner stopped cannot be found", target: "0 1", marked: true,
	},
	{
		name: "MirrorMaker's position lies behind what it copied",
		find: func(r *rig) {
			r.fill(numbered(0, 9))
			r.target.write(copies, before, numbered(0, 7)...)
			r.stand(r.lane(), positionAt(orders, 3, nil))
		}, copied: 2, target: "0 1 2 3 4 5 6 7 8",
	},
	{
		name: "MirrorMaker's position, and records that repeat",
		find: func(r *rig) {
			r.fill(records(0, "a", "b", "c", "b", "c", "d"))
			r.target.write(copies, before, records(0, "a", "b", "c", "b", "c")...)
			r.stand(r.lane(), positionAt(orders, 1, nil))
		}, copied: 1, target: "a b c b c d", // the record in front of the position tells them apart
	},
	{
		name: "MirrorMaker's position, and records that are all the same",
		find: func(r *rig) {
			r.fill(records(0, "a", "a", "a", "b"))
			r.target.write(copies, before, records(0, "a", "a")...)
			r.stand(r.lane(), positionAt(orders, 1, nil))
		}, copied: 3, target: strings.Repeat("a ", 4) + "b", // again from the position, as Java would: skipping could lose
	},
	{
		name: "MirrorMaker's position, records that are all the same, and an offset sync",
		find: func(r *rig) {
			r.fill(records(0, "a", "a", "a", "b"))
			r.target.write(copies, before, records(0, "a", "a")...)
			r.stand(r.lane(), positionAt(orders, 1, nil))
			r.sync(0, 0)
		}, copied: 2, target: strings.Repeat("a ", 3) + "b",
	},
	{
		name: "MirrorMaker died before its first position, and its offset syncs tell",
		find: func(r *rig) {
			r.fill(records(0, "a", "a", "a", "b"))
			r.target.write(copies, before, records(0, "a", "a")...)
			r.sync(0, 0)
		}, copied: 2, target: strings.Repeat("a ", 3) + "b",
	},
	{
		name: "no position, and an offset sync of something else",
		find: func(r *rig) {
			r.fill(records(0, "a", "b", "c"))
			r.target.write(copies, before, records(0, "x", "y")...)
			r.sync(0, 0)
		}, parked: "set heliograph.missing.position to one of scan, end, start", target: "x y",
	},
	{
		name: "MirrorMaker stopped in order, and a record like the last one came since",
		find: func(r *rig) {
			r.fill(records(0, "b", "a", "a"))
			r.target.write(copies, before, records(0, "b", "a")...)
			r.stand(r.lane(), positionAt(orders, 2, nil))
		}, copied: 1, target: "b a a",
	},
	{
		name: "MirrorMaker died, copied some twice, and died again",
		find: func(r *rig) {
			r.fill(numbered(0, 9))
			r.target.write(copies, before, numbered(0, 6)...)
			r.target.write(copies, before, numbered(3, 2)...)
			r.stand(r.lane(), positionAt(orders, 3, nil))
			r.sync(1, 1)
		}, copied: 3, target: "0 1 2 3 4 5 3 4 6 7 8",
	},
	{
		name: "MirrorMaker's offset sync is of another life of the copy",
		find: func(r *rig) {
			r.fill(numbered(0, 9))
			r.target.write(copies, before, numbered(0, 7)...)
			r.stand(r.lane(), positionAt(orders, 3, nil))
			r.sync(2, 5)
		}, copied: 2, target: "0 1 2 3 4 5 6 7 8",
	},
	{
		name: "retention overtook the position",
		find: func(r *rig) {
			r.fill(numbered(5, 3))
			r.source.logs[orders].start = 5
			r.target.write(copies, before, numbered(0, 3)...)
			r.stand(r.lane(), positionAt(orders, 3, r.facts(3, true)))
		}, copied: 3, target: "0 1 2 5 6 7", lost: []losses.Kind{losses.Overtaken},
	},
	{
		name: "retention overtook the position, and a person is to be asked",
		find: func(r *rig) {
			r.replica.Policy.ParkOvertaken = true
			r.fill(numbered(5, 3))
			r.source.logs[orders].start = 5
			r.target.write(copies, before, numbered(0, 3)...)
			r.stand(r.lane(), positionAt(orders, 3, r.facts(3, true)))
		}, parked: "set heliograph.retention.overtaken = continue", target: "0 1 2", lost: []losses.Kind{losses.Overtaken},
	},
	{
		name: "killed, and retention took some of what was written",
		find: func(r *rig) {
			r.fill(numbered(2, 4))
			r.source.logs[orders].start = 2
			r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
			r.target.write(copies, before, numbered(0, 4)...)
		}, copied: 2, target: "0 1 2 3 4 5", marked: true, // nothing is lost: what was taken had been copied
	},
	{
		name: "killed, and retention took some of what was written, which repeats",
		find: func(r *rig) {
			r.fill(records(1, "a", "a", "b"))
			r.source.logs[orders].start = 1
			r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
			r.target.write(copies, before, records(0, "a", "a")...)
		}, parked: "cannot be told", target: "a a", marked: true, // copying could double, skipping could lose
	},
	{
		name: "the copy was made again",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			f := r.facts(4, true)
			f.TargetTopicID = kafka.TopicID{9}
			r.stand(r.lane(), positionAt(orders, 4, f))
		}, parked: "delete the partition's position and set heliograph.missing.position", lost: []losses.Kind{losses.TargetTruncated},
	},
	{
		name: "the copy was made again, told to start over",
		find: func(r *rig) {
			r.replica.Policy.RestartTarget = true
			r.fill(numbered(0, 6))
			f := r.facts(4, true)
			f.TargetTopicID = kafka.TopicID{9}
			r.stand(r.lane(), positionAt(orders, 4, f))
		}, copied: 6, target: "0 1 2 3 4 5", lost: []losses.Kind{losses.TargetTruncated},
	},
	{
		name: "committed in a transaction with its data",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
			f := r.facts(4, false)
			f.Mode = replicate.ModeExactlyOnce
			r.stand(r.lane(), positionAt(orders, 4, f))
			r.target.logs[copies].append(abortMarker(before))
		}, copied: 2, target: "0 1 2 3 4 5",
	},
}

func TestTakingOver(t *testing.T) {
	for _, c := range slices.Concat(takeovers, behindForgotten) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				c.find(r)
				r.takeOver()
				s := r.settle()
				fence := r.keeper.Fence()
				r.close()
				c.check(t, r, s)
				if fence != cmp.Or(c.fence, FenceMarker) {
					t.Errorf("fence %s", fence)
				}
			})
		})
	}
}

func (c *takeover) check(t *testing.T, r *rig, s replicate.TrackStatus) {
	t.Helper()
	switch {
	case c.parked != "" && (s.State != replicate.TrackParked || !strings.Contains(s.Reason, c.parked)):
		t.Errorf("%s: %q, want it parked: %s", s.State, s.Reason, c.parked)
	case c.parked == "" && s.State != replicate.TrackRunning:
		t.Errorf("%s: %s", s.State, s.Reason)
	}
	if s.Records != c.copied {
		t.Errorf("%d records copied, want %d", s.Records, c.copied)
	}
	if got := values(r.target.data(copies)); got != c.target {
		t.Errorf("the copy holds %q, want %q", got, c.target)
	}
	if got := slices.Contains(r.target.marked, copies); got != c.marked {
		t.Errorf("markers in %v, want one in the copy: %t", keysOf(r.target.marked), c.marked)
	}
	var lost []losses.Kind
	for _, e := range r.ledger.entries {
		lost = append(lost, e.Kind)
	}
	if !slices.Equal(lost, c.lost) {
		t.Errorf("the ledger holds %v, want %v", lost, c.lost)
	}
}

// The end of the fence's transaction proves nothing: its marker must be seen in
// the partition's log before anything is written behind it.
func TestNothingIsWrittenBeforeTheMarkerIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.fill(numbered(0, 8))
		r.stand(r.lane(), positionAt(orders, 0, r.facts(0, false)))
		r.target.write(copies, before, numbered(0, 2)...)
		r.target.slow = true
		r.takeOver()
		if s := r.settle(); s.Source == orders {
			t.Errorf("without a marker: %s", s.State)
		}
		late := r.target.produce(sealed(before, numbered(2, 2)))
		if late.Code != kafka.CodeNone {
			t.Errorf("the last owner's late batch: %s", late.Code)
		}
		r.target.writeMarkers()
		if late = r.target.produce(sealed(before, numbered(4, 2))); late.Code != kafka.CodeInvalidProducerEpoch {
			t.Errorf("a batch of the last owner behind the marker: %s", late.Code)
		}
		s := r.settle()
		r.close()
		if got := values(r.target.data(copies)); got != "0 1 2 3 4 5 6 7" || s.Records != 4 {
			t.Errorf("%d copied, the copy holds %q", s.Records, got)
		}
	})
}

func sealed(pid kafka.ProducerID, recs []kafka.Record) kafka.ProducePartition {
	b, err := recordbatch.Build(recs, recordbatch.BuildOptions{})
	if err != nil {
		panic(err)
	}
	recordbatch.Seal(b, recordbatch.Stamp{ProducerID: pid.ID, Epoch: pid.Epoch})
	return kafka.ProducePartition{TopicPartition: copies, Batch: b}
}

func TestALossIsWrittenDownBeforeItIsPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.fill(numbered(5, 3))
		r.source.logs[orders].start = 5
		r.target.write(copies, before, numbered(0, 3)...)
		r.stand(r.lane(), positionAt(orders, 3, r.facts(3, true)))
		r.ledger.err = errLedger
		r.takeOver()
		if s := r.settle(); s.Source == orders {
			t.Errorf("without a ledger: %s", s.State)
		}
		r.ledger.mu.Lock()
		r.ledger.err = nil
		r.ledger.mu.Unlock()
		s := r.settle()
		r.close()
		if s.Records != 3 || len(r.ledger.entries) != 1 {
			t.Errorf("%d records copied, %d losses", s.Records, len(r.ledger.entries))
		}
	})
}
