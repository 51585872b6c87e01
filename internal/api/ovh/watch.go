package ovh

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"heliograph/internal/flow"
)

// ownNode is this process, which is the node of every MirrorMaker service.
func (h *Handler) ownNode(s mirrorService) node {
	return node{
		ID: idOf("node", s.id, h.host), Name: h.host, Flavor: "heliograph", Region: "local",
		Status: statusReady, CreatedAt: &h.started,
	}
}

func (h *Handler) listMirrorNodes(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	return []string{h.ownNode(s).ID}, nil
}

func (h *Handler) getMirrorNode(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	return nodeByID([]node{h.ownNode(s)}, c.PathValue("nodeId"))
}

// metric is cloud.project.database.service.Metric.
type metric struct {
	Name    string       `json:"name"`
	Units   string       `json:"units"`
	Metrics []hostMetric `json:"metrics"`
}

type hostMetric struct {
	Hostname   string      `json:"hostname"`
	DataPoints []dataPoint `json:"dataPoints"`
}

type dataPoint struct {
	Timestamp int64   `json:"timestamp"` // seconds since 1970
	Value     float64 `json:"value"`
}

// measure is one figure of all flows of a service.
type measure struct {
	name, units string
	extended    bool // only told with extended=true
	of          func([]flow.Status) float64
}

// sum adds up a figure of flows.
func sum(of func(*flow.Status) float64) func([]flow.Status) float64 {
	return func(flows []flow.Status) float64 {
		var total float64
		for i := range flows {
			total += of(&flows[i])
		}
		return total
	}
}

// partitionsOf adds up a figure of partitions.
func partitionsOf(of func(*flow.PartitionStatus) int64) func([]flow.Status) float64 {
	return sum(func(s *flow.Status) float64 {
		var total int64
		for i := range s.Partitions {
			total += of(&s.Partitions[i])
		}
		return float64(total)
	})
}

var measures = []measure{
	{name: "replication_bytes_total", units: "BYTES", of: partitionsOf(func(p *flow.PartitionStatus) int64 { return p.Bytes })},
	{name: "replication_lag_records", units: "SCALAR", of: partitionsOf(func(p *flow.PartitionStatus) int64 { return p.LagRecords })},
	{name: "replication_lag_seconds", units: "SECONDS", of: func(flows []flow.Status) float64 {
		var worst float64
		for i := range flows {
			_, seconds := flows[i].Lag()
			worst = max(worst, seconds)
		}
		return worst
	}},
	{name: "replication_records_total", units: "SCALAR", of: partitionsOf(func(p *flow.PartitionStatus) int64 { return p.Records })},
	{name: "replication_batches_total", units: "SCALAR", extended: true, of: partitionsOf(func(p *flow.PartitionStatus) int64 { return p.Batches })},
	{name: "replication_lost_records_total", units: "SCALAR", extended: true, of: sum(func(s *flow.Status) float64 { return float64(s.LostRecords) })},
	{name: "replication_partitions", units: "SCALAR", extended: true, of: sum(func(s *flow.Status) float64 { return float64(len(s.Partitions)) })},
	{name: "replication_partitions_parked", units: "SCALAR", extended: true, of: sum(func(s *flow.Status) float64 { return float64(s.Parked()) })},
}

func (h *Handler) listMetrics(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		return nil, err
	}
	extended := false
	if v := c.URL.Query().Get("extended"); v != "" {
		var err error
		if extended, err = strconv.ParseBool(v); err != nil {
			return nil, badRequest("[extended] given data (%q) is not valid for type boolean", v)
		}
	}
	names := []string{}
	for _, m := range measures {
		if extended || !m.extended {
			names = append(names, m.name)
		}
	}
	slices.Sort(names)
	return names, nil
}

var periods = []string{"lastHour", "lastDay", "lastWeek", "lastMonth", "lastYear"}

