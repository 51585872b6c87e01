package coord

import (
	"errors"
	"testing"
	"testing/synctest"
)

// A stop says whether a clean position was written for every partition.
func TestWhatAStopLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		before    func(r *rig)
		unsettled bool
	}{
		"nothing": {before: func(*rig) {}},
		"what a target that is away does not take": {before: func(r *rig) {
			r.target.mu.Lock()
			defer r.target.mu.Unlock()
			r.target.away = true
		}, unsettled: true},
		"nothing of lanes that the group has taken":   {before: func(r *rig) { r.keeper.Lost([]int32{0, 1, 2}) }},
		"nothing of lanes that the group gives again": {before: func(r *rig) { r.keeper.Lost([]int32{0, 1, 2}); r.keeper.Assigned([]int32{0, 1, 2}); r.settle() }},
		"nothing of lanes that another owner fenced": {before: func(r *rig) {
			for _, o := range r.keeper.lanes {
				o.ended <- ending{reason: "INVALID_PRODUCER_EPOCH", fenced: true}
			}
			synctest.Wait()
		}},
		"lanes that ended for another reason": {before: func(r *rig) {
			for _, o := range r.keeper.lanes {
				o.ended <- ending{reason: "an answer was lost"}
			}
			synctest.Wait()
		}, unsettled: true},
		"nothing of lanes that others have since": {before: func(r *rig) { r.keeper.Lost([]int32{0, 1, 2}); r.keeper.Assigned(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				r.fill(numbered(0, 4))
				r.takeOver()
				r.settle()
				c.before(r)
				r.close()
				if got := errors.Is(r.left, ErrUnsettled); got != c.unsettled {
					t.Errorf("left %v", r.left)
				}
			})
		})
	}
}
