package cli

import (
	"bytes"
	"testing"
	"time"

	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func oneFlow(records, lag int64) []flow.Status {
	return []flow.Status{{
		ID: mirror.FlowID{Source: "A", Target: "B"}, State: flow.Running, Topics: 1,
		Partitions: []flow.PartitionStatus{{State: "running", Records: records, Bytes: records * 1024, SourceEnd: mirror.UpstreamOffset(1<<40 + records + lag), LagRecords: lag, LagSeconds: float64(lag) / 100}},
	}}
}

// steady feeds the same change every second until the rates have settled.
func steady(m *meter, perSecond, lag, shrink int64) reading {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r reading
	for i := range int64(60) {
		r = m.read(now.Add(time.Duration(i)*time.Second), oneFlow(i*perSecond, lag-i*shrink))
	}
	return r
}

func TestProgressLineTellsPaceLagAndTimeToCatchUp(t *testing.T) {
	for _, tc := range []struct {
		name                   string
		perSecond, lag, shrink int64
		want                   string
	}{
		{"caught up", 100, 0, 0, "1 topic · 1 partition · 100 records/s · 100 KiB/s · lag 0"},
		{"catching up", 2000, 160_000, 1000, "1 topic · 1 partition · 2000 records/s · 2.0 MiB/s · lag 101.0k (16m 50s), caught up in 1m 41s"},
		{"falling behind", 10, 1000, -50, "1 topic · 1 partition · 10 records/s · 10.0 KiB/s · lag 3950 (40s), not shrinking"},
	} {
		r := steady(&meter{}, tc.perSecond, tc.lag, tc.shrink)
		if got := r.String(); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestTimeToCatchUpIsRightFromTheFirstSecond(t *testing.T) {
	const backlog = 100_000_000
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	status := func(copied, end, parkedLag int64) []flow.Status {
		return []flow.Status{{State: flow.Running, Partitions: []flow.PartitionStatus{
			{State: "running", Records: copied, SourceEnd: mirror.UpstreamOffset(end), LagRecords: end - copied},
			{State: "parked", Source: kafka.TopicPartition{Topic: "p"}, SourceEnd: mirror.UpstreamOffset(parkedLag), LagRecords: parkedLag},
		}}}
	}
	for _, every := range []time.Duration{time.Second, time.Minute} {
		var m meter
		step := 100_000 * int64(every/time.Second)
		m.read(now, status(0, 0, 0))                      // the source's end is not known yet
		m.read(now.Add(every), status(step, backlog, 77)) // it is told, and parks somebody
		r := m.read(now.Add(2*every), status(2*step, backlog+step/2, 77))
		if want := time.Duration(backlog-3*step/2) * time.Second / 50_000; r.CatchUp != want {
			t.Errorf("samples every %s: caught up in %s, want %s", every, r.CatchUp, want)
		}
	}
}

func TestALagThatIsAllParkedHasNoTimeToCatchUp(t *testing.T) {
	flows := []flow.Status{{State: flow.Degraded, Partitions: []flow.PartitionStatus{{State: "parked", LagRecords: 5, LagSeconds: 60, SourceEnd: 5}}}}
	r := (&meter{}).read(time.Time{}.Add(time.Hour), flows)
	if got, want := r.String(), "0 topics · 1 partition · 0 records/s · 0 B/s · lag 5 (1m) · 1 partition parked"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestProgressLineNamesFlowsThatWait(t *testing.T) {
	flows := append(oneFlow(0, 0), flow.Status{
		ID: mirror.FlowID{Source: "C", Target: "B"}, State: flow.Waiting, Reason: "cluster C cannot be reached",
		Partitions: []flow.PartitionStatus{{State: "parked"}},
	})
	r := (&meter{}).read(time.Time{}.Add(time.Hour), flows)
	want := "1/2 flows · 1 topic · 2 partitions · 0 records/s · 0 B/s · lag 0 · 1 partition parked · C->B: waiting, cluster C cannot be reached"
	if got := r.String(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestCountersThatFallDoNotMakeNegativeRates(t *testing.T) {
	var m meter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m.read(now, oneFlow(1000, 0))
	if r := m.read(now.Add(time.Second), oneFlow(10, 0)); r.RecordsPerSecond < 0 || r.BytesPerSecond < 0 {
		t.Errorf("negative rates: %+v", r)
	}
}

func TestDurationsShowTheirTwoLargestUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		350 * time.Millisecond:  "350ms",
		5 * time.Second:         "5s",
		65 * time.Second:        "1m 5s",
		600_000 * time.Second:   "6d 22h",
		time.Hour:               "1h",
		90*time.Minute + 1500e6: "1h 30m",
	} {
		if got := humanDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestIntervalsAreShownExactly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		600_000 * time.Second:  "6d 22h 40m",
		5 * time.Second:        "5s",
		time.Hour:              "1h",
		100 * time.Millisecond: "100ms",
	} {
		if got := exactDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestLogLinesScrollAboveTheStatusLine(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, width: func() int { return 20 }}
	write := func(line string) {
		t.Helper()
		if _, err := s.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	s.show("lag 1")
	write("second\n")
	s.show("a line that is wider than the terminal")
	s.show("two\nlines")
	s.show("")
	write("third\n")
	want := "first\n" +
		eraseLine + "lag 1" +
		eraseLine + "second\nlag 1" +
		eraseLine + "a line that is wid…" +
		eraseLine + "two\nlines" +
		eraseLine + eraseUp + "third\n"
	if got := out.String(); got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}
