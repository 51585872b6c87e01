package offsets

import (
	"container/list"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// MaxSyncsInFlight is how many offset syncs MirrorMaker sends before it waits
// for an answer.
const MaxSyncsInFlight = 10

// SyncQueue holds the offset syncs of many partitions until they are sent:
// pending ones, to be sent now, and delayed ones, to be sent at the next
// promotion so that the end of a quiet partition is published too. It holds at
// most one of each per partition, the newest.
//
// Invariant: at most the given number of syncs are taken and not done.
type SyncQueue struct {
	pending, delayed syncList
	inFlight, limit  int
}

// NewSyncQueue makes an empty queue that lets limit syncs be in flight,
// [MaxSyncsInFlight] in MirrorMaker.
func NewSyncQueue(limit int) *SyncQueue {
	return &SyncQueue{pending: newSyncList(), delayed: newSyncList(), limit: max(limit, 1)}
}

// Due takes a sync that is to be sent now. It replaces what is held of the
// partition, and keeps the place of a pending one.
func (q *SyncQueue) Due(s mirror.OffsetSync) {
	q.delayed.remove(s.TopicPartition)
	q.pending.put(s)
}

// Delay takes a sync that can wait for the next promotion.
func (q *SyncQueue) Delay(s mirror.OffsetSync) { q.delayed.put(s) }

// Promote makes every delayed sync pending, in place of an older one of its partition.
func (q *SyncQueue) Promote() {
	for s, ok := q.delayed.pop(); ok; s, ok = q.delayed.pop() {
		q.pending.put(s)
	}
}

// Next takes the oldest pending sync to send it. It reports false while none is
// pending or too many are in flight. Each sync taken is answered by one Done.
func (q *SyncQueue) Next() (mirror.OffsetSync, bool) {
	if q.inFlight >= q.limit {
		return mirror.OffsetSync{}, false
	}
	s, ok := q.pending.pop()
	if ok {
		q.inFlight++
	}
	return s, ok
}

// Done says that a sync taken by Next was written or has failed for good. A
// failed one is lost, as in MirrorMaker; a later one makes up for it.
func (q *SyncQueue) Done() {
	if q.inFlight == 0 {
		panic("offsets: more syncs done than taken")
	}
	q.inFlight--
}

// Forget drops what is held of a partition that is no longer ours.
func (q *SyncQueue) Forget(tp kafka.TopicPartition) {
	q.pending.remove(tp)
	q.delayed.remove(tp)
}

// Pending is how many syncs wait to be sent now.
func (q *SyncQueue) Pending() int { return q.pending.order.Len() }

// Delayed is how many syncs wait for a promotion.
func (q *SyncQueue) Delayed() int { return q.delayed.order.Len() }

// InFlight is how many syncs were taken and are not done.
func (q *SyncQueue) InFlight() int { return q.inFlight }

// syncList holds one sync per partition in the order partitions came in.
type syncList struct {
	order *list.List
	of    map[kafka.TopicPartition]*list.Element
}

func newSyncList() syncList {
	return syncList{order: list.New(), of: map[kafka.TopicPartition]*list.Element{}}
}

func (l *syncList) put(s mirror.OffsetSync) {
	if e, ok := l.of[s.TopicPartition]; ok {
		e.Value = s
		return
	}
	l.of[s.TopicPartition] = l.order.PushBack(s)
}

func (l *syncList) remove(tp kafka.TopicPartition) {
	if e, ok := l.of[tp]; ok {
		l.order.Remove(e)
		delete(l.of, tp)
	}
}

func (l *syncList) pop() (mirror.OffsetSync, bool) {
	e := l.order.Front()
	if e == nil {
		return mirror.OffsetSync{}, false
	}
	s := l.order.Remove(e).(mirror.OffsetSync)
	delete(l.of, s.TopicPartition)
	return s, true
}
