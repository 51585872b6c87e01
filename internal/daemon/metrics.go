package daemon

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"heliograph/internal/cluster"
	"heliograph/internal/flow"
)

// metrics is a collector over the flows' statuses: it costs something only when
// somebody scrapes, and a partition's series end with the partition.
type metrics struct {
	descs       descs
	mirrorMaker mirrorMakerDescs
	statuses    func() []flow.Status
	now         func() time.Time
	memory      func() (used, size int64)
	clients     func() []*cluster.Client

	mu struct {
		sync.Mutex
		rates map[partitionKey]*window // for MirrorMaker's *_rate
	}
}

// Collector shows this daemon's flows to Prometheus, under our own names and
// under those of MirrorMaker's JMX metrics as exporters spell them.
func (d *Daemon) Collector() prometheus.Collector {
	m := &metrics{
		descs:       newDescs(),
		mirrorMaker: newMirrorMakerDescs(),
		statuses:    d.Status,
		now:         time.Now,
		memory:      func() (int64, int64) { return d.budget.Used(), d.budget.Size() },
		clients:     d.clients,
	}
	m.mu.rates = map[partitionKey]*window{}
	return m
}

// Describe sends nothing: which series there are depends on the flows.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect takes one status of every flow and writes it in both spellings.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	statuses := m.statuses()
	for i := range statuses {
		m.collectFlow(out, &statuses[i])
	}
	m.collectMirrorMaker(out, statuses)
	used, size := m.memory()
	out <- gauge(m.descs.memoryUsed, float64(used))
	out <- gauge(m.descs.memoryLimit, float64(size))
	m.collectConnections(out)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func flowDesc(name, help string, labels ...string) *prometheus.Desc {
	return desc("heliograph_flow_"+name, help, append([]string{"source", "target"}, labels...)...)
}

func partitionDesc(name, help string) *prometheus.Desc {
	return desc("heliograph_partition_"+name, help, "source", "target", "topic", "remote_topic", "partition")
}

// descs describes the series under our own names.
type descs struct {
	flowState, flowTopics, flowLanes, flowPartitions, flowThrottled, flowHeartbeat, flowLosses, flowLost, jobRun, jobOK, groupSynced, groupLatency *prometheus.Desc
	records, bytes, batches, rewritten, dropped, skipped, lagRecords, lagSeconds, syncs, foreign                                                   *prometheus.Desc
	memoryUsed, memoryLimit, connections, logins, throttle                                                                                         *prometheus.Desc
}

func newDescs() descs {
	return descs{
		flowState: flowDesc("state",
			"1 for the state the flow is in, 0 for the others. Worry when failed is 1, or waiting stays 1.", "state"),
		flowTopics: flowDesc("topics", "Topics that the flow copies."),
		flowLanes:  flowDesc("lanes", "Lanes (partitions of the positions topic) that this process owns."),
		flowPartitions: flowDesc("partitions",
			"Partitions by state. Worry when parked is above 0: each needs a person, the log names it.", "state"),
		flowThrottled: flowDesc("throttled_seconds_total", "How long broker quotas made the flow wait."),
		flowHeartbeat: flowDesc("heartbeat_timestamp_seconds",
			"When the pair's last heartbeat was written, Unix time. Worry when it stands still."),
		flowLosses: flowDesc("losses_total",
			"Entries this process wrote to the loss ledger. Worry about any increase: an entry names what and why."),
		flowLost: flowDesc("lost_records_total", "Source records that those entries give up."),
		jobRun:   flowDesc("job_last_run_timestamp_seconds", "When the job last ran, Unix time.", "job"),
		jobOK: flowDesc("job_ok",
			"1 if the job's last run went well, else 0. Worry when it stays 0: the log has the reason.", "job"),
		groupSynced: flowDesc("group_synced_partitions",
			"Partitions of the group whose offsets stand on the target as translated.", "group"),
		groupLatency: flowDesc("group_sync_seconds",
			"Time from a group's commit on the source to the same place on the target, of the last ten minutes, at most: "+
				"counted from the last look that did not see the commit. Worry when it is far above the interval of the sync.", "percentile"),
		records: partitionDesc("records_total", "Records acknowledged by the target."),
		bytes:   partitionDesc("bytes_total", "Bytes of batches acknowledged by the target, as they are on the wire."),
		batches: partitionDesc("batches_total", "Batches acknowledged by the target."),
		rewritten: partitionDesc("rewritten_batches_total",
			"Batches that could not be forwarded as they were. They cost ten times the CPU; many mean a topic setting that differs."),
		dropped: partitionDesc("dropped_batches_total", "Batches without a record to copy: markers, aborted ones, emptied ones."),
		skipped: partitionDesc("skipped_records_total",
			"Records given up by policy or lost at the source. Worry about any increase."),
		lagRecords: partitionDesc("lag_records", "Offsets between the source's end and what the target has."),
		lagSeconds: partitionDesc("lag_seconds",
			"Age of the oldest record that the target does not have; 0 without lag. This is the loss if the source burns now."),
		syncs: partitionDesc("offset_syncs_total", "Offset syncs published."),
		foreign: partitionDesc("foreign_offsets_total",
			"Target offsets that others wrote between ours. Worry where nobody else should write."),
		memoryUsed: desc("heliograph_memory_used_bytes",
			"Record data held in memory. At the limit, reading waits for the target."),
		memoryLimit: desc("heliograph_memory_limit_bytes", "Bound of the record data held in memory."),
		connections: desc("heliograph_data_connections", "Open connections for records, by cluster alias.", "cluster"),
		logins: desc("heliograph_login_failures_total",
			"Refused logins, by cluster alias. Worry above a few: accounts get locked.", "cluster"),
		throttle: desc("heliograph_throttle_seconds_total",
			"How long brokers asked connections to pause (quotas), by cluster alias and direction.", "cluster", "direction"),
	}
}

