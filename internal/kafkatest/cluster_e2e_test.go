//go:build e2e

package kafkatest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"heliograph/internal/kafkatest"
)

func TestMain(m *testing.M) { os.Exit(kafkatest.Main(m)) }

// Each release starts, serves its own tools and keeps its records through a kill.
func TestBrokerKeepsRecordsThroughKillAndRestart(t *testing.T) {
	for _, version := range []string{kafkatest.ReleaseOld, kafkatest.ReleaseSource, kafkatest.ReleaseTarget} {
		t.Run(version, func(t *testing.T) {
			c := kafkatest.Start(t, kafkatest.ClusterOptions{Version: version})
			c.CreateTopic(t, "orders", 2, nil)
			c.Produce(t, kafkatest.Messages("orders", 2, 10))
			if err := c.Broker(1).Kill(); err != nil {
				t.Fatal(err)
			}
			if err := c.Broker(1).Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			out, err := kafkatest.Tool(t.Context(), version, "ConsoleConsumer",
				"--bootstrap-server", c.Bootstrap(), "--topic", "orders", "--from-beginning", "--max-messages", "20", "--timeout-ms", "20000")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(out, "message-"); got != 20 {
				t.Errorf("the console consumer printed %d records, want 20:\n%s", got, out)
			}
		})
	}
}

// Every listener lets a right client in, and several brokers form one cluster.
func TestEveryListenerServesOnEveryBroker(t *testing.T) {
	for _, version := range []string{kafkatest.ReleaseOld, kafkatest.ReleaseSource, kafkatest.ReleaseTarget} {
		t.Run(version, func(t *testing.T) { everyListener(t, version) })
	}
}

func everyListener(t *testing.T, version string) {
	c := kafkatest.Start(t, kafkatest.ClusterOptions{
		Version:    version,
		Brokers:    2,
		Listeners:  []kafkatest.Protocol{kafkatest.SASLSSL, kafkatest.SASLPlaintext, kafkatest.SSL, kafkatest.Plaintext},
		Users:      map[string]string{"alice": `a "quoted" \ secret`},
		Authorizer: true,
	})
	tls := kgo.DialTLSConfig(c.Certificates().ClientTLS())
	password := `a "quoted" \ secret`
	for _, row := range []struct {
		protocol kafkatest.Protocol
		opts     []kgo.Opt
		modern   bool // needs a release with SCRAM over the protocol
	}{
		{protocol: kafkatest.Plaintext},
		{protocol: kafkatest.SSL, opts: []kgo.Opt{tls}},
		{protocol: kafkatest.SASLPlaintext, opts: []kgo.Opt{kgo.SASL(plain.Auth{User: "alice", Pass: password}.AsMechanism())}},
		{protocol: kafkatest.SASLPlaintext, opts: []kgo.Opt{kgo.SASL(scram.Auth{User: "alice", Pass: password}.AsSha256Mechanism())}, modern: true},
		{protocol: kafkatest.SASLSSL, opts: []kgo.Opt{tls, kgo.SASL(scram.Auth{User: "admin", Pass: "admin-secret"}.AsSha512Mechanism())}, modern: true},
	} {
		if row.modern && version == kafkatest.ReleaseOld {
			continue
		}
		for _, b := range c.Brokers() {
			cl, err := kgo.NewClient(append(row.opts, kgo.SeedBrokers(b.Addr(row.protocol)), kgo.RetryTimeout(5*time.Second))...)
			if err != nil {
				t.Fatal(err)
			}
			if err := cl.Ping(t.Context()); err != nil {
				t.Errorf("%s on broker %d: %v", row.protocol, b.ID(), err)
			}
			cl.Close()
		}
	}
}

// A client of a proxied cluster meets the proxy also after it learnt the broker's advertised address.
func TestProxiedClusterAdvertisesTheProxy(t *testing.T) {
	c := kafkatest.Start(t, kafkatest.ClusterOptions{Version: kafkatest.ReleaseTarget, Proxied: true})
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ask := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		// By its id, so over the address that the cluster advertised.
		_, err := cl.Broker(1).RetriableRequest(ctx, kmsg.NewPtrMetadataRequest())
		return err
	}
	if err := errors.Join(cl.Ping(t.Context()), ask(20*time.Second)); err != nil {
		t.Fatal(err)
	}
	c.Broker(1).Proxy().Cut()
	if err := ask(time.Second); err == nil {
		t.Error("a request got through a cut proxy")
	}
	c.Broker(1).Proxy().Heal()
	if err := ask(20 * time.Second); err != nil {
		t.Errorf("after healing: %v", err)
	}
}

// A paused broker answers nothing and goes on where it was.
func TestPausedBrokerResumes(t *testing.T) {
	_, b := kafkatest.Pair(t)
	if err := b.Broker(1).Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	pingErr := b.Client(t).Ping(ctx)
	if err := b.Broker(1).Resume(); err != nil {
		t.Fatal(err)
	}
	if pingErr == nil {
		t.Error("a paused broker answered")
	}
	topic := kafkatest.Name(t, "orders")
	b.CreateTopic(t, topic, 1, nil)
	b.Produce(t, kafkatest.Messages(topic, 1, 1))
	if got := fmt.Sprint(len(b.ReadTopic(t, topic)[0])); got != "1" {
		t.Errorf("%s records, want 1", got)
	}
}
