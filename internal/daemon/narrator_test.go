package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/flow"
	"heliograph/internal/mirror"
)

// partitions makes a running flow of which some partitions wait.
func partitions(running, waiting int) flow.Status {
	s := flow.Status{ID: mirror.FlowID{Source: "A", Target: "B"}, State: flow.Running, Topics: 1}
	for range running {
		s.Partitions = append(s.Partitions, flow.PartitionStatus{State: "running"})
	}
	for range waiting {
		s.Partitions = append(s.Partitions, flow.PartitionStatus{State: "waiting", Reason: "connection refused"})
	}
	return s
}

func TestTheNarratorTellsEachChangeOnce(t *testing.T) {
	failed := partitions(0, 0)
	failed.State = flow.Failed
	var looks []flow.Status
	for _, step := range []struct {
		times int
		s     flow.Status
	}{
		{3, partitions(4, 0)},  // running
		{2, partitions(3, 1)},  // a leader moves
		{2, partitions(4, 0)},  //
		{10, partitions(1, 3)}, // a broker is gone
		{3, partitions(4, 0)},  // and back
		{2, failed},            // told by the slot
		{2, partitions(4, 0)},  //
	} {
		for range step.times {
			looks = append(looks, step.s)
		}
	}
	var out bytes.Buffer
	n := newNarrator(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	for i := range looks {
		n.look(looks[i : i+1])
	}
	want := strings.Join([]string{
		`level=INFO msg="flow running" flow=A->B topics=1 partitions=4 lanes=0`,
		`level=WARN msg="partitions wait" flow=A->B count=3 of=4 reason="connection refused"`,
		`level=INFO msg="partitions run again" flow=A->B count=4`,
		`level=INFO msg="flow running" flow=A->B topics=1 partitions=4 lanes=0`,
	}, "\n") + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestAFlowIsWaitingWhenAllItsPartitionsWait(t *testing.T) {
	for _, tc := range []struct {
		running, waiting int
		want             string
	}{
		{0, 0, "running "},
		{2, 0, "running "},
		{1, 1, "running "},
		{0, 2, "waiting all 2 partitions wait: connection refused"},
	} {
		s := standing(partitions(tc.running, tc.waiting))
		if got := fmt.Sprint(s.State, " ", s.Reason); got != tc.want {
			t.Errorf("%d running, %d waiting: %q, want %q", tc.running, tc.waiting, got, tc.want)
		}
	}
}
