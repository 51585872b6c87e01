package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTrafficFlowsAndStopsWhenAsked(t *testing.T) {
	d, err := Open(t.Context(), Options{RecordsPerSecond: 2000})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()

	a, b := d.Addresses()
	if !strings.Contains(d.File(), a) || !strings.Contains(d.File(), b) || a == b {
		t.Errorf("the file does not name both clusters:\n%s", d.File())
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(a))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	deadline, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for _, group := range []string{GroupBilling, GroupShipping, GroupReports} {
		for committed := int64(0); committed == 0; {
			offsets, err := adm.FetchOffsets(deadline, group)
			if err != nil && (!errors.Is(err, kerr.GroupIDNotFound) || deadline.Err() != nil) {
				t.Fatalf("group %s: %v", group, err)
			}
			offsets.Each(func(o kadm.OffsetResponse) { committed += max(o.At, 0) })
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTwoDemosRunBesideEachOther(t *testing.T) {
	first, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	a1, b1 := first.Addresses()
	a2, b2 := second.Addresses()
	if a1 == a2 || b1 == b2 {
		t.Errorf("both demos use %s and %s", a1, b1)
	}
}
