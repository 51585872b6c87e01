package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
)

// Options are a flow's settings for owning lanes.
type Options struct {
	Flow            mirror.FlowID
	GroupID         string
	PositionsTopic  string
	Lanes           int32  // partitions of the position topic, as it is
	RunsTopic       string // the offset map
	RunsPartitions  int32
	SourceClusterID string
	TargetClusterID string
	Isolation       kafka.Isolation
	Reset           plan.Reset
	// Leased reports whether the group still counts us among its members for sure;
	// nil where nobody can tell.
	Leased func() bool
	// ExactlyOnce delivers in transactions that carry the positions.
	ExactlyOnce bool
	// Syncs reads the flow's offset syncs and tells those of a partition, the
	// newest first. It is asked where a position is Java MirrorMaker's; nil where
	// there are none.
	Syncs func(ctx context.Context) (func(kafka.TopicPartition) []mirror.OffsetSync, error)
	// Settle finds every partition's place and writes it down, and copies nothing.
	Settle bool
	// JavaTasks is how many tasks MirrorMaker has run at most (tasks.max).
	JavaTasks int32
}

// Replica is a partition to copy.
type Replica struct {
	replicate.Replica
	// Born says that its topic came to be while the flow ran.
	Born bool
	// Missing is what to do where the target holds data and no position is known.
	Missing plan.Choice
}

// Keeper keeps this process's lanes of one flow: it takes them over when they
// are assigned, gives them up when they are revoked, and follows the set of
// partitions to copy.
type Keeper struct {
	opts   Options
	books  Books
	source Cluster
	target Target
	task   *replicate.Task
	ledger replicate.Ledger
	log    *slog.Logger
	seed   maphash.Seed

	ctx    context.Context //nolint:containedctx // the life of the lanes that Close ends
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	lanes    map[int32]*ownedLane
	replicas map[int32]map[kafka.TopicPartition]Replica // by lane
	fences   map[int32]Fence
	answers  map[int32]map[kafka.TopicPartition]plan.Choice // by lane, until it takes them
	left     map[int32]error                                // what lanes that are no longer ours left, until the group gives lanes again

	strays struct {
		sync.Mutex
		found positions
		at    time.Time
	}
	anchors struct {
		sync.Mutex
		of func(kafka.TopicPartition) []mirror.OffsetSync
		at time.Time
	}
	silenced sync.Once
	// expiration is how long the target remembers transactional ids; 0 where it
	// does not tell.
	expiration atomic.Int64
	// transactionVersion is the target's feature level of transactions.
	transactionVersion atomic.Int32
}

// NewKeeper makes a keeper that owns nothing yet.
func NewKeeper(opts Options, source Cluster, target Target, task *replicate.Task, ledger replicate.Ledger, log *slog.Logger) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	return &Keeper{
		opts: opts, books: booksOf(opts, target, log), source: source, target: target, task: task, ledger: ledger, log: log, seed: maphash.MakeSeed(),
		ctx: ctx, cancel: cancel, lanes: map[int32]*ownedLane{}, left: map[int32]error{},
		replicas: map[int32]map[kafka.TopicPartition]Replica{}, fences: map[int32]Fence{},
	}
}

// LaneOf is the lane a source partition belongs to: where MirrorMaker's
// producer would put its position record.
func (k *Keeper) LaneOf(tp kafka.TopicPartition) int32 {
	return k.books.laneOf(tp)
}

