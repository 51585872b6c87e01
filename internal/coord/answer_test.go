package coord

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
)

// A person tells where a parked partition goes on; the answer is for that partition of a lane that is
// ours, and is used once.
func TestAnAnswerLetsAParkedPartitionGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		i := slices.IndexFunc(takeovers, func(c takeover) bool {
			return strings.Contains(c.parked, "set heliograph.missing.position") && c.target == "0 1 2 3"
		})
		takeovers[i].find(r)
		r.takeOver()
		defer r.close()
		if s := r.settle(); s.State != replicate.TrackParked {
			t.Fatalf("%s: %s", s.State, s.Reason)
		}
		if r.keeper.Answer(kafka.TopicPartition{Topic: "nobody's"}, plan.ChoiceScan) {
			t.Error("an answer for a partition that is not there was taken")
		}
		if !r.keeper.Answer(orders, plan.ChoiceScan) {
			t.Fatal("the answer was not taken")
		}
		if s := r.settle(); s.State != replicate.TrackRunning {
			t.Errorf("after the answer: %s: %s", s.State, s.Reason)
		}
		if got := values(r.target.data(copies)); got != "0 1 2 3 4 5" {
			t.Errorf("the copy holds %q", got)
		}
		if left := r.keeper.answered(r.lane()); len(left) > 0 {
			t.Errorf("the answer is kept: %v", left)
		}
	})
}
