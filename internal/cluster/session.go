package cluster

import (
	"math"

	"heliograph/internal/kafka"
)

// A fetchSession is both ends' shared memory of what a connection wants
// (KIP-227): a request names only what changed, an answer only what has news.
// Where the broker keeps no session (its cache is full, or it is older than 1.1),
// every request names everything.
//
// Invariant: a want is sent exactly when the broker does not have it as it is.
// Invariant: the topics of one session are all named by id or all by name.
type fetchSession struct {
	id    int32 // zero while there is none
	epoch int32 // of the next request; zero starts a session

	byID    bool // how this session names topics; set by each full request
	full    bool // the request under way names everything
	version int16

	wants   map[kafka.TopicPartition]*want
	topics  map[topicKey]*topicWants
	order   []*topicWants
	changed []*topicWants // topics that have dirty wants
	turn    int           // where a full request starts, so that without sessions no topic starves
	noID    int           // topics whose id is not known

	names names
}

type topicKey struct {
	name string
	id   kafka.TopicID
}

// topicWants are the wants of one topic, as requests group them.
type topicWants struct {
	topicKey
	index  int  // in fetchSession.order
	listed bool // in fetchSession.changed
	wants  []*want
	dirty  []*want
}

type want struct {
	kafka.FetchPartition
	topic *topicWants
	index int  // in topicWants.wants
	sent  bool // the broker's session holds it, perhaps with other values
	dirty bool // in topic.dirty
	gone  bool // to be forgotten with the next request
}

func newFetchSession() *fetchSession {
	return &fetchSession{
		wants:  make(map[kafka.TopicPartition]*want),
		topics: make(map[topicKey]*topicWants),
		names:  newNames(),
	}
}

// want adds or changes a partition.
func (s *fetchSession) want(fp kafka.FetchPartition) {
	w := s.wants[fp.TopicPartition]
	if w != nil && w.TopicID != fp.TopicID {
		// Another topic of the same name. By name, the broker's session could not
		// tell a forget of the old from one of the new: start over.
		s.drop(w)
		s.restart()
		w = nil
	}
	if w == nil {
		s.add(fp)
		return
	}
	if w.FetchPartition == fp && !w.gone {
		return
	}
	w.FetchPartition, w.gone = fp, false
	s.mark(w)
}

func (s *fetchSession) add(fp kafka.FetchPartition) {
	key := topicKey{fp.Topic, fp.TopicID}
	t := s.topics[key]
	if t == nil {
		t = &topicWants{topicKey: key, index: len(s.order)}
		s.topics[key] = t
		s.order = append(s.order, t)
		s.names.add(key.name, key.id)
		if !key.id.Known() {
			s.noID++
			if s.byID {
				s.restart()
			}
		}
	}
	w := &want{FetchPartition: fp, topic: t, index: len(t.wants)}
	t.wants = append(t.wants, w)
	s.wants[fp.TopicPartition] = w
	s.mark(w)
}

func (s *fetchSession) mark(w *want) {
	if w.dirty {
		return
	}
	w.dirty = true
	w.topic.dirty = append(w.topic.dirty, w)
	if !w.topic.listed {
		w.topic.listed = true
		s.changed = append(s.changed, w.topic)
	}
}

// forget takes a partition out.
func (s *fetchSession) forget(tp kafka.TopicPartition) {
	w := s.wants[tp]
	switch {
	case w == nil:
	case w.sent:
		w.gone = true
		s.mark(w)
	default:
		s.drop(w)
	}
}

// drop takes a want out of all lists, and its topic if it was the last.
func (s *fetchSession) drop(w *want) {
	t := w.topic
	delete(s.wants, w.TopicPartition)
	last := len(t.wants) - 1
	t.wants[w.index] = t.wants[last]
	t.wants[w.index].index = w.index
	t.wants[last] = nil
	t.wants = t.wants[:last]
	if w.dirty {
		for i, d := range t.dirty {
			if d == w {
				t.dirty = append(t.dirty[:i], t.dirty[i+1:]...)
				break
			}
		}
		w.dirty = false
	}
	if len(t.wants) > 0 {
		return
	}
	if !t.id.Known() {
		s.noID--
	}
	delete(s.topics, t.topicKey)
	end := len(s.order) - 1
	s.order[t.index] = s.order[end]
	s.order[t.index].index = t.index
	s.order[end] = nil
	s.order = s.order[:end]
}

// restart makes the next request a full one. A session that the broker still
// has is replaced by it: epoch zero with an id means just that.
func (s *fetchSession) restart() {
	s.epoch = 0
	for _, w := range s.wants {
		w.sent = false
	}
}

// lost is restart after the broker said that it has no such session.
func (s *fetchSession) lost() {
	s.id = 0
	s.restart()
}

