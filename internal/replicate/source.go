package replicate

import (
	"context"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

// blockedWait is the longest a fetch waits while some track's queue is full:
// the track may drain any moment and then wants to be part of the next fetch.
const blockedWait = 20 * time.Millisecond

// source reads from one source broker over one connection.
type source struct {
	task *Task
	node int32

	mu      sync.Mutex
	conn    Fetcher // nil while there is none
	tracks  map[kafka.TopicPartition]*Track
	touched map[kafka.TopicPartition]struct{} // to be added, moved or forgotten before the next fetch

	// Of whole answers, and of the path; only the source's goroutine uses them.
	answer window
	trip   roundTrip

	wake chan struct{}
}

func newSource(t *Task, node int32) *source {
	near := min(t.opts.FetchMaxBytes, nearAnswer)
	return &source{
		task: t, node: node, answer: window{bytes: near, least: near, most: t.opts.FetchMaxBytes}, wake: make(chan struct{}, 1),
		tracks:  map[kafka.TopicPartition]*Track{},
		touched: map[kafka.TopicPartition]struct{}{},
	}
}

// add gives the source a track to read.
func (s *source) add(tr *Track) {
	s.mu.Lock()
	s.tracks[tr.spec.Source] = tr
	s.touched[tr.spec.Source] = struct{}{}
	s.mu.Unlock()
	s.signal()
}

// remove takes a track away. An answer that is on its way is thrown away.
func (s *source) remove(tr *Track) {
	s.mu.Lock()
	if s.tracks[tr.spec.Source] == tr {
		delete(s.tracks, tr.spec.Source)
		s.touched[tr.spec.Source] = struct{}{}
	}
	s.mu.Unlock()
	s.signal()
}

// touch notes that a track's wish has changed. It may be called with the
// track's lock held.
func (s *source) touch(tr *Track) {
	s.mu.Lock()
	s.touched[tr.spec.Source] = struct{}{}
	s.mu.Unlock()
	s.signal()
}

func (s *source) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run reads until ctx ends.
func (s *source) run(ctx context.Context) {
	for tries := 0; ctx.Err() == nil; {
		if !s.waitTracks(ctx) {
			return
		}
		conn, err := s.task.source.DialFetch(ctx, s.node)
		if err == nil {
			s.touchAll()
			s.connected(conn)
			var fetched bool
			fetched, err = s.serve(ctx, conn)
			s.connected(nil)
			conn.Close()
			if fetched {
				tries = 0
			}
		}
		if err != nil && ctx.Err() == nil {
			s.failAll(err)
			sleep(ctx, backoff(tries))
			tries++
		}
	}
}

func (s *source) connected(conn Fetcher) {
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
}

func (s *source) waitTracks(ctx context.Context) bool {
	for {
		s.mu.Lock()
		n := len(s.tracks)
		s.mu.Unlock()
		if n > 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.wake:
		}
	}
}

func (s *source) touchAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tp := range s.tracks {
		s.touched[tp] = struct{}{}
	}
}

// failAll tells every track that its broker cannot be reached; each looks for
// its leader again.
func (s *source) failAll(err error) {
	s.mu.Lock()
	tracks := make([]*Track, 0, len(s.tracks))
	for _, tr := range s.tracks {
		tracks = append(tracks, tr)
	}
	s.mu.Unlock()
	for _, tr := range tracks {
		tr.sourceTrouble("source: " + err.Error())
	}
}

// serve fetches until the connection fails, ctx ends or no track is left.
func (s *source) serve(ctx context.Context, conn Fetcher) (fetched bool, err error) {
	wanted := map[kafka.TopicPartition]struct{}{}
	for ctx.Err() == nil {
		left := s.ask(conn, wanted)
		if left == 0 {
			return fetched, nil
		}
		if len(wanted) == 0 {
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
			continue
		}
		waitBrakes(ctx, s.task.brakes)
		answer, err := conn.Fetch(ctx, s.limits(len(wanted) < left))
		if err != nil {
			return fetched, err
		}
		fetched = true
		s.hand(answer, wanted)
	}
	return fetched, nil
}

func (s *source) limits(blocked bool) kafka.FetchLimits {
	wait := s.task.opts.FetchMaxWait
	if blocked {
		wait = min(wait, blockedWait)
	}
	return kafka.FetchLimits{
		MaxWaitMillis: int32(wait.Milliseconds()), MinBytes: 1,
		MaxBytes:  brakedBytes(s.task.brakes, s.answer.ask()),
		Isolation: s.task.opts.Isolation,
	}
}

// ask tells the connection's session what has changed since the last fetch and
// returns how many tracks this source has.
func (s *source) ask(conn Fetcher, wanted map[kafka.TopicPartition]struct{}) int {
	s.mu.Lock()
	type change struct {
		tp kafka.TopicPartition
		tr *Track
	}
	changes := make([]change, 0, len(s.touched))
	for tp := range s.touched {
		changes = append(changes, change{tp, s.tracks[tp]})
	}
	clear(s.touched)
	left := len(s.tracks)
	s.mu.Unlock()
	var piece int32
	for _, c := range changes {
		if c.tr != nil {
			if p, batch, ok := c.tr.fetchable(); ok {
				conn.Want(p)
				piece = max(piece, batch)
				wanted[c.tp] = struct{}{}
				continue
			}
		}
		if _, was := wanted[c.tp]; was {
			conn.Forget(c.tp)
			delete(wanted, c.tp)
		}
	}
	s.answer.piece = piece
	return left
}

// hand gives each partition's part of an answer to its track.
func (s *source) hand(answer *kafka.Fetched, wanted map[kafka.TopicPartition]struct{}) {
	if answer.Buffer != nil {
		defer answer.Buffer.Release()
	}
	bytes, trip := 0, s.trip.waited(answer.Waited)
	for i := range answer.Partitions {
		p := &answer.Partitions[i]
		s.task.traffic.fetched.Add(int64(len(p.Records)))
		s.mu.Lock()
		tr := s.tracks[p.TopicPartition]
		if tr != nil {
			s.touched[p.TopicPartition] = struct{}{}
		}
		s.mu.Unlock()
		if _, was := wanted[p.TopicPartition]; tr == nil || !was {
			continue
		}
		bytes += len(p.Records)
		switch {
		case p.Code != kafka.CodeNone:
			tr.fetchFailed(p)
		case p.PreferredReplica != kafka.NoNode && p.PreferredReplica != s.node && len(p.Records) == 0:
			s.task.prefer(tr, p.PreferredReplica)
		case p.DivergingEpoch != kafka.NoLeaderEpoch:
			tr.truncated(p)
		default:
			tr.deliver(p, answer.Buffer, trip)
		}
	}
	s.answer.fetched(bytes, trip)
	for _, b := range s.task.brakes {
		b.Spend(bytes)
	}
}

// backoff is the pause before try n+1: 50 ms doubling to five seconds, with jitter.
func backoff(n int) time.Duration {
	d := min(50*time.Millisecond<<min(n, 10), 5*time.Second)
	return d/2 + jitter(d/2)
}
