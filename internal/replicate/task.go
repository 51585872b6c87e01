package replicate

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// preferredFor is how long a follower is read before the leader is asked again (KIP-392).
const preferredFor = 5 * time.Minute

// Options are a flow's settings of the data plane.
type Options struct {
	Flow mirror.FlowID
	// SourceClusterID and TargetClusterID go into every position.
	SourceClusterID, TargetClusterID string

	Isolation         kafka.Isolation
	FetchMaxBytes     int32 // of one fetch answer
	PartitionMaxBytes int32 // of one partition in it; also the bound of a track's queue
	FetchMaxWait      time.Duration
	MaxRequestBytes   int32 // of one produce request
	RequestTimeout    time.Duration
	// Connections is how many connections go to each target broker; a partition
	// keeps to one of them.
	Connections int
	// Codec compresses all data anew; nil keeps each batch's own.
	Codec        *recordbatch.Codec
	CommitEvery  time.Duration // of positions
	OffsetLagMax int64
}

// Deps are what a task works with.
type Deps struct {
	Source Source
	Target Target
	Budget *Budget
	Brakes []*Brake
	Syncs  Syncs // nil: offset syncs are off
	Log    *slog.Logger
	// Ledger keeps what will not be copied.
	Ledger Ledger
	// CountRecords counts the records, not the markers, of a part of the target's
	// log. It is asked in exactly-once only.
	CountRecords func(ctx context.Context, tp kafka.TopicPartition, from, to mirror.DownstreamOffset) (int64, error)
}

// Task moves the batches of one flow. Lanes are opened and closed by coord; the
// task serves whatever lanes are open.
type Task struct {
	opts   Options
	source Source
	target Target
	budget *Budget
	brakes []*Brake
	syncs  Syncs
	log    *slog.Logger
	ledger Ledger
	// countRecords is Deps.CountRecords.
	countRecords func(ctx context.Context, tp kafka.TopicPartition, from, to mirror.DownstreamOffset) (int64, error)
	steward      *steward

	ctx      context.Context //nolint:containedctx // the life of the goroutines that Close ends
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	requests sync.Pool
	traffic  traffic
	merger   merger
	// expiration is how long the target remembers producers.
	expiration atomic.Int64

	mu    sync.Mutex
	lanes map[int32]*Lane
	// byPartition finds tracks by their source partition.
	byPartition map[kafka.TopicPartition]*Track
	sources     map[int32]*source
	sinks       map[sinkKey]*sink
}

type sinkKey struct {
	node int32
	slot int
}

// New makes a task with no lanes.
func New(deps Deps, opts Options) *Task {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Task{
		opts: opts, source: deps.Source, target: deps.Target, budget: deps.Budget, brakes: deps.Brakes,
		syncs: deps.Syncs, log: deps.Log, ledger: deps.Ledger, countRecords: deps.CountRecords, ctx: ctx, cancel: cancel,
		lanes: map[int32]*Lane{}, byPartition: map[kafka.TopicPartition]*Track{}, sources: map[int32]*source{}, sinks: map[sinkKey]*sink{},
	}
	t.requests.New = func() any { return newRequest() }
	t.merger.budget = t.budget
	t.NoteExpiration(defaultExpiration)
	t.steward = newSteward(t)
	t.wg.Go(func() { t.steward.run(ctx) })
	t.wg.Go(func() { t.leaveHung(ctx) })
	return t
}

// Close ends everything at once. Lanes that should drain are closed before.
func (t *Task) Close() {
	t.mu.Lock()
	lanes := make([]*Lane, 0, len(t.lanes))
	for _, l := range t.lanes {
		lanes = append(lanes, l)
	}
	t.mu.Unlock()
	for _, l := range lanes {
		l.abandon()
	}
	t.cancel()
	t.wg.Wait()
}