// SetReplicas tells the whole set of partitions to copy. Lanes add and end
// tracks to match.
func (k *Keeper) SetReplicas(replicas []Replica) {
	byLane := map[int32]map[kafka.TopicPartition]Replica{}
	for _, r := range replicas {
		n := k.LaneOf(r.Source)
		if byLane[n] == nil {
			byLane[n] = map[kafka.TopicPartition]Replica{}
		}
		byLane[n][r.Source] = r
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replicas = byLane
	for _, o := range k.lanes {
		o.signal()
	}
}

// Assigned takes lanes over. It returns at once; a takeover that fails is tried
// again until the lane is revoked.
func (k *Keeper) Assigned(lanes []int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range lanes {
		if k.lanes[n] != nil || k.ctx.Err() != nil {
			continue
		}
		ctx, cancel := context.WithCancelCause(k.ctx)
		quit, hurryUp := context.WithCancel(k.ctx)
		o := &ownedLane{
			keeper: k, index: n, cancel: cancel, quit: quit, hurryUp: hurryUp, done: make(chan struct{}),
			wake: make(chan struct{}, 1), ended: make(chan ending, 1), drain: make(chan context.Context, 1),
			left: k.left[n],
		}
		k.lanes[n] = o
		k.wg.Go(func() { o.run(ctx) })
	}
	clear(k.left) // what is not given to us has another owner, who scans
}

// Answer decides where a parked partition of a lane owned here goes on. It reports whether
// the partition is one of those. The lane places it anew, by the answer.
func (k *Keeper) Answer(tp kafka.TopicPartition, choice plan.Choice) bool {
	n := k.LaneOf(tp)
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.lanes[n]
	if _, ok := k.replicas[n][tp]; !ok || o == nil {
		return false
	}
	if k.answers == nil {
		k.answers = map[int32]map[kafka.TopicPartition]plan.Choice{}
	}
	if k.answers[n] == nil {
		k.answers[n] = map[kafka.TopicPartition]plan.Choice{}
	}
	k.answers[n][tp] = choice
	o.signal()
	return true
}

// answered takes a lane's answers.
func (k *Keeper) answered(lane int32) map[kafka.TopicPartition]plan.Choice {
	k.mu.Lock()
	defer k.mu.Unlock()
	answers := k.answers[lane]
	delete(k.answers, lane)
	return answers
}

// ErrUnsettled is in the error of lanes that were given up before their last
// positions were written as clean. Nothing is lost by it: who owns them next scans.
var ErrUnsettled = errors.New("not everything was settled; the next start finds the place by scanning")

// Revoked drains lanes until ctx ends and gives them up. It returns when
// nothing of them runs any more, with an [ErrUnsettled] if they were left in haste.
func (k *Keeper) Revoked(ctx context.Context, lanes []int32) error {
	owned := k.release(lanes)
	for _, o := range owned {
		o.drain <- ctx
		o.hurryUp()
	}
	var left []error
	for _, o := range owned {
		if err := k.ended(o); err != nil {
			left = append(left, err)
		}
	}
	return unsettled(left)
}

// ended waits for a lane that is ours no longer, and notes what it left.
func (k *Keeper) ended(o *ownedLane) error {
	<-o.done
	if o.left != nil {
		k.mu.Lock()
		k.left[o.index] = o.left
		k.mu.Unlock()
	}
	return o.left
}

// unsettled is one error for all lanes that left something: they mostly do so for
// the same reason.
func unsettled(left []error) error {
	switch len(left) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: %w", ErrUnsettled, left[0])
	}
	return fmt.Errorf("%w: %d lanes, among them %w", ErrUnsettled, len(left), left[0])
}

// errDraining interrupts a takeover because the lane is to be given up in order.
var errDraining = errors.New("the lane is being given up")

// errLost ends lanes whose ownership is gone already: nothing may be written.
var errLost = errors.New("the lane was lost to another owner")

// Lost ends lanes at once, without a last word.
func (k *Keeper) Lost(lanes []int32) {
	for _, o := range k.release(lanes) {
		o.cancel(errLost)
		_ = k.ended(o) // Close tells it, unless somebody takes the lane over before
	}
}

// release takes lanes off the keeper's list; what runs of them is the caller's to end.
func (k *Keeper) release(lanes []int32) []*ownedLane {
	k.mu.Lock()
	defer k.mu.Unlock()
	var owned []*ownedLane
	for _, n := range lanes {
		if o := k.lanes[n]; o != nil {
			owned = append(owned, o)
			delete(k.lanes, n)
			delete(k.fences, n)
		}
	}
	return owned
}

// Close drains all lanes until ctx ends. Its error tells of all lanes that were
// left in haste since the group last gave any, the last time included.
func (k *Keeper) Close(ctx context.Context) error {
	_ = k.Revoked(ctx, k.Owned()) // in left, too
	k.cancel()
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return unsettled(slices.Collect(maps.Values(k.left)))
}

// Owned lists the lanes owned here.
func (k *Keeper) Owned() []int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	lanes := make([]int32, 0, len(k.lanes))
	for n := range k.lanes {
		lanes = append(lanes, n)
	}
	return lanes
}

