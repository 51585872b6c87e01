package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// A copy without a position parks, unless MirrorMaker's offset syncs tell of it: then
// both logs are read, in the preview as in the takeover.
func TestPreviewAsksTheOffsetSyncsAsATakeoverDoes(t *testing.T) {
	const syncs = "mm2-offset-syncs.B.internal"
	source := fakeCluster(t, kfake.ClusterID("a"), kfake.SeedTopics(1, syncs))
	target := fakeCluster(t, kfake.ClusterID("b"), kfake.SeedTopics(1, "A.orders", "A.secrets"))
	write := func(at, topic string, key, value []byte) {
		t.Helper()
		cl, err := kgo.NewClient(kgo.SeedBrokers(at))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: key, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range []string{"orders", "secrets"} {
		write(source, topic, nil, []byte("v"))
		write(target, "A."+topic, nil, []byte("v"))
	}
	s := mirror.OffsetSync{TopicPartition: kafka.TopicPartition{Topic: "orders"}}
	write(source, syncs, s.AppendKey(nil), s.AppendValue(nil))
	dep := loadText(t, fmt.Sprintf(`clusters = A, B
A.bootstrap.servers = %s
B.bootstrap.servers = %s
A->B.enabled = true
replication.factor = 1
sync.topic.acls.enabled = false
`, source, target))
	p, err := Foresee(t.Context(), dep, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Flows {
		if f.Flow != "A->B" {
			continue
		}
		if f.Error != "" || len(f.Topics) != 2 {
			t.Fatalf("preview %+v", f)
		}
		for _, topic := range f.Topics {
			want, says := "scan", "MirrorMaker's offset syncs tell how far it has copied"
			if topic.Source == "secrets" {
				want, says = "park", "no position is stored"
			}
			if len(topic.Places) != 1 || topic.Places[0].Kind != want || !strings.Contains(topic.Places[0].Text, says) {
				t.Errorf("%s: %+v, want %s: %s", topic.Source, topic.Places, want, says)
			}
		}
	}
}
