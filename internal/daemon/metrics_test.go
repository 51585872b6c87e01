package daemon

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"heliograph/internal/cluster"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/syncer"
	"heliograph/internal/telemetry"
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
		Groups:       []flow.GroupStatus{{Group: "billing", Synced: 3, Withheld: []plan.Reason{plan.GroupActive}}},
		GroupLatency: syncer.GroupLatency{Count: 7, P50: time.Second, P99: 1500 * time.Millisecond, Max: 2 * time.Second},
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
		statuses: statuses, now: now,
		memory:  func() (int64, int64) { return 1 << 20, 64 << 20 },
		clients: func() []*cluster.Client { return nil },
	}
	m.mu.rates = map[partitionKey]*window{}
	return m
}

// text is what a scrape gets.
func (m *metrics) text(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	e := telemetry.NewExposition(&b)
	m.write(e)
	if err := e.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// families reads a scrape as Prometheus does.
func (m *metrics) families(tb testing.TB) map[string]*dto.MetricFamily {
	tb.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(m.text(tb)))
	if err != nil {
		tb.Fatal(err)
	}
	return families
}

func TestMetricsUnderBothSpellings(t *testing.T) {
	got := newMetrics(func() []flow.Status { return []flow.Status{exampleStatus()} }, time.Now).text(t)
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

// TestOurSeriesFollowPrometheusCustoms asks the linter behind promtool. The
// names of MirrorMaker's series are not ours to choose.
func TestOurSeriesFollowPrometheusCustoms(t *testing.T) {
	families := newMetrics(func() []flow.Status { return []flow.Status{exampleStatus()} }, time.Now).families(t)
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(families))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "kafka_connect_mirror_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// No series is told twice, which a reader would refuse: two sources may write one
// target partition.
func TestNoSeriesIsToldTwice(t *testing.T) {
	s := exampleStatus()
	other := exampleStatus()
	other.ID.Target = "C"
	s.Partitions = append(s.Partitions, s.Partitions[0])
	s.Partitions[2].Source.Topic = "orders2" // the same target
	m := newMetrics(func() []flow.Status { return []flow.Status{s, other} }, time.Now)
	seen := map[string]bool{}
	for line := range strings.Lines(m.text(t)) {
		series := line[:strings.LastIndexByte(line, ' ')]
		if !strings.HasPrefix(line, "#") && seen[series] {
			t.Errorf("%s is there twice", series)
		}
		seen[series] = true
	}
}

// BenchmarkScrape is a scrape of 10,000 partitions.
func BenchmarkScrape(b *testing.B) {
	s := exampleStatus()
	one := s.Partitions[0]
	for i := range 10_000 {
		p := one
		p.Source.Topic, p.Target.Topic = fmt.Sprintf("topic-%d", i/100), fmt.Sprintf("A.topic-%d", i/100)
		p.Source.Partition, p.Target.Partition = int32(i%100), int32(i%100)
		s.Partitions = append(s.Partitions, p)
	}
	m := newMetrics(func() []flow.Status { return []flow.Status{s} }, time.Now)
	b.ReportAllocs()
	for b.Loop() {
		e := telemetry.NewExposition(io.Discard)
		m.write(e)
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// scrape gives the value of MirrorMaker's record_rate of partition 0.
func scrape(t *testing.T, m *metrics) float64 {
	t.Helper()
	f := m.families(t)["kafka_connect_mirror_mirrorsourceconnector_record_rate"]
	if f == nil {
		t.Fatal("no record_rate")
	}
	return f.GetMetric()[0].GetGauge().GetValue()
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