// appendRequest writes a fetch request. newest is the newest version the link takes.
func (s *fetchSession) appendRequest(dst []byte, newest int16, correlation int32, clientID, rack string, l kafka.FetchLimits) []byte {
	s.full = s.epoch == 0 || newest < 7
	if s.full {
		s.purge()
		s.byID = newest >= fetchTopicIDs && s.noID == 0
	}
	s.version = newest
	if !s.byID {
		s.version = min(newest, fetchTopicIDs-1)
	}
	v := s.version
	flexible := v >= fetchFlexible
	dst = appendHeader(dst, keyFetch, v, correlation, clientID, flexible)
	if v <= 14 {
		dst = appendInt32(dst, -1) // no replica
	}
	dst = appendInt32(dst, l.MaxWaitMillis)
	dst = appendInt32(dst, l.MinBytes)
	dst = appendInt32(dst, l.MaxBytes)
	dst = append(dst, byte(l.Isolation))
	if v >= 7 {
		dst = appendInt32(dst, s.id)
		dst = appendInt32(dst, s.epoch)
	}
	if s.full {
		dst = s.appendAll(dst, flexible)
	} else {
		dst = s.appendChanged(dst, flexible)
	}
	if v >= 7 {
		dst = s.appendForgotten(dst, flexible)
	}
	if v >= 11 {
		dst = appendString(dst, rack, flexible)
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

func (s *fetchSession) appendAll(dst []byte, flexible bool) []byte {
	dst = appendLen(dst, len(s.order), flexible)
	for i := range s.order {
		t := s.order[(s.turn+i)%len(s.order)]
		dst = s.appendTopic(dst, t, flexible)
		dst = appendLen(dst, len(t.wants), flexible)
		for _, w := range t.wants {
			dst = s.appendWant(dst, w)
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	if s.turn++; s.turn >= len(s.order) {
		s.turn = 0
	}
	return dst
}

func (s *fetchSession) appendChanged(dst []byte, flexible bool) []byte {
	topics := 0
	for _, t := range s.changed {
		if live, _ := t.counts(); live > 0 {
			topics++
		}
	}
	dst = appendLen(dst, topics, flexible)
	for _, t := range s.changed {
		live, _ := t.counts()
		if live == 0 {
			continue
		}
		dst = s.appendTopic(dst, t, flexible)
		dst = appendLen(dst, live, flexible)
		for _, w := range t.dirty {
			if !w.gone {
				dst = s.appendWant(dst, w)
			}
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	return dst
}

func (s *fetchSession) appendForgotten(dst []byte, flexible bool) []byte {
	if s.full {
		return appendLen(dst, 0, flexible)
	}
	topics := 0
	for _, t := range s.changed {
		if _, gone := t.counts(); gone > 0 {
			topics++
		}
	}
	dst = appendLen(dst, topics, flexible)
	for _, t := range s.changed {
		_, gone := t.counts()
		if gone == 0 {
			continue
		}
		dst = s.appendTopic(dst, t, flexible)
		dst = appendLen(dst, gone, flexible)
		for _, w := range t.dirty {
			if w.gone {
				dst = appendInt32(dst, w.Partition)
			}
		}
		if flexible {
			dst = append(dst, 0)
		}
	}
	return dst
}

func (t *topicWants) counts() (live, gone int) {
	for _, w := range t.dirty {
		if w.gone {
			gone++
		} else {
			live++
		}
	}
	return live, gone
}

func (s *fetchSession) appendTopic(dst []byte, t *topicWants, flexible bool) []byte {
	if s.byID {
		return append(dst, t.id[:]...)
	}
	return appendString(dst, t.name, flexible)
}

func (s *fetchSession) appendWant(dst []byte, w *want) []byte {
	v := s.version
	dst = appendInt32(dst, w.Partition)
	if v >= 9 {
		dst = appendInt32(dst, int32(w.CurrentEpoch))
	}
	dst = appendInt64(dst, w.Offset)
	if v >= 12 {
		dst = appendInt32(dst, int32(w.LastFetchedEpoch))
	}
	if v >= 5 {
		dst = appendInt64(dst, -1) // the log start of a replica
	}
	dst = appendInt32(dst, w.MaxBytes)
	if v >= fetchFlexible {
		dst = append(dst, 0)
	}
	return dst
}

// purge drops what is gone; a full request need not forget it.
func (s *fetchSession) purge() {
	for _, w := range s.wants {
		if w.gone {
			s.drop(w)
		}
	}
}

// accepted notes that the broker took the request under way: id is the session
// it answered with, zero where it keeps none.
func (s *fetchSession) accepted(id int32) {
	if s.full {
		for _, w := range s.wants {
			w.sent = id != 0
		}
	}
	for i, t := range s.changed {
		for len(t.dirty) > 0 {
			w := t.dirty[len(t.dirty)-1]
			t.dirty = t.dirty[:len(t.dirty)-1]
			w.dirty, w.sent = false, id != 0
			if w.gone {
				s.drop(w)
			}
		}
		t.listed, s.changed[i] = false, nil
	}
	s.changed = s.changed[:0]
	s.id = id
	switch {
	case id == 0:
		s.epoch = 0
	case s.epoch == math.MaxInt32:
		s.epoch = 1
	default:
		s.epoch++
	}
}
