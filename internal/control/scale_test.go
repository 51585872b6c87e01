package control

import (
	"fmt"
	"log/slog"
	"testing"

	"heliograph/internal/config"
	"heliograph/internal/daemon"
	"heliograph/internal/store"
)

// many is a control with n paused flows out of one cluster, on a daemon that does not run.
func many(tb testing.TB, n int) *Control {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	c, err := New(tb.Context(), Options{Store: &store.Memory{}, Engine: daemon.NewEmpty(config.Process{}, daemon.Options{Log: log}), Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	ctx := admin(tb)
	changes := []Change{PutCluster{Cluster{Alias: "S", Properties: brokers("s:1")}, Absent}}
	for i := range n {
		target := fmt.Sprintf("T%05d", i)
		changes = append(changes, PutCluster{Cluster{Alias: target, Properties: brokers(target + ":1")}, Absent},
			PutFlow{Flow{Source: "S", Target: target, Enabled: true, Paused: true, Properties: map[string]string{"topics": "orders.*"}}, Absent})
	}
	if _, err := c.Commit(ctx, changes...); err != nil {
		tb.Fatal(err)
	}
	return c
}

const thousands = 5000

func BenchmarkListFlows(b *testing.B) {
	c := many(b, thousands)
	ctx := admin(b)
	for b.Loop() {
		for _, f := range c.Flows(ctx) {
			if _, ok := c.Status(ctx, f.Source, f.Target); !ok {
				b.Fatal("no status")
			}
		}
	}
}

func BenchmarkChangeOneFlowOfMany(b *testing.B) {
	c := many(b, thousands)
	ctx := admin(b)
	for i := 0; b.Loop(); i++ {
		f := Flow{Source: "S", Target: "T00007", Enabled: true, Paused: true, Properties: map[string]string{"topics": fmt.Sprint("orders", i)}}
		if _, err := c.PutFlow(ctx, f, Any); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	c := many(b, thousands)
	for b.Loop() {
		if _, err := New(b.Context(), Options{Store: c.store, Log: slog.New(slog.DiscardHandler)}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAChangeOfOneFlowTouchesNoOther holds what makes thousands of flows cheap: what did not
// change is the same thing as before.
func TestAChangeOfOneFlowTouchesNoOther(t *testing.T) {
	c := many(t, 20)
	before := c.state.Load()
	if _, err := c.Resume(admin(t), "S", "T00003"); err != nil {
		t.Fatal(err)
	}
	after := c.state.Load()
	for id, h := range before.flows {
		if same := after.flows[id] == h; same == (id.Target == "T00003") {
			t.Errorf("%s is the same: %v", id, same)
		}
	}
}