// Owns reports whether a lane is owned here.
func (k *Keeper) Owns(lane int32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lanes[lane] != nil
}

// Replicas is how many partitions are to be copied.
func (k *Keeper) Replicas() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, of := range k.replicas {
		n += len(of)
	}
	return n
}

// Fence is the weakest rung in use, empty while no lane has partitions.
func (k *Keeper) Fence() Fence {
	k.mu.Lock()
	defer k.mu.Unlock()
	var weakest Fence
	for _, f := range k.fences {
		if weakest == "" || f == FenceLease {
			weakest = f
		}
	}
	return weakest
}

func (k *Keeper) noteFence(lane int32, f Fence) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lanes[lane] != nil {
		k.fences[lane] = f
	}
}

func (k *Keeper) wanted(lane int32) map[kafka.TopicPartition]Replica {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.replicas[lane]
}

// strayAge is how long one reading of all lanes serves the lanes that are taken
// over together.
const strayAge = 10 * time.Second

// strayPositions reads all lanes, for keys that are not in their own. Many new
// topics at once cost one reading.
func (k *Keeper) strayPositions(ctx context.Context) (positions, error) {
	k.strays.Lock()
	defer k.strays.Unlock()
	if k.strays.found != nil && time.Since(k.strays.at) < strayAge {
		return k.strays.found, nil
	}
	found, err := k.books.readPositions(ctx, k.books.allLanes())
	if err != nil {
		return nil, err
	}
	k.strays.found, k.strays.at = found, time.Now()
	return found, nil
}

// bounds asks for both logs of partitions, in four requests for all.
func (k *Keeper) bounds(ctx context.Context, replicas []Replica) (map[kafka.TopicPartition]plan.SourceLog, map[kafka.TopicPartition]plan.TargetLog, map[kafka.TopicPartition]error) {
	source := make([]kafka.TopicPartition, len(replicas))
	target := make([]kafka.TopicPartition, len(replicas))
	for i, r := range replicas {
		source[i], target[i] = r.Source, r.Target
	}
	ss := k.source.ListOffsets(ctx, source, kafka.Earliest, kafka.ReadUncommitted)
	se := k.source.ListOffsets(ctx, source, kafka.Latest, kafka.ReadUncommitted)
	ts := k.target.ListOffsets(ctx, target, kafka.Earliest, kafka.ReadUncommitted)
	te := k.target.ListOffsets(ctx, target, kafka.Latest, kafka.ReadUncommitted)
	sources := map[kafka.TopicPartition]plan.SourceLog{}
	targets := map[kafka.TopicPartition]plan.TargetLog{}
	failed := map[kafka.TopicPartition]error{}
	for _, r := range replicas {
		if err := cmp.Or(ss[r.Source].Err, se[r.Source].Err, ts[r.Target].Err, te[r.Target].Err); err != nil {
			failed[r.Source] = fmt.Errorf("bounds of the logs: %w", err)
			continue
		}
		sources[r.Source] = plan.SourceLog{Start: mirror.UpstreamOffset(ss[r.Source].Offset), End: mirror.UpstreamOffset(se[r.Source].Offset)}
		targets[r.Source] = plan.TargetLog{Start: mirror.DownstreamOffset(ts[r.Target].Offset), End: mirror.DownstreamOffset(te[r.Target].Offset)}
	}
	return sources, targets, failed
}

// learnLeaders has both clients know the partitions' leaders, so that tracks
// start without waiting. What fails here is met again, with its reason, by the
// tracks themselves.
func (k *Keeper) learnLeaders(ctx context.Context, replicas []Replica) {
	source, target := map[string]bool{}, map[string]bool{}
	for _, r := range replicas {
		if _, _, _, ok := k.source.Leader(r.Source); !ok {
			source[r.Source.Topic] = true
		}
		if _, _, _, ok := k.target.Leader(r.Target); !ok {
			target[r.Target.Topic] = true
		}
	}
	for _, side := range []struct {
		c      Cluster
		topics map[string]bool
	}{{k.source, source}, {k.target, target}} {
		if len(side.topics) > 0 {
			_ = side.c.RefreshMetadata(ctx, slices.Collect(maps.Keys(side.topics))...)
		}
	}
}
