//go:build e2e

package e2e

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"heliograph/internal/kafkatest"
)

// TestMetricsAndHealth: an orchestrator's questions and the counters, under our
// names and under MirrorMaker's.
func TestMetricsAndHealth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic1()
	h := start(t, f.oneWay())
	f.produce(f.primary, topic, partitions, 100)
	remote := fmt.Sprintf(`topic=%q`, f.remote(topic))
	await(t, "100 records are counted", func() string {
		return lacks(100, int(h.metric("kafka_connect_mirror_mirrorsourceconnector_record_count", remote)))
	})
	h.awaitState(f.flow(), "running")
	for _, path := range []string{"/healthz", "/healthz/live", "/healthz/ready"} {
		if status, body := h.get(path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for name, want := range map[string]float64{
		"heliograph_partition_records_total": 100,
		"heliograph_partition_lag_records":   0,
	} {
		if got := h.metric(name, fmt.Sprintf(`topic=%q`, topic)); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := h.metric("heliograph_flow_state", fmt.Sprintf(`source=%q`, f.from), `state="running"`); got != 1 {
		t.Errorf("heliograph_flow_state running is %v", got)
	}
	if got := h.metric("heliograph_flow_heartbeat_timestamp_seconds"); got == 0 {
		t.Error("no heartbeat's time")
	}
	h.stop()
}

// TestRateCap: a flow's cap holds over a transfer, and the transfer goes on.
func TestRateCap(t *testing.T) {
	t.Parallel()
	const rate, size, count = 100 << 10, 1 << 10, 1000
	f := newFixture(t)
	topic := f.topic1()
	h := start(t, f.oneWay(f.flow()+".heliograph.rate.bytes.per.second = 100KiB"))
	awaitTopic(t, f.backup, f.remote(topic), partitions)
	records := kafkatest.Messages(topic, partitions, count/partitions)
	for _, r := range records {
		// Random bytes cannot be compressed on the way.
		r.Value = make([]byte, size)
		_, _ = rand.Read(r.Value)
	}
	began := time.Now()
	f.primary.Produce(t, records)
	awaitCount(within(t, patience), t, f.backup, f.remote(topic), count)
	// A slow machine takes longer; only too quick is wrong. A fifth is left for
	// what a cap lets through at its start.
	if took, least := time.Since(began), time.Duration(size*count/rate)*time.Second*4/5; took < least {
		t.Errorf("%d KiB took %v, a cap of %d KiB a second allows no less than %v", size*count>>10, took, rate>>10, least)
	}
	h.stop()
}

// TestTargetOutage: a target that is not there yet, goes silent, and comes back;
// and what signals do meanwhile. It has a target of its own to cut off.
func TestTargetOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.backup = kafkatest.Start(t, kafkatest.ClusterOptions{Name: "outage-B", Version: kafkatest.ReleaseTarget, Proxied: true})
	network := f.backup.Broker(1).Proxy()
	topic := f.topic1()
	file := f.oneWay()
	want := 0
	produce := func() {
		t.Helper()
		f.produce(f.primary, topic, partitions, 100)
		want += 100
	}
	arrives := func() {
		t.Helper()
		awaitCount(within(t, patience), t, f.backup, f.remote(topic), want)
		same(t, kafkatest.Side{Cluster: f.primary, Topic: topic}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(topic)})
	}
	var h *heliograph
	silence := func() {
		t.Helper()
		await(t, "all partitions are copied", func() string {
			return lacks(partitions, int(h.metric("heliograph_flow_partitions", `state="running"`)))
		})
		network.Silence()
		produce()
		await(t, "records wait for the silent target", func() string {
			return lacks(1, int(h.metric("heliograph_partition_lag_records", fmt.Sprintf(`topic=%q`, topic))))
		})
	}

	network.Cut()
	produce()
	h = start(t, file)
	if why := h.awaitState(f.flow(), "waiting"); !strings.Contains(why, f.to) {
		t.Errorf("the reason %q does not name the target", why)
	}
	if status, _ := h.get("/healthz/live"); status != http.StatusOK {
		t.Errorf("live answers %d without the target", status)
	}
	if status, body := h.get("/healthz/ready"); status != http.StatusServiceUnavailable || !strings.Contains(body, f.flow()) {
		t.Errorf("ready answers %d %s without the target", status, body)
	}
	network.Heal()
	arrives()
	h.awaitState(f.flow(), "running")
	if status, body := h.get("/healthz/ready"); status != http.StatusOK {
		t.Errorf("ready answers %d %s", status, body)
	}

	// The second signal ends the process at once.
	silence()
	signal(t, h, syscall.SIGTERM)
	h.awaitLog("stopping")
	signal(t, h, syscall.SIGTERM)
	h.exit(128 + int(syscall.SIGTERM))
	network.Heal()
	h = start(t, file, "--stop-within", "2s")
	arrives()

	// One signal ends it within the bound, and the code says that not all was settled.
	silence()
	signal(t, h, syscall.SIGTERM)
	h.exit(4)
	network.Heal()
	h = start(t, file)
	arrives()
	h.stop()
	arrives()
}

func signal(t *testing.T, h *heliograph, sig syscall.Signal) {
	t.Helper()
	if err := h.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
