package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/config"
)

// farCluster answers every question for metadata late, and says what its brokers'
// buffers are.
func farCluster(t *testing.T, id, buffers string) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.ControlKey(kmsg.Metadata.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		time.Sleep(2 * farTrip)
		return nil, nil, false
	})
	c.ControlKey(kmsg.DescribeConfigs.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		asked := req.(*kmsg.DescribeConfigsRequest)
		if asked.Resources[0].ResourceType != kmsg.ConfigResourceTypeBroker {
			c.KeepControl()
			return nil, nil, false
		}
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, r := range asked.Resources {
			answer := kmsg.NewDescribeConfigsResponseResource()
			answer.ResourceType, answer.ResourceName = r.ResourceType, r.ResourceName
			for _, name := range r.ConfigNames {
				entry := kmsg.NewDescribeConfigsResponseResourceConfig()
				entry.Name, entry.Value = name, &buffers
				answer.Configs = append(answer.Configs, entry)
			}
			resp.Resources = append(resp.Resources, answer)
		}
		return resp, nil, true
	})
	return c.ListenAddrs()[0]
}

func distances(t *testing.T, source, target string) []config.Problem {
	t.Helper()
	dep := loadText(t, fmt.Sprintf(`clusters = A, B
A.bootstrap.servers = %s
B.bootstrap.servers = %s
A->B.enabled = true
replication.factor = 1
`, source, target))
	s, err := Look(t.Context(), dep, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var out []config.Problem
	for _, p := range s.Findings {
		if strings.Contains(p.Message, "round trip") {
			out = append(out, p)
		}
	}
	return out
}

func TestFarClustersAreFindingsWithTheirLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		source, target string
		want           []string // parts of the one finding; none is no finding
	}{
		"far source with Kafka's default": {farCluster(t, "a", "102400"), fakeCluster(t, kfake.ClusterID("b")), []string{"cluster A", "socket.send.buffer.bytes = 102400", "set socket.send.buffer.bytes = -1"}},
		"far source, sized by the kernel": {farCluster(t, "a", "-1"), fakeCluster(t, kfake.ClusterID("b")), nil},
		"far target":                      {fakeCluster(t, kfake.ClusterID("a")), farCluster(t, "b", "-1"), []string{"cluster B", "at most 5 batches a round trip", "near the target"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := distances(t, tc.source, tc.target)
			if len(tc.want) == 0 && len(got) > 0 || len(tc.want) > 0 && len(got) != 1 {
				t.Fatalf("%v", got)
			}
			for _, part := range tc.want {
				if text := got[0].Message + " " + got[0].Hint; !strings.Contains(text, part) {
					t.Errorf("%q lacks %q", text, part)
				}
			}
		})
	}
}
