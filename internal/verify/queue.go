package verify

import "context"

// A feed delivers one log's items in order.
type feed interface {
	// next is the next block, which is the caller's, and never an empty one; nil
	// means that the log is over, for now.
	next(ctx context.Context) ([]Item, error)
	// more looks whether the log goes on behind what was its end, and reports it.
	// It may wait.
	more(ctx context.Context) (bool, error)
}

// A queue is a feed with a view ahead.
type queue struct {
	feed  feed
	items []Item // items[head:] were delivered and not passed
	head  int
	over  bool
}

// fill tries to bring at least n items into view.
func (q *queue) fill(ctx context.Context, n int) error {
	for !q.over && len(q.items)-q.head < n {
		block, err := q.feed.next(ctx)
		if err != nil {
			return err
		}
		if block == nil {
			q.over = true
			return nil
		}
		if q.head == len(q.items) {
			q.items, q.head = block, 0
			continue
		}
		if q.head > 0 && q.head >= len(q.items)/2 {
			q.items = q.items[:copy(q.items, q.items[q.head:])]
			q.head = 0
		}
		q.items = append(q.items, block...)
	}
	return nil
}

// view are the items in view. It is good until the next fill.
func (q *queue) view() []Item { return q.items[q.head:] }

// ahead is the view cut to at most n items, and whether the log is over behind it.
func (q *queue) ahead(n int) ([]Item, bool) {
	v := q.view()
	if len(v) > n {
		return v[:n], false
	}
	return v, q.over
}

// pass drops the first n items.
func (q *queue) pass(n int) { q.head += n }

// revive looks whether a log that was over goes on.
func (q *queue) revive(ctx context.Context) (bool, error) {
	grew, err := q.feed.more(ctx)
	if grew {
		q.over = false
	}
	return grew, err
}
