package daemon

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"heliograph/internal/cluster"
	"heliograph/internal/flow"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// metrics writes the flows' statuses as series: it costs something only when
// somebody scrapes, and a partition's series end with the partition.
type metrics struct {
	statuses func() []flow.Status
	now      func() time.Time
	memory   func() (used, size int64)
	clients  func() []*cluster.Client

	mu struct {
		sync.Mutex
		rates map[partitionKey]*window // for MirrorMaker's *_rate
	}
}

// Series shows this daemon's flows to Prometheus, under our own names and under
// those of MirrorMaker's JMX metrics as exporters spell them.
func (d *Daemon) Series() func(*telemetry.Exposition) {
	m := &metrics{
		statuses: d.Status,
		now:      time.Now,
		memory:   func() (int64, int64) { return d.budget.Used(), d.budget.Size() },
		clients:  d.clients,
	}
	m.mu.rates = map[partitionKey]*window{}
	return m.write
}

// write takes one status of every flow and writes it in both spellings.
func (m *metrics) write(e *telemetry.Exposition) {
	statuses := m.statuses()
	writeFlows(e, statuses)
	writePartitions(e, statuses)
	m.writeMirrorMaker(e, statuses)
	used, size := m.memory()
	e.Family("heliograph_memory_used_bytes", telemetry.Gauge, "Record data held in memory. At the limit, reading waits for the target.")
	e.Sample(nil, float64(used))
	e.Family("heliograph_memory_limit_bytes", telemetry.Gauge, "Bound of the record data held in memory.")
	e.Sample(nil, float64(size))
	m.writeConnections(e)
}

// family is one name with its meaning and its samples. In a text, all samples of a
// name stand together, so that statuses are walked once for each.
type family[T any] struct {
	name string
	kind telemetry.Kind
	help string
	// samples says what T has of it: labels beyond T's own, and the value.
	samples func(status T, sample func(v float64, labels ...string))
}

// one is a family with one sample of each T, and no further label.
func one[T any](name string, kind telemetry.Kind, help string, value func(T) float64) family[T] {
	return family[T]{name, kind, help, func(s T, sample func(float64, ...string)) { sample(value(s)) }}
}