var flowStates = []flow.State{flow.Starting, flow.Waiting, flow.Running, flow.Degraded, flow.Failed, flow.Stopped}

var partitionStates = []string{"running", "waiting", "parked"}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func (m *metrics) collectFlow(out chan<- prometheus.Metric, s *flow.Status) {
	id := []string{string(s.ID.Source), string(s.ID.Target)}
	with := func(more ...string) []string { return append(id[:2:2], more...) }
	for _, state := range flowStates {
		out <- gauge(m.descs.flowState, boolean(state == s.State), with(string(state))...)
	}
	out <- gauge(m.descs.flowTopics, float64(s.Topics), id...)
	out <- gauge(m.descs.flowLanes, float64(s.Lanes), id...)
	out <- counter(m.descs.flowThrottled, s.ThrottledFor.Seconds(), id...)
	out <- counter(m.descs.flowLosses, float64(s.Losses), id...)
	out <- counter(m.descs.flowLost, float64(s.LostRecords), id...)
	if !s.HeartbeatAt.IsZero() {
		out <- gauge(m.descs.flowHeartbeat, unix(s.HeartbeatAt), id...)
	}
	for _, j := range s.Jobs {
		if !j.LastRun.IsZero() {
			out <- gauge(m.descs.jobRun, unix(j.LastRun), with(j.Name)...)
			out <- gauge(m.descs.jobOK, boolean(j.Err == ""), with(j.Name)...)
		}
	}
	for _, g := range s.Groups {
		out <- gauge(m.descs.groupSynced, float64(g.Synced), with(g.Group)...)
	}
	if l := s.GroupLatency; l.Count > 0 {
		for percentile, took := range map[string]time.Duration{"50": l.P50, "99": l.P99, "100": l.Max} {
			out <- gauge(m.descs.groupLatency, took.Seconds(), with(percentile)...)
		}
	}
	states := map[string]int{}
	for i := range s.Partitions {
		states[s.Partitions[i].State]++
		m.collectPartition(out, id, &s.Partitions[i])
	}
	for _, state := range partitionStates {
		out <- gauge(m.descs.flowPartitions, float64(states[state]), with(state)...)
	}
}

func (m *metrics) collectPartition(out chan<- prometheus.Metric, flowID []string, p *flow.PartitionStatus) {
	labels := append(flowID[:2:2], p.Source.Topic, p.Target.Topic, strconv.Itoa(int(p.Source.Partition)))
	out <- counter(m.descs.records, float64(p.Records), labels...)
	out <- counter(m.descs.bytes, float64(p.Bytes), labels...)
	out <- counter(m.descs.batches, float64(p.Batches), labels...)
	out <- counter(m.descs.rewritten, float64(p.Rewritten), labels...)
	out <- counter(m.descs.dropped, float64(p.Dropped), labels...)
	out <- counter(m.descs.skipped, float64(p.SkippedRecords), labels...)
	out <- counter(m.descs.syncs, float64(p.OffsetSyncs), labels...)
	out <- counter(m.descs.foreign, float64(p.ForeignOffsets), labels...)
	out <- gauge(m.descs.lagRecords, float64(p.LagRecords), labels...)
	out <- gauge(m.descs.lagSeconds, p.LagSeconds, labels...)
}

// collectConnections sums over the clients of one cluster: each flow has its own.
func (m *metrics) collectConnections(out chan<- prometheus.Metric) {
	sums := map[string]cluster.Stats{}
	for _, c := range m.clients() {
		s, sum := c.Stats(), sums[c.Alias()]
		sum.Connections += s.Connections
		sum.LoginFailures += s.LoginFailures
		sum.FetchThrottle += s.FetchThrottle
		sum.ProduceThrottle += s.ProduceThrottle
		sums[c.Alias()] = sum
	}
	for alias, s := range sums {
		out <- gauge(m.descs.connections, float64(s.Connections), alias)
		out <- counter(m.descs.logins, float64(s.LoginFailures), alias)
		out <- counter(m.descs.throttle, s.FetchThrottle.Seconds(), alias, "fetch")
		out <- counter(m.descs.throttle, s.ProduceThrottle.Seconds(), alias, "produce")
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
