package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliograph/internal/flow"
)

// smoothing is the weight of the newest sample in a shown rate. At a sample a
// second the line settles within about five seconds and does not flicker.
const smoothing = 0.35

// reading is what the progress line shows: totals over all flows, and rates.
type reading struct {
	Flows, Running     int
	Topics, Partitions int
	Parked             int
	Records, Bytes     int64
	RecordsPerSecond   float64
	BytesPerSecond     float64
	LagRecords         int64
	LagSeconds         float64
	// CatchUp is how long it takes until nothing lags at the present pace;
	// negative where the lag does not shrink.
	CatchUp time.Duration
	Waiting []string // "A->B: reason" of flows that are not running
}

// meter turns statuses into readings. It remembers the one before.
type meter struct {
	at      time.Time
	records int64
	bytes   int64
	lag     int64
	// rates, smoothed; shrink is how fast the lag falls, in records a second.
	perSecond, bytesPerSecond, shrink float64
}

// read takes a status of every flow at a time. Counters that fell (a flow or a
// partition went) count from where they are now.
func (m *meter) read(now time.Time, flows []flow.Status) reading {
	r := reading{Flows: len(flows), CatchUp: -1}
	for i := range flows {
		f := &flows[i]
		switch f.State {
		case flow.Running, flow.Degraded:
			r.Running++
		default:
			r.Waiting = append(r.Waiting, fmt.Sprintf("%s: %s", f.ID, reasonOf(f)))
		}
		r.Topics += f.Topics
		r.Partitions += len(f.Partitions)
		r.Parked += f.Parked()
		lag, age := f.Lag()
		r.LagRecords += lag
		r.LagSeconds = max(r.LagSeconds, age)
		for j := range f.Partitions {
			r.Records += f.Partitions[j].Records
			r.Bytes += f.Partitions[j].Bytes
		}
	}
	if seconds := now.Sub(m.at).Seconds(); !m.at.IsZero() && seconds > 0 {
		m.perSecond = smooth(m.perSecond, float64(max(r.Records-m.records, 0))/seconds)
		m.bytesPerSecond = smooth(m.bytesPerSecond, float64(max(r.Bytes-m.bytes, 0))/seconds)
		m.shrink = smooth(m.shrink, float64(m.lag-r.LagRecords)/seconds)
	}
	m.at, m.records, m.bytes, m.lag = now, r.Records, r.Bytes, r.LagRecords
	r.RecordsPerSecond, r.BytesPerSecond = m.perSecond, m.bytesPerSecond
	switch {
	case r.LagRecords == 0:
		r.CatchUp = 0
	case m.shrink >= 1:
		r.CatchUp = time.Duration(float64(r.LagRecords) / m.shrink * float64(time.Second))
	}
	return r
}

// smooth moves a shown rate towards the newest sample; what is close to nothing is nothing.
func smooth(old, sample float64) float64 {
	v := old + smoothing*(sample-old)
	if math.Abs(v) < 0.05 {
		return 0
	}
	return v
}

func reasonOf(f *flow.Status) string {
	if f.Reason == "" {
		return string(f.State)
	}
	return string(f.State) + ", " + f.Reason
}

// String is the progress line.
func (r *reading) String() string {
	parts := []string{
		plural(r.Topics, "topic"),
		plural(r.Partitions, "partition"),
		humanCount(r.RecordsPerSecond) + " records/s",
		humanBytes(r.BytesPerSecond) + "/s",
		r.lag(),
	}
	if r.Running < r.Flows || r.Flows > 1 {
		parts = append([]string{fmt.Sprintf("%d/%d flows", r.Running, r.Flows)}, parts...)
	}
	if r.Parked > 0 {
		parts = append(parts, plural(r.Parked, "partition")+" parked")
	}
	if len(r.Waiting) > 0 {
		parts = append(parts, r.Waiting[0])
	}
	return strings.Join(parts, " · ")
}

// inPassing is the age of a lag that is only what is on its way just now.
const inPassing = 2 * time.Second

func (r *reading) lag() string {
	if r.LagRecords == 0 {
		return "lag 0"
	}
	age := seconds(r.LagSeconds)
	text := fmt.Sprintf("lag %s (%s)", humanCount(float64(r.LagRecords)), humanDuration(age))
	switch {
	case age < inPassing:
		return text
	case r.CatchUp > 0:
		return text + ", caught up in " + humanDuration(r.CatchUp)
	}
	return text + ", not shrinking"
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// humanCount writes a count with at most four digits and a decimal unit.
func humanCount(n float64) string {
	switch n = math.Round(n*10) / 10; {
	case n < 10 && n != math.Trunc(n):
		return strconv.FormatFloat(n, 'f', 1, 64)
	case n < 1e4:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n < 1e6:
		return strconv.FormatFloat(n/1e3, 'f', 1, 64) + "k"
	case n < 1e9:
		return strconv.FormatFloat(n/1e6, 'f', 1, 64) + "M"
	}
	return strconv.FormatFloat(n/1e9, 'f', 1, 64) + "G"
}

// humanBytes writes an amount of bytes with a binary unit.
func humanBytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n >= 1024 && i < len(units)-1 {
		n /= 1024
		i++
	}
	digits := 1
	if i == 0 || n >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + " " + units[i]
}

// humanDuration writes the two largest units: "6d 22h", "1m 5s", "350ms".
func humanDuration(d time.Duration) string {
	parts := durationParts(d)
	if len(parts) > 1 && parts[1].n == 0 {
		parts = parts[:1]
	}
	return joinParts(parts[:min(2, len(parts))])
}

// exactDuration writes every unit that is not zero: "6d 22h 40m".
func exactDuration(d time.Duration) string {
	return joinParts(slices.DeleteFunc(durationParts(d), func(p durationPart) bool { return p.n == 0 }))
}

type durationPart struct {
	n    int64
	unit string
}

func joinParts(parts []durationPart) string {
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i] = strconv.FormatInt(p.n, 10) + p.unit
	}
	return strings.Join(words, " ")
}

// durationParts splits a duration into its units, from its largest one down to seconds.
func durationParts(d time.Duration) []durationPart {
	if d < time.Second {
		return []durationPart{{d.Milliseconds(), "ms"}}
	}
	s := int64(d.Round(time.Second) / time.Second)
	parts := []durationPart{{s / 86400, "d"}, {s / 3600 % 24, "h"}, {s / 60 % 60, "m"}, {s % 60, "s"}}
	for parts[0].n == 0 {
		parts = parts[1:]
	}
	return parts
}
