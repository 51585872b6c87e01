package coord

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/recordbatch"
	"heliograph/internal/replicate"
)

// memoryLog is one partition of a cluster in memory, read in small answers.
type memoryLog struct {
	tp      kafka.TopicPartition
	batches [][]byte // base offsets set
	end     int64
}

// Leader answers from memory.
//
//nolint:revive // the four results are the port's
func (m *memoryLog) Leader(kafka.TopicPartition) (int32, kafka.LeaderEpoch, kafka.TopicID, bool) {
	return 1, 0, kafka.TopicID{}, true
}
func (m *memoryLog) RefreshMetadata(context.Context, ...string) error  { return nil }
func (m *memoryLog) NoteLeader(kafka.TopicPartition, kafka.LeaderHint) {}
func (m *memoryLog) Forget(kafka.TopicPartition)                       {}
func (m *memoryLog) DialFetch(context.Context, int32) (replicate.Fetcher, error) {
	return &memoryReader{memoryLog: m}, nil
}

func (m *memoryLog) ListOffsets(context.Context, []kafka.TopicPartition, kafka.OffsetAt, kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	return map[kafka.TopicPartition]kafka.PartitionOffset{m.tp: {Offset: m.end}}
}

type memoryReader struct {
	*memoryLog
	at int64
}

func (r *memoryReader) Want(p kafka.FetchPartition) { r.at = p.Offset }
func (r *memoryReader) Close()                      {}

