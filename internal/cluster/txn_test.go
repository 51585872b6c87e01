package cluster

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"heliograph/internal/kafka"
)

// By protocol 2 a partition joins by being written to, and a commit answers what the
// next transaction goes on under, the same however often it is asked.
func TestCommitByProtocol2(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	tp := kafka.TopicPartition{Topic: "orders"}
	ctx := deadline(t)
	pid, err := c.InitProducerID(ctx, "txn", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	node, id := leaderOf(t, c, tp)
	p := dialProduce(t, c, node)
	first := pid
	for n := range 3 {
		answered := make(chan outcome, 1)
		req := &kafka.ProduceRequest{TransactionalID: "txn", Joins: true, Acks: -1, TimeoutMillis: 5000, Partitions: []kafka.ProducePartition{
			{TopicPartition: tp, TopicID: id, Batch: transactional(batch("record"), pid)},
		}}
		if err := p.Send(req, func(a *kafka.Produced, err error) { answered <- copyOutcome(a, err) }); err != nil {
			t.Fatal(err)
		}
		o := <-answered
		if err := o.failed(); err != nil {
			t.Fatalf("transaction %d: %v", n, err)
		}
		next, err := c.CommitTxn(ctx, "txn", pid)
		if err != nil || next != (kafka.ProducerID{ID: pid.ID, Epoch: pid.Epoch + 1}) {
			t.Fatalf("the commit of %v answered %v, %v", pid, next, err)
		}
		if again, err := c.CommitTxn(ctx, "txn", pid); err != nil || again != next {
			t.Errorf("asked again it answered %v, %v, want %v", again, err, next)
		}
		pid = next
	}
	read := 0
	if err := c.ReadRecords(ctx, tp, 0, 6, kafka.ReadCommitted, func(kafka.Record) error { read++; return nil }); err != nil || read != 3 {
		t.Errorf("%d records, %v, want 3", read, err)
	}
	if _, err := c.CommitTxn(ctx, "txn", first); kafka.ClassOf(err) != kafka.ClassFence {
		t.Errorf("the first commit, asked again behind two more: %v", err)
	}
}

// A broker that is older than the feature level says would write what is to join a
// transaction outside of it.
func TestNothingJoinsOnOldBrokers(t *testing.T) {
	_, c := fake(t, nil, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.MaxVersions(kversion.V3_8_0()))
	tp := kafka.TopicPartition{Topic: "orders"}
	node, id := leaderOf(t, c, tp)
	p := dialProduce(t, c, node)
	pid := kafka.ProducerID{ID: 1}
	req := &kafka.ProduceRequest{TransactionalID: "txn", Joins: true, Acks: -1, Partitions: []kafka.ProducePartition{
		{TopicPartition: tp, TopicID: id, Batch: transactional(batch("record"), pid)},
	}}
	err := p.Send(req, func(*kafka.Produced, error) { t.Error("it was sent") })
	wantCode(t, err, kafka.CodeUnsupportedVersion)
	if _, err := c.CommitTxn(deadline(t), "txn", pid); err == nil {
		t.Error("and it was committed")
	}
}

func TestTransactionVersionOfTheNewestView(t *testing.T) {
	view := func(epoch int64, level int16) *kmsg.ApiVersionsResponse {
		a := kmsg.NewPtrApiVersionsResponse()
		a.FinalizedFeaturesEpoch = epoch
		if level > 0 {
			f := kmsg.NewApiVersionsResponseFinalizedFeature()
			f.Name, f.MaxVersionLevel = featureTransactions, level
			a.FinalizedFeatures = append(a.FinalizedFeatures, f)
		}
		return a
	}
	for _, row := range []struct {
		name    string
		answers []*kmsg.ApiVersionsResponse
		want    int16
	}{
		{"nobody tells", nil, 0},
		{"no such feature", []*kmsg.ApiVersionsResponse{view(7, 0)}, 0},
		{"raised, one has not heard", []*kmsg.ApiVersionsResponse{view(8, 2), view(7, 1)}, 2},
		{"lowered, one has not heard", []*kmsg.ApiVersionsResponse{view(7, 2), view(8, 0)}, 0},
	} {
		if got := transactionVersion(row.answers); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}