// Update takes changed demands of target topics, such as a raised max.message.bytes.
func (t *Task) Update(replicas []Replica) {
	byTP := make(map[kafka.TopicPartition]Replica, len(replicas))
	for _, r := range replicas {
		byTP[r.Source] = r
	}
	for _, tr := range t.tracks() {
		if r, ok := byTP[tr.spec.Source]; ok {
			tr.mu.Lock()
			tr.spec.Demands, tr.limit = r.Demands, r.Demands.MaxMessageBytes
			tr.mu.Unlock()
		}
	}
}

func (t *Task) tracks() []*Track {
	t.mu.Lock()
	lanes := make([]*Lane, 0, len(t.lanes))
	for _, l := range t.lanes {
		lanes = append(lanes, l)
	}
	t.mu.Unlock()
	var tracks []*Track
	for _, l := range lanes {
		tracks = append(tracks, l.list()...)
	}
	return tracks
}

func (t *Task) recycle(r *request) {
	clear(r.Partitions)
	clear(r.outlets)
	r.Partitions, r.outlets, r.bytes = r.Partitions[:0], r.outlets[:0], 0
	r.line, r.Joins = nil, false
	t.requests.Put(r)
}

// routeSourceLocked puts the track with the source broker that it is read from.
// It reports false while no leader is known.
func (t *Task) routeSourceLocked(tr *Track) bool {
	node, _, id, ok := t.source.Leader(tr.spec.Source)
	if !ok {
		return false
	}
	if id.Known() && tr.spec.SourceID.Known() && id != tr.spec.SourceID {
		tr.replacedLocked(tr.spec.Policy.RestartSource, losses.SourceRecreated, tr.position, max(tr.position, tr.stats.end),
			fmt.Sprintf("topic %s was deleted and made again on the source (id %s, was %s)", tr.spec.Source.Topic, id, tr.spec.SourceID))
		return true
	}
	if tr.preferred != kafka.NoNode {
		node = tr.preferred
	}
	s := t.sourceFor(node)
	if tr.from != nil && tr.from != s {
		tr.from.remove(tr)
	}
	tr.from = s
	tr.asked = -1
	s.add(tr)
	return true
}

// prefer moves a track to the follower that its leader named, for a while.
func (t *Task) prefer(tr *Track, node int32) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed || !tr.readsLocked() {
		return
	}
	tr.allowedLocked()
	tr.preferred = node
	t.routeSourceLocked(tr)
	time.AfterFunc(preferredFor, func() {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if !tr.closed && tr.preferred == node && tr.state == TrackRunning {
			tr.preferred = kafka.NoNode
			t.routeSourceLocked(tr)
		}
	})
}

// routeTargetLocked points the outlet to the connection of its leader. It
// reports false while no leader is known.
func (t *Task) routeTargetLocked(o *outlet) bool {
	node, _, id, ok := t.target.Leader(o.tp)
	if !ok {
		return false
	}
	o.topic = id
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s-%d", o.tp.Topic, o.tp.Partition)
	o.sink = t.sinkFor(sinkKey{node, int(h.Sum32() % uint32(max(1, t.opts.Connections)))})
	return true
}

func (t *Task) sourceFor(node int32) *source {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sources[node]
	if s == nil {
		s = newSource(t, node)
		t.sources[node] = s
		t.wg.Go(func() { s.run(t.ctx) })
	}
	return s
}

func (t *Task) sinkFor(key sinkKey) *sink {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[key]
	if s == nil {
		s = newSink(t, key.node, key.slot)
		t.sinks[key] = s
		t.wg.Go(func() { s.run(t.ctx) })
	}
	return s
}

// noteState logs a change of a track's state. It is called with the track's lock held.
func (t *Task) noteState(tr *Track, s TrackState, reason string) {
	if s == tr.state {
		return
	}
	attrs := []any{"topic", tr.spec.Source.Topic, "partition", tr.spec.Source.Partition, "upstream", int64(tr.position)}
	switch s {
	case TrackParked:
		t.log.Error("partition parked", append(attrs, "reason", reason)...)
	case TrackWaiting:
		t.log.Debug("partition waits", append(attrs, "reason", reason)...)
	case TrackRunning:
		t.log.Debug("partition runs", attrs...)
	}
}
