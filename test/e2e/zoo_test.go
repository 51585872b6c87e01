//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/recordbatch"
)

// Every kind of record arrives as it was: key, value, headers, time, partition
// and order, in batches of the source's codec.
func TestZooArrivesRecordForRecord(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	zooFrom(t, a, b)
}

// Message formats 0 and 1 are what 2.4.1 adds to the zoo.
func TestZooOfOldKafkaArrives(t *testing.T) {
	t.Parallel()
	_, b := kafkatest.Pair(t)
	zooFrom(t, kafkatest.Shared(t, kafkatest.ReleaseOld), b)
}

func zooFrom(t *testing.T, a, b *kafkatest.Cluster) {
	prefix := kafkatest.Name(t, "zoo")
	animals := kafkatest.Zoo(t, a, prefix)
	for _, row := range []struct {
		name  string
		key   string          // of the source cluster, in the file
		read  kafka.Isolation // what of the source must arrive
		stamp bool            // the target stamps records itself
	}{
		// MirrorMaker's default copies what was aborted like everything else.
		{name: "read-uncommitted", read: kafka.ReadUncommitted},
		{name: "read-committed", read: kafka.ReadCommitted, key: ".consumer.isolation.level = read_committed"},
		{name: "to-append-time", read: kafka.ReadUncommitted, stamp: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			lines := []string{"topics = " + prefix + "-.*"}
			if row.key != "" {
				lines = append(lines, kafkatest.Name(t, "")+row.key)
			}
			tr := newTrial(t, a, b, lines...)
			if row.stamp {
				for _, animal := range animals {
					b.CreateTopic(t, tr.remote(animal.Topic), animal.Partitions, map[string]string{"message.timestamp.type": "LogAppendTime", "max.message.bytes": "1200000"})
				}
			}
			p := tr.start()
			for _, animal := range animals {
				t.Run(animal.Topic, func(t *testing.T) { arrives(t, tr, animal, row.read, row.stamp) })
			}
			p.stop()
		})
	}
}

func arrives(t *testing.T, tr *trial, animal kafkatest.Animal, read kafka.Isolation, stamped bool) {
	source, target := kafkatest.Side{Cluster: tr.source, Topic: animal.Topic}, kafkatest.Side{Cluster: tr.target, Topic: tr.remote(animal.Topic)}
	o := kafkatest.CompareOptions{IgnoreTimestamps: stamped}
	await(t, animal.What+" arrives", func() string {
		want, err := source.Cluster.Read(t.Context(), source.Topic, read)
		if err != nil {
			return err.Error()
		}
		got, err := target.Cluster.Read(t.Context(), target.Topic, kafka.ReadUncommitted)
		if err != nil {
			return err.Error()
		}
		if countRecords(want) == 0 {
			return "the source is empty"
		}
		if animal.Compacted {
			want, got = lastOfEachKey(want), lastOfEachKey(got)
		}
		if report := kafkatest.CompareRecords(want, got, o); !report.Equal() {
			return report.String()
		}
		return ""
	})
	if animal.Compacted {
		return // cleaned batches are joined as each broker likes
	}
	if want, got := codecs(t, source, read), codecs(t, target, kafka.ReadUncommitted); !slices.Equal(want, got) {
		t.Errorf("codecs of the target's batches are %v, of the source's %v", got, want)
	}
}

// lastOfEachKey leaves out what a cleaner may remove at any time.
func lastOfEachKey(records map[int32][]kafka.Record) map[int32][]kafka.Record {
	out := map[int32][]kafka.Record{}
	for p, list := range records {
		last := map[string]int{}
		for i := range list {
			last[string(list[i].Key)] = i
		}
		for i := range list {
			if last[string(list[i].Key)] == i {
				out[p] = append(out[p], list[i])
			}
		}
	}
	return out
}

// codecs lists which codecs the data batches of a topic have.
func codecs(t *testing.T, side kafkatest.Side, read kafka.Isolation) []string {
	t.Helper()
	seen := map[string]bool{}
	for partition, records := range ends(t, side.Cluster, side.Topic) {
		for from := int64(0); from < records; {
			raw, err := side.Cluster.StoredBatches(t.Context(), side.Topic, partition, from)
			if err != nil {
				t.Fatal(err)
			}
			sc := recordbatch.NewScanner(raw)
			before := from
			for b := (recordbatch.Batch{}); sc.Next(&b); from = b.NextOffset() {
				if !b.Control() && (read == kafka.ReadUncommitted || !b.Transactional()) {
					seen[b.Codec().String()] = true
				}
			}
			if err := sc.Err(); err != nil || from == before {
				t.Fatal(fmt.Errorf("%s-%d at offset %d: %w", side.Topic, partition, from, err))
			}
		}
	}
	var list []string
	for codec := range seen {
		list = append(list, codec)
	}
	slices.Sort(list)
	return list
}