// Fetch answers with the batch that holds the wanted offset and the next one.
func (r *memoryReader) Fetch(ctx context.Context, _ kafka.FetchLimits) (*kafka.Fetched, error) {
	if r.at >= r.end {
		pause(ctx, time.Second)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p := kafka.FetchedPartition{TopicPartition: r.tp, PreferredReplica: kafka.NoNode, DivergingEpoch: kafka.NoLeaderEpoch}
	for i, raw := range r.batches {
		h, err := recordbatch.ParseHeader(raw)
		if err != nil {
			return nil, err
		}
		if h.NextOffset() > r.at {
			p.Records = append(p.Records, raw...)
			if i+1 < len(r.batches) {
				p.Records = append(p.Records, r.batches[i+1]...)
			}
			break
		}
	}
	return &kafka.Fetched{Partitions: []kafka.FetchedPartition{p}}, nil
}

// write appends one batch of records with the given contents.
func (m *memoryLog) write(t *testing.T, producer kafka.ProducerID, values ...int) {
	t.Helper()
	records := make([]kafka.Record, len(values))
	for i, v := range values {
		records[i] = kafka.Record{Key: []byte("k"), Value: fmt.Appendf(nil, "record %d", v), Timestamp: 1}
	}
	raw, err := recordbatch.Build(records, recordbatch.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	recordbatch.Seal(raw, recordbatch.Stamp{ProducerID: producer.ID, Epoch: producer.Epoch})
	m.append(raw, len(values))
}

// mark appends an abort marker.
func (m *memoryLog) mark(t *testing.T, producer kafka.ProducerID) {
	t.Helper()
	m.write(t, producer, -1)
	const attributes, transactionalControl = 21, 0x30
	binary.BigEndian.PutUint16(m.batches[len(m.batches)-1][attributes:], transactionalControl)
}

func (m *memoryLog) append(raw []byte, n int) {
	binary.BigEndian.PutUint64(raw, uint64(m.end))
	m.batches = append(m.batches, raw)
	m.end += int64(n)
}

// cut removes whole batches below an offset, as retention does, and returns the new start.
func (m *memoryLog) cut(below int64) int64 {
	for len(m.batches) > 0 {
		h, _ := recordbatch.ParseHeader(m.batches[0])
		if h.NextOffset() > below {
			return h.BaseOffset
		}
		m.batches = m.batches[1:]
	}
	return m.end
}

var (
	us, us2, them = kafka.ProducerID{ID: 7}, kafka.ProducerID{ID: 7, Epoch: 1}, kafka.ProducerID{ID: 99}
	ours          = map[int64]bool{7: true}
)

// TestScanFindsThePlace writes numbered records to a source, copies a part of
// them behind a position, in other batches, with markers and foreign records
// between, and expects the scan to go on exactly behind the last copied one.
func TestScanFindsThePlace(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		source, target := &memoryLog{tp: kafka.TopicPartition{Topic: "t"}}, &memoryLog{tp: kafka.TopicPartition{Topic: "A.t"}}
		total, position := 20+rng.IntN(60), rng.IntN(20)
		copied := position + rng.IntN(total-position+1)
		fill := func(m *memoryLog, producer kafka.ProducerID, from, to int) {
			for from < to {
				n := min(to-from, 1+rng.IntN(7))
				values := make([]int, n)
				for i := range values {
					values[i] = from + i
				}
				m.write(t, producer, values...)
				from += n
				if m == target && rng.IntN(4) == 0 {
					m.mark(t, producer)
				}
				if m == target && rng.IntN(4) == 0 {
					m.write(t, them, rng.IntN(total))
				}
			}
		}
		fill(source, them, 0, total)
		fill(target, us, 0, position)
		at := target.end
		fill(target, us, position, copied)
		target.mark(t, us2)
		start := int64(0)
		if rng.IntN(2) == 0 {
			start = source.cut(rng.Int64N(source.end + 1))
		}
		in := plan.PlaceInput{
			Source: source.tp, Target: target.tp,
			SourceLog: plan.SourceLog{Start: mirror.UpstreamOffset(start), End: mirror.UpstreamOffset(source.end)},
			TargetLog: plan.TargetLog{End: mirror.DownstreamOffset(target.end)},
			Stored:    &plan.Stored{Last: mirror.UpstreamOffset(position - 1), Committed: true},
		}
		p := plan.Placement{Kind: plan.PlaceScan, Source: max(mirror.UpstreamOffset(position), in.SourceLog.Start), Target: mirror.DownstreamOffset(at), Anchored: true}
		if in.SourceLog.Start > mirror.UpstreamOffset(position) {
			p.Gap = &plan.Gap{From: mirror.UpstreamOffset(position), To: in.SourceLog.Start}
		}
		s := scanner{source: source, target: target, seed: maphash.MakeSeed()}
		f, err := s.scan(t.Context(), in, p, ours, limit{marker: us2})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if want := max(mirror.UpstreamOffset(copied), in.SourceLog.Start); f.next != want || int64(f.write) != target.end || f.ours != copied-position {
			t.Fatalf("seed %d: goes on at %d, writes at %d, %d records of ours; want %d, %d, %d", seed, f.next, f.write, f.ours, want, target.end, copied-position)
		}
		if want := min(copied, int(start)) - position; p.Gap != nil && f.gone != want {
			t.Fatalf("seed %d: %d records of ours are gone at the source, want %d", seed, f.gone, want)
		}
	}
}

// TestScanRefuses what must not be guessed.
func TestScanRefuses(t *testing.T) {
	placed := func(source, target *memoryLog, anchored bool) (plan.PlaceInput, plan.Placement) {
		in := plan.PlaceInput{
			Source: source.tp, Target: target.tp,
			SourceLog: plan.SourceLog{End: mirror.UpstreamOffset(source.end)}, TargetLog: plan.TargetLog{End: mirror.DownstreamOffset(target.end)},
		}
		return in, plan.Placement{Kind: plan.PlaceScan, Anchored: anchored}
	}
	for _, row := range []struct {
		name           string
		anchored       bool
		source, target []int
		marker         bool
	}{
		{"another content", true, []int{1, 2, 3}, []int{1, 9}, true},
		{"a marker that is not in the log", true, []int{1, 2, 3}, []int{1, 2}, false},
		{"no position, and nothing of the target is at the source", false, []int{1, 2, 3}, []int{8, 9}, true},
		{"no position, and records that repeat", false, []int{1, 1, 1, 1}, []int{1, 1}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			source, target := &memoryLog{tp: kafka.TopicPartition{Topic: "t"}}, &memoryLog{tp: kafka.TopicPartition{Topic: "A.t"}}
			source.write(t, them, row.source...)
			target.write(t, us, row.target...)
			to := limit{marker: kafka.NoProducer, end: target.end}
			if row.anchored {
				to.marker = us2
				if row.marker {
					target.mark(t, us2)
				}
			}
			in, p := placed(source, target, row.anchored)
			s := scanner{source: source, target: target, seed: maphash.MakeSeed()}
			synctest.Test(t, func(t *testing.T) {
				if f, err := s.scan(t.Context(), in, p, nil, to); err == nil || errors.Is(err, errNoMarker) == row.marker {
					t.Errorf("found %+v, %v; want another error", f, err)
				}
			})
		})
	}
}

