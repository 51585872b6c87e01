package daemon

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"heliograph/internal/flow"
)

// rateWindow is how far back MirrorMaker's rates look: two samples of 30 s.
const rateWindow = time.Minute

// partitionKey names one partition's series in MirrorMaker's metrics.
type partitionKey struct{ source, target, topic, partition string }

func (k partitionKey) labels() []string { return []string{k.source, k.target, k.topic, k.partition} }

func mirrorMakerDesc(attribute, help string) *prometheus.Desc {
	return desc("kafka_connect_mirror_mirrorsourceconnector_"+attribute, help, "source", "target", "topic", "partition")
}

// mirrorMakerDescs describes the attributes of MirrorSourceConnector. topic is the remote topic.
type mirrorMakerDescs struct {
	recordCount, recordRate, byteCount, byteRate *prometheus.Desc
	age, ageMin, ageMax, ageAvg                  *prometheus.Desc
	latency, latencyMin, latencyMax, latencyAvg  *prometheus.Desc
}

func newMirrorMakerDescs() mirrorMakerDescs {
	return mirrorMakerDescs{
		recordCount: mirrorMakerDesc("record_count", "Records acknowledged by the target since the start."),
		recordRate:  mirrorMakerDesc("record_rate", "Records acknowledged per second over the last minute."),
		byteCount:   mirrorMakerDesc("byte_count", "Bytes copied since the start. Whole batches as on the wire; MirrorMaker counts values only."),
		byteRate:    mirrorMakerDesc("byte_rate", "Bytes copied per second over the last minute."),
		age:         mirrorMakerDesc("record_age_ms", "Age of the last record when it was read."),
		ageMin:      mirrorMakerDesc("record_age_ms_min", "Smallest age of a record when it was read."),
		ageMax:      mirrorMakerDesc("record_age_ms_max", "Largest age of a record when it was read."),
		ageAvg:      mirrorMakerDesc("record_age_ms_avg", "Mean age of records when they were read."),
		latency:     mirrorMakerDesc("replication_latency_ms", "Age of the last record when the target acknowledged it."),
		latencyMin:  mirrorMakerDesc("replication_latency_ms_min", "Smallest age of a record when the target acknowledged it."),
		latencyMax:  mirrorMakerDesc("replication_latency_ms_max", "Largest age of a record when the target acknowledged it."),
		latencyAvg:  mirrorMakerDesc("replication_latency_ms_avg", "Mean age of records when the target acknowledged them."),
	}
}

func (m *metrics) collectMirrorMaker(out chan<- prometheus.Metric, statuses []flow.Status) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[partitionKey]bool, len(m.mu.rates))
	for i := range statuses {
		s := &statuses[i]
		for j := range s.Partitions {
			p := &s.Partitions[j]
			k := partitionKey{
				string(s.ID.Source), string(s.ID.Target),
				p.Target.Topic, strconv.Itoa(int(p.Target.Partition)),
			}
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
			m.mirrorMaker.collect(out, k.labels(), p, w)
		}
	}
	for k := range m.mu.rates {
		if !seen[k] {
			delete(m.mu.rates, k)
		}
	}
}

func (d *mirrorMakerDescs) collect(out chan<- prometheus.Metric, labels []string, p *flow.PartitionStatus, w *window) {
	records, bytes := w.rates()
	out <- gauge(d.recordCount, float64(p.Records), labels...)
	out <- gauge(d.recordRate, records, labels...)
	out <- gauge(d.byteCount, float64(p.Bytes), labels...)
	out <- gauge(d.byteRate, bytes, labels...)
	if p.LastAckedAt.IsZero() {
		return // as with MirrorMaker, there is no age before the first record
	}
	out <- gauge(d.age, float64(p.RecordAgeMillis), labels...)
	out <- gauge(d.ageMin, float64(p.RecordAgeMin), labels...)
	out <- gauge(d.ageMax, float64(p.RecordAgeMax), labels...)
	out <- gauge(d.ageAvg, p.RecordAgeAvg, labels...)
	out <- gauge(d.latency, float64(p.LatencyMillis), labels...)
	out <- gauge(d.latencyMin, float64(p.LatencyMin), labels...)
	out <- gauge(d.latencyMax, float64(p.LatencyMax), labels...)
	out <- gauge(d.latencyAvg, p.LatencyAvg, labels...)
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
