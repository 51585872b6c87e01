package cluster

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// Both halves log in: the small client by asking for metadata, the data
// connections by themselves.
func TestEveryMechanismLogsIn(t *testing.T) {
	pki := newAuthority(t)
	for _, protocol := range []string{"SASL_PLAINTEXT", "SASL_SSL"} {
		for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
			t.Run(protocol+" "+mechanism, func(t *testing.T) {
				opts := []kfake.Opt{kfake.NumBrokers(1), kfake.EnableSASL(), kfake.SeedTopics(1, "orders"), kfake.Superuser(mechanism, "u", "secret")}
				if protocol == "SASL_SSL" {
					opts = append(opts, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pki.server(t, time.Now().Add(time.Hour))}}))
				}
				_, c := fake(t, func(o *Options) {
					o.Security = Security{
						Protocol: protocol,
						TLS:      TLSFiles{TrustStore: Store{PEM: pki.pem}},
						SASL:     SASL{Mechanism: mechanism, Username: "u", Password: "secret"},
					}
				}, opts...)
				tp := kafka.TopicPartition{Topic: "orders"}
				produceTo(t, c, tp, batch("x"), batch(strings.Repeat("y", 200_000)))
				node, id := leaderOf(t, c, tp)
				f := dialFetch(t, c, node)
				f.Want(wantFrom(tp, id, 0))
				got, p := fetchUntil(t, f, tp)
				if len(p.Records) < 200_000 {
					t.Errorf("%d bytes", len(p.Records))
				}
				got.Buffer.Release()
			})
		}
	}
}

func TestRefusedLoginIsReportedOnceAndHeldBack(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	// The fake cluster only hangs up on a wrong password; Kafka says why.
	k.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = int16(kafka.CodeSASLAuthenticationFailed)
		return resp, nil, true
	})
	var log bytes.Buffer
	c := open(t, k.ListenAddrs(), func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Security = Security{Protocol: "SASL_PLAINTEXT", SASL: SASL{Mechanism: "PLAIN", Username: "u", Password: "s3cr3t-typo"}}
	})
	for range 5 {
		_, err := c.Topics(deadline(t))
		if kafka.CodeOf(err) != kafka.CodeSASLAuthenticationFailed && !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") ||
			kafka.ClassOf(err) != kafka.ClassOperator {
			t.Errorf("class %s: %v", kafka.ClassOf(err), err)
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Error("the password is in the error")
		}
	}
	if n := strings.Count(log.String(), "login refused"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, log.String())
	}
	if n := c.Stats().LoginFailures; n != 1 {
		t.Errorf("%d logins were tried", n)
	}
}

func TestLoginPauseGrowsToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{log: slog.New(slog.DiscardHandler), stats: &counters{}}
		if err := g.allow("west", "b:1"); err != nil {
			t.Fatal(err)
		}
		for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			want := time.Duration(seconds) * time.Second
			g.failed(kafka.CodeSASLAuthenticationFailed, errClosed)
			g.failed(kafka.CodeSASLAuthenticationFailed, errClosed) // another connection, the same failure
			time.Sleep(want - time.Millisecond)
			if g.allow("west", "b:1") == nil {
				t.Errorf("allowed before %s were over", want)
			}
			time.Sleep(time.Millisecond)
			if err := g.allow("west", "b:1"); err != nil {
				t.Errorf("after %s: %v", want, err)
			}
		}
		g.failed(kafka.CodeNone, errClosed)
		g.passed()
		if err := g.allow("west", "b:1"); err != nil {
			t.Errorf("after a success: %v", err)
		}
	})
}

func TestUnofferedMechanismIsNamed(t *testing.T) {
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	k.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.ErrorCode = int16(kafka.CodeUnsupportedSASLMechanism)
		resp.SupportedMechanisms = []string{"GSSAPI"}
		return resp, nil, true
	})
	c := open(t, k.ListenAddrs(), func(o *Options) {
		o.Security = Security{Protocol: "SASL_PLAINTEXT", SASL: SASL{Mechanism: "SCRAM-SHA-256", Username: "u", Password: "p"}}
	})
	if _, err := c.Topics(deadline(t)); kafka.ClassOf(err) != kafka.ClassOperator {
		t.Errorf("class %s: %v", kafka.ClassOf(err), err)
	}
	addr, port, err := net.SplitHostPort(k.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	// The data connections say what is offered.
	data := open(t, k.ListenAddrs(), func(o *Options) { o.Security = c.opts.Security })
	data.topo.noteNode(0, endpoint{host: addr, port: int32(n)})
	_, err = data.DialFetch(deadline(t), 0)
	if err == nil || !strings.Contains(err.Error(), "offers GSSAPI, not SCRAM-SHA-256") || data.Stats().LoginFailures != 1 {
		t.Error(err)
	}
}
