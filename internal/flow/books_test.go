package flow

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/mirror"
)

// full is a flow with every job on.
func full() Spec {
	return Spec{
		ID: mirror.FlowID{Source: "A", Target: "B"}, Enabled: true, Policy: mirror.NewDefaultPolicy(mirror.PolicyOptions{}),
		Heartbeats:  HeartbeatSpec{Every: time.Second},
		OffsetSyncs: OffsetSyncSpec{Enabled: true, OnSource: true},
		Checkpoints: CheckpointSpec{EmitEvery: time.Second},
		Positions:   PositionSpec{Topic: "mm2-offsets.A.internal"},
	}
}

func TestBooksOfAFlow(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Spec)
		want   []string
	}{
		{"all jobs", func(*Spec) {}, []string{
			"heartbeats on B, 1", "mm2-offsets.A.internal on B, 25", "mm2-offset-runs.A.internal on B, 25",
			"A.checkpoints.internal on B, 1", "mm2-offset-syncs.B.internal on A, 1",
		}},
		{"syncs on the target", func(s *Spec) { s.OffsetSyncs.OnSource = false }, []string{
			"heartbeats on B, 1", "mm2-offsets.A.internal on B, 25", "mm2-offset-runs.A.internal on B, 25",
			"A.checkpoints.internal on B, 1", "mm2-offset-syncs.A.internal on B, 1",
		}},
		{"a name and lanes of its own", func(s *Spec) {
			s.Positions.Topic, s.Positions.Partitions = "places", 3
			s.Heartbeats.Every, s.Checkpoints.EmitEvery, s.OffsetSyncs.Enabled = 0, 0, false
		}, []string{"places on B, 3", "mm2-offset-runs.A.internal on B, 3"}},
		{"heartbeats only", func(s *Spec) { s.Enabled = false }, []string{"heartbeats on B, 1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := full()
			c.change(&s)
			var got []string
			for _, b := range s.Books() {
				got = append(got, fmt.Sprintf("%s on %s, %d", b.Name, b.On, b.Partitions))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoTopicIsCopiedOntoABook(t *testing.T) {
	s := full()
	s.Positions.Topic = "places"
	reserved := s.Desired().Reserved
	for _, b := range s.Books() {
		if b.On == s.ID.Target && reserved[b.Name] == "" {
			t.Errorf("%s is not reserved", b.Name)
		}
	}
}