//nolint:gochecknoglobals // a table
var flowFamilies = []family[*flow.Status]{
	{
		"state", telemetry.Gauge, "1 for the state the flow is in, 0 for the others. Worry when failed is 1, or waiting stays 1.",
		func(s *flow.Status, sample func(float64, ...string)) {
			for _, state := range flowStates {
				sample(boolean(state == s.State), "state", string(state))
			}
		},
	},
	one("topics", telemetry.Gauge, "Topics that the flow copies.", func(s *flow.Status) float64 { return float64(s.Topics) }),
	one("lanes", telemetry.Gauge, "Lanes (partitions of the positions topic) that this process owns.", func(s *flow.Status) float64 { return float64(s.Lanes) }),
	{
		"partitions", telemetry.Gauge, "Partitions by state. Worry when parked is above 0: each needs a person, the log names it.",
		func(s *flow.Status, sample func(float64, ...string)) {
			states := map[string]int{}
			for i := range s.Partitions {
				states[s.Partitions[i].State]++
			}
			for _, state := range partitionStates {
				sample(float64(states[state]), "state", state)
			}
		},
	},
	one("throttled_seconds_total", telemetry.Counter, "How long broker quotas made the flow wait.", func(s *flow.Status) float64 { return s.ThrottledFor.Seconds() }),
	one("fetched_bytes_total", telemetry.Counter, "Bytes of batches read from the source.", func(s *flow.Status) float64 { return float64(s.Traffic.Fetched) }),
	one("delivered_bytes_total", telemetry.Counter, "Of these, bytes of batches that are done with: on the target, without a record to copy, or given up. "+
		"Worry when fetched grows by more than a fiftieth faster: batches are read twice.", func(s *flow.Status) float64 { return float64(s.Traffic.Delivered) }),
	one("cut_bytes_total", telemetry.Counter, "Bytes of batches that a broker cut off at the end of an answer, and that were read again.",
		func(s *flow.Status) float64 { return float64(s.Traffic.Cut) }),
	one("losses_total", telemetry.Counter, "Entries this process wrote to the loss ledger. Worry about any increase: an entry names what and why.",
		func(s *flow.Status) float64 { return float64(s.Losses) }),
	one("lost_records_total", telemetry.Counter, "Source records that those entries give up.", func(s *flow.Status) float64 { return float64(s.LostRecords) }),
	one("progress_group", telemetry.Gauge, "1 if how far the flow has copied is committed as a consumer group on the source, 0 where that is off or denied.",
		func(s *flow.Status) float64 { return boolean(s.Progress) }),
	{
		"heartbeat_timestamp_seconds", telemetry.Gauge, "When the pair's last heartbeat was written, Unix time. Worry when it stands still.",
		func(s *flow.Status, sample func(float64, ...string)) {
			if !s.HeartbeatAt.IsZero() {
				sample(unix(s.HeartbeatAt))
			}
		},
	},
	{
		"job_last_run_timestamp_seconds", telemetry.Gauge, "When the job last ran, Unix time.",
		func(s *flow.Status, sample func(float64, ...string)) {
			for _, j := range s.Jobs {
				if !j.LastRun.IsZero() {
					sample(unix(j.LastRun), "job", j.Name)
				}
			}
		},
	},
	{
		"job_ok", telemetry.Gauge, "1 if the job's last run went well, else 0. Worry when it stays 0: the log has the reason.",
		func(s *flow.Status, sample func(float64, ...string)) {
			for _, j := range s.Jobs {
				if !j.LastRun.IsZero() {
					sample(boolean(j.Err == ""), "job", j.Name)
				}
			}
		},
	},
	{
		"group_synced_partitions", telemetry.Gauge, "Partitions of the group whose offsets stand on the target as translated.",
		func(s *flow.Status, sample func(float64, ...string)) {
			for _, g := range s.Groups {
				sample(float64(g.Synced), "group", g.Group)
			}
		},
	},
	{
		"groups_withheld", telemetry.Gauge, "Groups of which something was not written to the target in the last round, and why: active there, moved on there.",
		func(s *flow.Status, sample func(float64, ...string)) {
			groups := map[plan.Reason]int{}
			for _, g := range s.Groups {
				for _, reason := range g.Withheld {
					groups[reason]++
				}
			}
			for _, reason := range slices.Sorted(maps.Keys(groups)) {
				sample(float64(groups[reason]), "reason", string(reason))
			}
		},
	},
	{
		"group_sync_seconds", telemetry.Gauge, "Time from a group's commit on the source to the same place on the target, of the last ten minutes, at most: " +
			"counted from the last look that did not see the commit. Worry when it is far above the interval of the sync.",
		func(s *flow.Status, sample func(float64, ...string)) {
			if l := s.GroupLatency; l.Count > 0 {
				sample(l.P50.Seconds(), "percentile", "50")
				sample(l.P99.Seconds(), "percentile", "99")
				sample(l.Max.Seconds(), "percentile", "100")
			}
		},
	},
}

var flowStates = []flow.State{flow.Starting, flow.Waiting, flow.Running, flow.Degraded, flow.Failed, flow.Stopped}

var partitionStates = []string{"running", "waiting", "parked"}

func writeFlows(e *telemetry.Exposition, statuses []flow.Status) {
	var labels []byte
	for _, f := range flowFamilies {
		e.Family("heliograph_flow_"+f.name, f.kind, f.help)
		for i := range statuses {
			s := &statuses[i]
			f.samples(s, func(v float64, more ...string) {
				labels = telemetry.AppendLabels(labels[:0], append([]string{"source", string(s.ID.Source), "target", string(s.ID.Target)}, more...)...)
				e.Sample(labels, v)
			})
		}
	}
}

// partitionFamily is one name with a sample of each partition.
type partitionFamily struct {
	name  string
	kind  telemetry.Kind
	help  string
	value func(*flow.PartitionStatus) float64
}

