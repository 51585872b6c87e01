package replicate

import (
	"testing"
	"testing/synctest"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// Records of somebody else between ours park the partition under identity
// naming, in transactions as well as without them. Markers that come late, or
// twice, are nobody's.
func TestForeignRecordsPark(t *testing.T) {
	for name, transactional := range map[string]bool{"default": false, "exactly-once": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { foreignRecordsPark(t, transactional) })
		})
	}
}

func foreignRecordsPark(t *testing.T, transactional bool) {
	r := newRig(1, 0, 1)
	r.policy.ParkForeign = true
	pid := kafka.ProducerID{ID: 7, Epoch: 1}
	txn := r.target.transactional(pid, 2)
	lane := LaneSpec{
		Producer: pid, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
		Ended: func(string, bool) {},
	}
	if transactional {
		lane.TransactionalID, lane.Transactions = "A-mm2-MirrorSourceConnector-0", txn
	}
	r.task.OpenLane(lane).Start([]TrackSpec{r.spec(0)})
	state := func() TrackStatus { return r.task.Snapshot()[0] }
	write := func(from, n int) {
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, from, n))
		waitUntil(t, "the records are copied", func() bool { return state().Position == mirror.UpstreamOffset(from+n) })
	}

	write(0, 5)
	r.target.appendMarker(spec(0).Target)
	write(5, 5)
	synctest.Wait()
	if got := state(); got.State != TrackRunning || got.Foreign != 0 {
		t.Fatalf("a late marker was taken for %d foreign records: %s %s", got.Foreign, got.State, got.Reason)
	}

	r.target.appendRaw(spec(0).Target, batchOf(t, recordbatch.CodecNone, 100, 3))
	r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 10, 1))
	waitUntil(t, "the partition is parked", func() bool { return state().State == TrackParked })
	if got := state(); got.Foreign != 3 {
		t.Errorf("%d foreign records, want 3: %s", got.Foreign, got.Reason)
	}
	waitUntil(t, "the ledger has it", func() bool { return r.ledger.len() == 1 })
	r.task.Close()
}
