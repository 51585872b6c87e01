package offsets

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliograph/internal/mirror"
)

type acked struct {
	up   mirror.UpstreamOffset
	down mirror.DownstreamOffset
	want SyncReason
}

func TestSyncPacerNamesTheReason(t *testing.T) {
	tests := []struct {
		name   string
		maxLag int64
		acks   []acked
	}{
		{"the specification's sequence", 50, []acked{
			{0, 100, FirstRecord},
			{2, 102, UpstreamGap},
			{3, 152, NotDue},
			{4, 153, DistanceReached},
			{5, 154, NotDue},
			{6, 203, NotDue},
			{7, 204, DistanceReached},
			{2, 206, UpstreamGap}, // the source was rewound
			{3, 207, NotDue},
			{4, 3, DownstreamRewind},
			{5, 4, NotDue},
			{7, 6, UpstreamGap},
			{7, 6, UpstreamGap},
			{8, 7, NotDue},
			{10, 57, DistanceReached}, // a gap as well; the distance is tested first
			{11, 58, NotDue},
		}},
		{"no lag allowed", 0, []acked{
			{0, 0, FirstRecord}, {1, 1, DistanceReached}, {2, 2, DistanceReached},
		}},
		{"a negative lag is none", -5, []acked{
			{0, 0, FirstRecord}, {1, 1, DistanceReached},
		}},
		{"a lag beyond every offset", math.MaxInt64, []acked{
			{0, 0, FirstRecord}, {1, 1 << 62, NotDue}, {2, 5, DownstreamRewind},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := NewSyncPacer(tt.maxLag)
			for _, a := range tt.acks {
				if got := p.Advance(a.up, a.down); got != a.want {
					t.Errorf("Advance(%d, %d) = %s, want %s", a.up, a.down, got, a.want)
				}
			}
		})
	}
}

func TestSyncPacerIsDueEveryMaxLagPlusOneDenseRecords(t *testing.T) {
	p := NewSyncPacer(100)
	var due []mirror.UpstreamOffset
	p.AdvanceRun(0, 1000, 304, func(_ SyncReason, up mirror.UpstreamOffset, _ mirror.DownstreamOffset) {
		due = append(due, up)
	})
	if diff := cmp.Diff([]mirror.UpstreamOffset{0, 101, 202, 303}, due); diff != "" {
		t.Errorf("due pairs (-want +got):\n%s", diff)
	}
}

func TestSyncPacerRunsEndAtTheLargestOffset(t *testing.T) {
	p := NewSyncPacer(math.MaxInt64)
	calls := 0
	count := func(SyncReason, mirror.UpstreamOffset, mirror.DownstreamOffset) { calls++ }
	p.AdvanceRun(0, 0, math.MaxInt64, count)
	p.AdvanceRun(math.MaxInt64-1, math.MaxInt64-1, 0, count)
	if calls != 1 {
		t.Errorf("%d pairs were due, want the first only", calls)
	}
}

// A run must be paced as its records one by one would be.
func TestSyncPacerRunsEqualSingleRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxLag := rapid.Int64Range(0, 20).Draw(t, "maxLag")
		byRun, byRecord := NewSyncPacer(maxLag), NewSyncPacer(maxLag)
		up, down := int64(0), int64(0)
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			up = max(0, up+rapid.Int64Range(-3, 5).Draw(t, "gap upstream"))
			down = max(0, down+rapid.Int64Range(-3, 5).Draw(t, "gap downstream"))
			count := rapid.Int64Range(0, 70).Draw(t, "count")

			var got, want []acked
			byRun.AdvanceRun(mirror.UpstreamOffset(up), mirror.DownstreamOffset(down), count,
				func(r SyncReason, u mirror.UpstreamOffset, d mirror.DownstreamOffset) {
					got = append(got, acked{u, d, r})
				})
			for i := range count {
				u, d := mirror.UpstreamOffset(up+i), mirror.DownstreamOffset(down+i)
				if r := byRecord.Advance(u, d); r != NotDue {
					want = append(want, acked{u, d, r})
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(acked{})); diff != "" {
				t.Fatalf("due pairs of (%d, %d) x %d (-record by record +run):\n%s", up, down, count, diff)
			}
			if *byRun != *byRecord {
				t.Fatalf("state after (%d, %d) x %d: %+v, record by record %+v", up, down, count, *byRun, *byRecord)
			}
			up, down = up+count, down+count
		}
	})
}

func TestSyncReasonsAreMetricLabels(t *testing.T) {
	want := map[SyncReason]string{
		NotDue: "not_due", FirstRecord: "first", DistanceReached: "distance",
		UpstreamGap: "upstream_gap", DownstreamRewind: "downstream_rewind", 99: "unknown",
	}
	for r, label := range want {
		if r.String() != label {
			t.Errorf("reason %d prints %q, want %q", r, r, label)
		}
	}
}
