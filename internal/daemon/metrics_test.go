package daemon

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"heliograph/internal/cluster"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/syncer"
)

var update = flag.Bool("update", false, "write the goldens anew")

func exampleStatus() flow.Status {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return flow.Status{
		ID: mirror.FlowID{Source: "A", Target: "B"}, State: flow.Degraded, Lanes: 25, Topics: 1,
		HeartbeatAt: at, ThrottledFor: 1500 * time.Millisecond, Losses: 2, LostRecords: 40,
		Jobs: []flow.JobStatus{
			{Name: "refresh topics", LastRun: at},
			{Name: "sync acls", LastRun: at, Err: "CLUSTER_AUTHORIZATION_FAILED"},
			{Name: "never ran"},
		},
		Groups: []flow.GroupStatus{{Group: "billing", Synced: 3}}, GroupLatency: syncer.GroupLatency{Count: 7, P50: time.Second, P99: 1500 * time.Millisecond, Max: 2 * time.Second},
		Partitions: []flow.PartitionStatus{
			{
				Source: kafka.TopicPartition{Topic: "orders"}, Target: kafka.TopicPartition{Topic: "A.orders"}, State: "running",
				Records: 1000, Bytes: 65536, Batches: 10, Rewritten: 2, Dropped: 1, SkippedRecords: 3, OffsetSyncs: 7, ForeignOffsets: 11,
				LagRecords: 5, LagSeconds: 0.25, LastAckedAt: at,
				LatencyMillis: 4, LatencyMin: 1, LatencyMax: 9, LatencyAvg: 3.5,
				RecordAgeMillis: 3, RecordAgeMin: 1, RecordAgeMax: 8, RecordAgeAvg: 2.5,
			},
			{
				Source: kafka.TopicPartition{Topic: "orders", Partition: 1}, Target: kafka.TopicPartition{Topic: "A.orders", Partition: 1},
				State: "parked", Reason: "no position",
			},
		},
	}
}

func newMetrics(statuses func() []flow.Status, now func() time.Time) *metrics {
	m := &metrics{
		descs: newDescs(), mirrorMaker: newMirrorMakerDescs(), statuses: statuses, now: now,
		memory:  func() (int64, int64) { return 1 << 20, 64 << 20 },
		clients: func() []*cluster.Client { return nil },
	}
	m.mu.rates = map[partitionKey]*window{}
	return m
}

func TestMetricsUnderBothSpellings(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(newMetrics(func() []flow.Status { return []flow.Status{exampleStatus()} }, time.Now))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
}

// TestOurSeriesFollowPrometheusCustoms asks the linter behind promtool. The
// names of MirrorMaker's series are not ours to choose.
func TestOurSeriesFollowPrometheusCustoms(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(newMetrics(func() []flow.Status { return []flow.Status{exampleStatus()} }, time.Now))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "kafka_connect_mirror_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// scrape gives the value of MirrorMaker's record_rate of partition 0.
func scrape(t *testing.T, m *metrics) float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kafka_connect_mirror_mirrorsourceconnector_record_rate" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no record_rate")
	return 0
}

func TestRatesLookBackAMinute(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := exampleStatus()
	m := newMetrics(func() []flow.Status { return []flow.Status{s} }, func() time.Time { return now })
	if got := scrape(t, m); got != 0 {
		t.Errorf("rate at the first look: %v", got)
	}
	for range 20 { // ten records a second, then a hundred
		now = now.Add(15 * time.Second)
		s.Partitions[0].Records += 150
		scrape(t, m)
	}
	if got := scrape(t, m); got != 10 {
		t.Errorf("steady rate %v, want 10", got)
	}
	for range 4 {
		now = now.Add(15 * time.Second)
		s.Partitions[0].Records += 1500
		scrape(t, m)
	}
	if got := scrape(t, m); got != 100 {
		t.Errorf("rate a minute after the change %v, want 100", got)
	}
	s.Partitions[0].Records = 0 // the flow was started again
	if got := scrape(t, m); got != 0 {
		t.Errorf("rate after a restart %v, want 0", got)
	}
}

func TestFrequentScrapesDoNotGrowTheWindow(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := newMetrics(func() []flow.Status { return []flow.Status{exampleStatus()} }, func() time.Time { return now })
	for range 1000 {
		now = now.Add(100 * time.Millisecond)
		scrape(t, m)
	}
	for k, w := range m.mu.rates {
		if len(w.samples) > 130 {
			t.Errorf("%v holds %d samples", k, len(w.samples))
		}
	}
}

func TestSeriesEndWithTheirPartition(t *testing.T) {
	s := exampleStatus()
	m := newMetrics(func() []flow.Status { return []flow.Status{s} }, time.Now)
	scrape(t, m)
	s.Partitions = s.Partitions[:1]
	scrape(t, m)
	if len(m.mu.rates) != 1 {
		t.Errorf("%d partitions remembered, want 1", len(m.mu.rates))
	}
}