// getMetric answers with the value of this moment, whatever the period: history is
// Prometheus' job.
func (h *Handler) getMetric(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	name := c.PathValue("metricName")
	i := slices.IndexFunc(measures, func(m measure) bool { return m.name == name })
	if i < 0 {
		return nil, notFound(classMetricName, "there is no metric %q", name)
	}
	if period := c.URL.Query().Get("period"); !slices.Contains(periods, period) {
		return nil, badRequest("[period] must be one of %s", strings.Join(periods, ", "))
	}
	var flows []flow.Status
	for _, r := range h.replicationsOf(c, s.id) {
		if st, ok := h.o.Control.Status(c.Context(), r.doc.Source, r.doc.Target); ok {
			flows = append(flows, st)
		}
	}
	points := []dataPoint{{Timestamp: h.o.Now().Unix(), Value: measures[i].of(flows)}}
	return metric{Name: name, Units: measures[i].units, Metrics: []hostMetric{{Hostname: h.host, DataPoints: points}}}, nil
}

// logEntry is cloud.project.database.service.LogEntry.
type logEntry struct {
	Hostname  string `json:"hostname"`
	Message   string `json:"message"`
	Timestamp int64  `json:"timestamp"` // seconds since 1970
}

// maxLogs is how many entries OVHcloud tells.
const maxLogs = 1000

// logs are the events of the service's flows and of their clusters.
func (h *Handler) logs(c *call) (any, error) {
	s, err := h.mirrorOf(c)
	if err != nil {
		return nil, err
	}
	about := map[string]bool{"document " + kindService + "/" + s.id: true}
	for _, l := range h.links(c) {
		if l.doc.Service == s.id {
			about["cluster "+l.doc.Alias] = true
			about["document "+kindIntegration+"/"+l.id] = true
		}
	}
	for _, r := range h.replicationsOf(c, s.id) {
		about["flow "+r.flow.ID().String()] = true
		about["document "+kindReplication+"/"+r.id] = true
	}
	out := []logEntry{}
	for _, ev := range h.o.Control.Events(c.Context(), 0) {
		if !about[ev.Resource] {
			continue
		}
		message := ev.Kind + " " + ev.Resource
		if ev.Message != "" {
			message += ": " + ev.Message
		}
		if ev.Actor != "" {
			message += fmt.Sprintf(" (by %s)", ev.Actor)
		}
		out = append(out, logEntry{Hostname: h.host, Message: message, Timestamp: ev.Time.Unix()})
	}
	return out[max(0, len(out)-maxLogs):], nil
}

// none is the answer to lists that are always empty here.
func (h *Handler) none(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		return nil, err
	}
	return []string{}, nil
}

func (h *Handler) noLogForwarding(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		return nil, err
	}
	return nil, notFound(classNotFound, "heliograph forwards no logs to OVHcloud's platform; it writes them to its standard error")
}

func (h *Handler) noMaintenance(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		return nil, err
	}
	return nil, notFound(classNotFound, "heliograph plans no maintenance: there is nothing to apply")
}

// prometheusEndpoint is cloud.project.database.service.PrometheusEndpoint.
type prometheusEndpoint struct {
	Username *string            `json:"username"`
	Targets  []prometheusTarget `json:"targets"`
}

type prometheusTarget struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// prometheus tells where to scrape: the server's address for metrics, or this one, by
// the name by which it was asked.
func (h *Handler) prometheus(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		return nil, err
	}
	name, port := splitAddress(c.Host, map[bool]int{false: 80, true: 443}[c.TLS != nil])
	if h.o.Metrics != "" {
		var bound string
		bound, port = splitAddress(h.o.Metrics, port)
		if ip := net.ParseIP(bound); bound != "" && (ip == nil || !ip.IsUnspecified()) {
			name = bound
		}
	}
	return prometheusEndpoint{Targets: []prometheusTarget{{Host: name, Port: port}}}, nil
}

// splitAddress takes host:port apart; otherwise is the port of an address without one.
func splitAddress(address string, otherwise int) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, otherwise
	}
	if port, err = strconv.Atoi(text); err != nil {
		return host, otherwise
	}
	return host, port
}

func (h *Handler) noPrometheusUser(c *call) (any, error) {
	if _, err := h.mirrorOf(c); err != nil {
		return nil, err
	}
	return nil, forbidden("/metrics has no user of its own: it is protected as the rest of the server is")
}