//nolint:gochecknoglobals // a table
var partitionFamilies = []partitionFamily{
	{"records_total", telemetry.Counter, "Records acknowledged by the target.", func(p *flow.PartitionStatus) float64 { return float64(p.Records) }},
	{"bytes_total", telemetry.Counter, "Bytes of batches acknowledged by the target, as they are on the wire.", func(p *flow.PartitionStatus) float64 { return float64(p.Bytes) }},
	{"batches_total", telemetry.Counter, "Batches acknowledged by the target.", func(p *flow.PartitionStatus) float64 { return float64(p.Batches) }},
	{
		"rewritten_batches_total", telemetry.Counter, "Batches that could not be forwarded as they were. They cost ten times the CPU; many mean a topic setting that differs.",
		func(p *flow.PartitionStatus) float64 { return float64(p.Rewritten) },
	},
	{"dropped_batches_total", telemetry.Counter, "Batches without a record to copy: markers, aborted ones, emptied ones.", func(p *flow.PartitionStatus) float64 { return float64(p.Dropped) }},
	{"skipped_records_total", telemetry.Counter, "Records given up by policy or lost at the source. Worry about any increase.", func(p *flow.PartitionStatus) float64 { return float64(p.SkippedRecords) }},
	{"offset_syncs_total", telemetry.Counter, "Offset syncs published.", func(p *flow.PartitionStatus) float64 { return float64(p.OffsetSyncs) }},
	{"foreign_offsets_total", telemetry.Counter, "Target offsets that others wrote between ours. Worry where nobody else should write.", func(p *flow.PartitionStatus) float64 { return float64(p.ForeignOffsets) }},
	{"lag_records", telemetry.Gauge, "Offsets between the source's end and what the target has.", func(p *flow.PartitionStatus) float64 { return float64(p.LagRecords) }},
	{
		"lag_seconds", telemetry.Gauge, "Age of the oldest record that the target does not have; 0 without lag. This is the loss if the source burns now.",
		func(p *flow.PartitionStatus) float64 { return p.LagSeconds },
	},
}

func writePartitions(e *telemetry.Exposition, statuses []flow.Status) {
	var names labelSets
	for i := range statuses {
		s := &statuses[i]
		for j := range s.Partitions {
			p := &s.Partitions[j]
			names.add("partition", strconv.Itoa(int(p.Source.Partition)), "remote_topic", p.Target.Topic,
				"source", string(s.ID.Source), "target", string(s.ID.Target), "topic", p.Source.Topic)
		}
	}
	for _, f := range partitionFamilies {
		e.Family("heliograph_partition_"+f.name, f.kind, f.help)
		n := 0
		for i := range statuses {
			for j := range statuses[i].Partitions {
				e.Sample(names.at(n), f.value(&statuses[i].Partitions[j]))
				n++
			}
		}
	}
}

// labelSets are the labels of many series, written once for all families.
type labelSets struct {
	text []byte
	ends []int
}

func (l *labelSets) add(namesAndValues ...string) {
	l.text = telemetry.AppendLabels(l.text, namesAndValues...)
	l.ends = append(l.ends, len(l.text))
}

func (l *labelSets) at(i int) []byte {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	return l.text[from:l.ends[i]]
}

// writeConnections sums over the clients of one cluster: each flow has its own.
func (m *metrics) writeConnections(e *telemetry.Exposition) {
	sums := map[string]cluster.Stats{}
	for _, c := range m.clients() {
		s, sum := c.Stats(), sums[c.Alias()]
		sum.Connections += s.Connections
		sum.LoginFailures += s.LoginFailures
		sum.FetchThrottle += s.FetchThrottle
		sum.ProduceThrottle += s.ProduceThrottle
		sums[c.Alias()] = sum
	}
	for _, f := range []family[cluster.Stats]{
		one("data_connections", telemetry.Gauge, "Open connections for records, by cluster alias.", func(s cluster.Stats) float64 { return float64(s.Connections) }),
		one("login_failures_total", telemetry.Counter, "Refused logins, by cluster alias. Worry above a few: accounts get locked.", func(s cluster.Stats) float64 { return float64(s.LoginFailures) }),
		{
			"throttle_seconds_total", telemetry.Counter, "How long brokers asked connections to pause (quotas), by cluster alias and direction.",
			func(s cluster.Stats, sample func(float64, ...string)) {
				sample(s.FetchThrottle.Seconds(), "direction", "fetch")
				sample(s.ProduceThrottle.Seconds(), "direction", "produce")
			},
		},
	} {
		e.Family("heliograph_"+f.name, f.kind, f.help)
		for _, alias := range slices.Sorted(maps.Keys(sums)) {
			f.samples(sums[alias], func(v float64, more ...string) {
				e.Sample(telemetry.AppendLabels(nil, append([]string{"cluster", alias}, more...)...), v)
			})
		}
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
