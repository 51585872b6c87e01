package replicate

// ring is a growing queue that reuses its slots, so that a busy outlet does not
// allocate per entry. Slots are reached by their distance from the front.
type ring[T any] struct {
	slots []T
	head  int
	n     int
}

func (r *ring[T]) len() int { return r.n }

func (r *ring[T]) at(i int) *T { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

func (r *ring[T]) push(v T) *T {
	if r.n == len(r.slots) {
		grown := make([]T, max(8, 2*len(r.slots)))
		for i := range r.n {
			grown[i] = *r.at(i)
		}
		r.slots, r.head = grown, 0
	}
	r.n++
	slot := r.at(r.n - 1)
	*slot = v
	return slot
}

func (r *ring[T]) pop() T {
	var zero T
	slot := r.at(0)
	v := *slot
	*slot = zero
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	return v
}

// cut removes all but the first n and hands each removed one to drop.
func (r *ring[T]) cut(n int, drop func(*T)) {
	var zero T
	for i := n; i < r.n; i++ {
		drop(r.at(i))
		*r.at(i) = zero
	}
	r.n = min(n, r.n)
}

// insert puts v before position i.
func (r *ring[T]) insert(i int, v T) {
	r.push(v)
	for j := r.n - 1; j > i; j-- {
		*r.at(j), *r.at(j - 1) = *r.at(j - 1), *r.at(j)
	}
}

// splice puts one value in the place of the n from position i on. What is before
// them moves, not what is behind: a queue is merged near its front.
func (r *ring[T]) splice(i, n int, v T) {
	var zero T
	*r.at(i + n - 1) = v
	for j := i - 1; j >= 0; j-- {
		*r.at(j + n - 1) = *r.at(j)
	}
	for j := range n - 1 {
		*r.at(j) = zero
	}
	r.head = (r.head + n - 1) & (len(r.slots) - 1)
	r.n -= n - 1
}
