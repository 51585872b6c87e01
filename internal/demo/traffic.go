package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// tick is how often the writer writes its share of the rate.
const tick = 100 * time.Millisecond

// housekeeping is how often the clusters drop what is past their topics' limits.
const housekeeping = 10 * time.Second

// reportsRead is how many orders the group that nobody runs has read.
const reportsRead = 50

// Run makes traffic on A until ctx ends: a writer, three consumer groups, and
// the clusters' housekeeping.
func (d *Demo) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.write(ctx) })
	g.Go(func() error { return d.read(ctx, GroupBilling, 0, TopicOrders, TopicPayments) })
	g.Go(func() error { return d.read(ctx, GroupShipping, 0, TopicOrders) })
	g.Go(func() error { return d.read(ctx, GroupReports, reportsRead, TopicOrders) })
	g.Go(func() error { return d.keepHouse(ctx) })
	return g.Wait()
}

// Start is Run beside the caller. The returned function ends the traffic and waits.
func (d *Demo) Start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return d.Run(ctx) })
	return func() error {
		cancel()
		return g.Wait()
	}
}

func (d *Demo) write(ctx context.Context) error {
	cl, err := d.client("demo-shop")
	if err != nil {
		return fmt.Errorf("demo writer: %w", err)
	}
	defer cl.Close()
	t := time.NewTicker(tick)
	defer t.Stop()
	var n, owed int
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		var batch []*kgo.Record
		for owed += d.rate; owed >= int(time.Second/tick); owed -= int(time.Second / tick) {
			n++
			batch = append(batch, record(n))
		}
		if err := cl.ProduceSync(ctx, batch...).FirstErr(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("demo writer: %w", err)
		}
	}
}

// record is the shop's n-th event: mostly orders, then payments, now and then a price.
func record(n int) *kgo.Record {
	id := strconv.Itoa(n)
	amount := strconv.FormatFloat(float64(100+rand.IntN(20_000))/100, 'f', 2, 64) //nolint:gosec // made-up amounts
	value := `{"order_id": ` + id + `, "amount": ` + amount + `}`
	switch {
	case n%50 == 0:
		article := "article-" + strconv.Itoa(n/50%20)
		return &kgo.Record{Topic: TopicPrices, Key: []byte(article), Value: []byte(amount)}
	case n%3 == 0:
		return &kgo.Record{Topic: TopicPayments, Key: []byte(id), Value: []byte(value)}
	}
	return &kgo.Record{
		Topic: TopicOrders, Key: []byte("customer-" + strconv.Itoa(n%97)), Value: []byte(value),
		Headers: []kgo.RecordHeader{{Key: "source", Value: []byte("demo")}},
	}
}

// read is one member of a group. With a limit it leaves once it has read that much.
func (d *Demo) read(ctx context.Context, group string, limit int, topics ...string) error {
	cl, err := d.client("demo-"+group,
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitInterval(time.Second))
	if err != nil {
		return fmt.Errorf("demo group %s: %w", group, err)
	}
	defer cl.Close()
	for read := 0; limit == 0 || read < limit; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("demo group %s: %w", group, err)
		}
		read += fetches.NumRecords()
	}
	if err := cl.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("demo group %s: %w", group, err)
	}
	return nil
}

func (d *Demo) keepHouse(ctx context.Context) error {
	t := time.NewTicker(housekeeping)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			d.a.Compact()
			d.b.Compact()
		}
	}
}
