package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// settling is how fast a shown rate forgets what was: at a sample a second the
// line settles within about five seconds and does not flicker; a sample a minute
// stands for itself.
const settling = 2300 * time.Millisecond

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
	// CatchUp is how long it takes until nothing lags at the present pace, parked
	// partitions aside; negative where that lag does not shrink.
	CatchUp time.Duration
	Waiting []string // "A->B: reason" of flows that are not running
}

// meter turns statuses into readings. It remembers the one before.
type meter struct {
	at      time.Time
	records int64
	bytes   int64
	places  map[spot]standing

	perSecond, bytesPerSecond, shrink rate // shrink is how fast the lag falls, in records a second
}

// spot is a source partition of a flow.
type spot struct {
	flow      mirror.FlowID
	partition kafka.TopicPartition
}

// standing is how far a partition is copied, and how far there is something to copy.
type standing struct{ copied, end int64 }

// read takes a status of every flow at a time. Counters that fell (a flow or a
// partition went) count from where they are now.
func (m *meter) read(now time.Time, flows []flow.Status) reading {
	r := reading{Flows: len(flows), CatchUp: -1}
	places := map[spot]standing{}
	var open, shrunk int64 // lag of what is not parked, and by how much it fell
	compared := false
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
			p := &f.Partitions[j]
			r.Records += p.Records
			r.Bytes += p.Bytes
			if p.State == "parked" {
				continue
			}
			open += p.LagRecords
			at := spot{f.ID, p.Source}
			is := standing{copied: int64(p.SourceEnd) - p.LagRecords, end: int64(p.SourceEnd)}
			places[at] = is
			// Where the end was not known yet, its first telling is no news of the pace.
			if was, ok := m.places[at]; ok && was.end > 0 {
				compared = true
				shrunk += (is.copied - was.copied) - (is.end - was.end)
			}
		}
	}
	if passed := now.Sub(m.at); !m.at.IsZero() && passed > 0 {
		m.perSecond.add(float64(max(r.Records-m.records, 0)), passed)
		m.bytesPerSecond.add(float64(max(r.Bytes-m.bytes, 0)), passed)
		if compared {
			m.shrink.add(float64(shrunk), passed)
		}
	}
	m.at, m.records, m.bytes, m.places = now, r.Records, r.Bytes, places
	r.RecordsPerSecond, r.BytesPerSecond = m.perSecond.shown(), m.bytesPerSecond.shown()
	switch shrink := m.shrink.shown(); {
	case open == 0:
		r.CatchUp = 0
	case shrink >= 1:
		r.CatchUp = time.Duration(float64(open) / shrink * float64(time.Second))
	}
	return r
}

// rate is an amount a second that forgets by age. Weights are kept with it, so
// that the first samples count in full and not as if nothing had been before.
type rate struct{ sum, weight float64 }

func (r *rate) add(amount float64, passed time.Duration) {
	keep := math.Exp(-float64(passed) / float64(settling))
	r.sum = r.sum*keep + amount/passed.Seconds()*(1-keep)
	r.weight = r.weight*keep + 1 - keep
}

// shown is the rate; what is close to nothing is nothing.
func (r *rate) shown() float64 {
	if r.weight == 0 || math.Abs(r.sum/r.weight) < 0.05 {
		return 0
	}
	return r.sum / r.weight
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
	case age < inPassing, r.CatchUp == 0: // the second: all of it is parked
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
