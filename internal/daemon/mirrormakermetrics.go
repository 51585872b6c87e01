package daemon

import (
	"strconv"
	"time"

	"heliograph/internal/flow"
	"heliograph/internal/telemetry"
)

// rateWindow is how far back MirrorMaker's rates look: two samples of 30 s.
const rateWindow = time.Minute

// partitionKey names one partition's series in MirrorMaker's metrics.
type partitionKey struct {
	source, target, topic string
	partition             int32
}

// copied is a partition with its rates, as MirrorMaker's attributes tell of it.
type copied struct {
	*flow.PartitionStatus
	recordRate, byteRate float64
}

// mirrorMakerFamily is an attribute of MirrorSourceConnector; its topic is the
// remote one. Ages begin with the first record, as with MirrorMaker.
type mirrorMakerFamily struct {
	name, help string
	age        bool
	value      func(*copied) float64
}

//nolint:gochecknoglobals // a table
var mirrorMakerFamilies = []mirrorMakerFamily{
	{"record_count", "Records acknowledged by the target since the start.", false, func(c *copied) float64 { return float64(c.Records) }},
	{"record_rate", "Records acknowledged per second over the last minute.", false, func(c *copied) float64 { return c.recordRate }},
	{"byte_count", "Bytes copied since the start. Whole batches as on the wire; MirrorMaker counts values only.", false, func(c *copied) float64 { return float64(c.Bytes) }},
	{"byte_rate", "Bytes copied per second over the last minute.", false, func(c *copied) float64 { return c.byteRate }},
	{"record_age_ms", "Age of the last record when it was read.", true, func(c *copied) float64 { return float64(c.RecordAgeMillis) }},
	{"record_age_ms_min", "Smallest age of a record when it was read.", true, func(c *copied) float64 { return float64(c.RecordAgeMin) }},
	{"record_age_ms_max", "Largest age of a record when it was read.", true, func(c *copied) float64 { return float64(c.RecordAgeMax) }},
	{"record_age_ms_avg", "Mean age of records when they were read.", true, func(c *copied) float64 { return c.RecordAgeAvg }},
	{"replication_latency_ms", "Age of the last record when the target acknowledged it.", true, func(c *copied) float64 { return float64(c.LatencyMillis) }},
	{"replication_latency_ms_min", "Smallest age of a record when the target acknowledged it.", true, func(c *copied) float64 { return float64(c.LatencyMin) }},
	{"replication_latency_ms_max", "Largest age of a record when the target acknowledged it.", true, func(c *copied) float64 { return float64(c.LatencyMax) }},
	{"replication_latency_ms_avg", "Mean age of records when the target acknowledged them.", true, func(c *copied) float64 { return c.LatencyAvg }},
}

func (m *metrics) writeMirrorMaker(e *telemetry.Exposition, statuses []flow.Status) {
	var names labelSets
	all := m.rated(statuses, &names)
	for _, f := range mirrorMakerFamilies {
		e.Family("kafka_connect_mirror_mirrorsourceconnector_"+f.name, telemetry.Gauge, f.help)
		for i := range all {
			if !f.age || !all[i].LastAckedAt.IsZero() {
				e.Sample(names.at(i), f.value(&all[i]))
			}
		}
	}
}

// rated gives each partition that MirrorMaker would tell of with its rates, and
// adds its labels to names.
func (m *metrics) rated(statuses []flow.Status, names *labelSets) []copied {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []copied
	seen := make(map[partitionKey]bool, len(m.mu.rates))
	for i := range statuses {
		s := &statuses[i]
		for j := range s.Partitions {
			p := &s.Partitions[j]
			k := partitionKey{string(s.ID.Source), string(s.ID.Target), p.Target.Topic, p.Target.Partition}
			if seen[k] {
				continue // two sources write one target partition; the first keeps the series
			}
			seen[k] = true
			w := m.mu.rates[k]
			if w == nil {
				w = &window{}
				m.mu.rates[k] = w
			}
			w.add(sample{at: now, records: p.Records, bytes: p.Bytes})
			c := copied{PartitionStatus: p}
			c.recordRate, c.byteRate = w.rates()
			all = append(all, c)
			names.add("partition", strconv.Itoa(int(k.partition)), "source", k.source, "target", k.target, "topic", k.topic)
		}
	}
	for k := range m.mu.rates {
		if !seen[k] {
			delete(m.mu.rates, k)
		}
	}
	return all
}

// sample is a partition's counters at one scrape.
type sample struct {
	at             time.Time
	records, bytes int64
}

// window holds the samples of the last minute and the one before them, oldest
// first. Scrapes closer than a second apart share a sample, so that its size is bounded.
type window struct{ samples []sample }

func (w *window) add(s sample) {
	if n := len(w.samples); n > 0 {
		last := w.samples[n-1]
		if s.records < last.records || s.bytes < last.bytes {
			w.samples = w.samples[:0] // the counters began anew
		} else if n > 1 && s.at.Sub(w.samples[n-2].at) < time.Second {
			w.samples = w.samples[:n-1]
		}
	}
	w.samples = append(w.samples, s)
	for len(w.samples) > 2 && s.at.Sub(w.samples[1].at) >= rateWindow {
		w.samples = w.samples[1:]
	}
}

func (w *window) rates() (records, bytes float64) {
	first, last := w.samples[0], w.samples[len(w.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(last.records-first.records) / seconds, float64(last.bytes-first.bytes) / seconds
}