// TestTailHoldsAllThatMayBeCopied: markers take offsets of the target, so that
// as many offsets as the source has records are too few.
func TestTailHoldsAllThatMayBeCopied(t *testing.T) {
	source, target := &memoryLog{tp: kafka.TopicPartition{Topic: "t"}}, &memoryLog{tp: kafka.TopicPartition{Topic: "A.t"}}
	for i := range 50 {
		source.write(t, them, i)
		target.write(t, us, i)
		target.mark(t, us)
	}
	s := placed{in: plan.PlaceInput{
		Source: source.tp, Target: target.tp,
		SourceLog: plan.SourceLog{End: mirror.UpstreamOffset(source.end)}, TargetLog: plan.TargetLog{End: mirror.DownstreamOffset(target.end)},
	}, p: plan.Placement{Kind: plan.PlaceScan}}
	s.p.Target = s.tailStart()
	sc := scanner{source: source, target: target, seed: maphash.MakeSeed()}
	f, err := sc.scan(t.Context(), s.in, s.p, nil, limit{marker: kafka.NoProducer, end: target.end})
	if err != nil || f.next != 50 {
		t.Errorf("goes on at %d, %v; want 50", f.next, err)
	}
}

// What an aborted transaction left on the target counts for nothing: no reader
// sees it. Taken for delivered it would be lost.
func TestScanTakesBackWhatWasAborted(t *testing.T) {
	source, target := &memoryLog{tp: kafka.TopicPartition{Topic: "t"}}, &memoryLog{tp: kafka.TopicPartition{Topic: "A.t"}}
	transactional := func(producer kafka.ProducerID, values ...int) {
		target.write(t, producer, values...)
		recordbatch.Seal(target.batches[len(target.batches)-1], recordbatch.Stamp{ProducerID: producer.ID, Epoch: producer.Epoch, Transactional: true})
		// Seal has set the base offset to 0.
		binary.BigEndian.PutUint64(target.batches[len(target.batches)-1], uint64(target.end-int64(len(values))))
	}
	source.write(t, them, 0, 1, 2, 3, 4, 5, 6, 7)
	target.write(t, us, 0, 1, 2)
	transactional(us, 3, 4)
	transactional(them, 9)
	transactional(us, 5)
	target.append(abortMarker(us2), 1)
	target.append(abortMarker(them), 1)
	for _, anchored := range []bool{true, false} {
		in := plan.PlaceInput{
			Source: source.tp, Target: target.tp,
			SourceLog: plan.SourceLog{End: mirror.UpstreamOffset(source.end)}, TargetLog: plan.TargetLog{End: mirror.DownstreamOffset(target.end)},
		}
		s := scanner{source: source, target: target, seed: maphash.MakeSeed()}
		to := limit{marker: kafka.NoProducer, end: target.end}
		f, err := s.scan(t.Context(), in, plan.Placement{Kind: plan.PlaceScan, Anchored: anchored}, ours, to)
		if err != nil {
			t.Fatal(err)
		}
		if f.next != 3 || f.ours != 3 || f.foreign != 0 || int64(f.write) != target.end {
			t.Errorf("anchored %v: goes on at %d behind %d records of ours and %d of others, writes at %d; want 3, 3, 0, %d",
				anchored, f.next, f.ours, f.foreign, f.write, target.end)
		}
	}
}
