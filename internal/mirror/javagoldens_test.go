package mirror

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"heliograph/internal/kafka"
)

// golden is a record that Java MirrorMaker 2 wrote, and where.
type golden struct {
	at         string // file:line
	topic      string
	partition  int32
	key, value []byte
}

// javaGoldens are the last records of each key that a Java MirrorMaker 2 left
// on both of its clusters, as captured by test/e2e.
func javaGoldens(t *testing.T, file string) []golden {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []golden
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		g := golden{at: filepath.Base(file) + ":" + strconv.Itoa(n)}
		fields := strings.Fields(s.Text())
		if len(fields) != 5 {
			t.Fatalf("%s: %d fields", g.at, len(fields))
		}
		partition, err := strconv.ParseInt(fields[2], 10, 32)
		key, errKey := hex.DecodeString(fields[3])
		value, errValue := hex.DecodeString(fields[4])
		if err := errors.Join(err, errKey, errValue); err != nil {
			t.Fatalf("%s: %v", g.at, err)
		}
		g.topic, g.partition, g.key, g.value = fields[1], int32(partition), key, value
		all = append(all, g)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// recode decodes a record by the kind of its topic and encodes it again.
func (g golden) recode() (kind string, r kafka.Record, err error) {
	policy := NewDefaultPolicy(PolicyOptions{})
	switch {
	case policy.IsHeartbeatsTopic(g.topic):
		h, err := DecodeHeartbeat(g.key, g.value)
		return "heartbeat", kafka.Record{Key: h.AppendKey(nil), Value: h.AppendValue(nil)}, err
	case policy.IsCheckpointsTopic(g.topic):
		c, err := DecodeCheckpoint(g.key, g.value)
		return "checkpoint", kafka.Record{Key: c.AppendKey(nil), Value: c.AppendValue(nil)}, err
	case strings.HasPrefix(g.topic, "mm2-offset-syncs."):
		s, err := DecodeOffsetSync(g.key, g.value)
		return "offset sync", kafka.Record{Key: s.AppendKey(nil), Value: s.AppendValue(nil)}, err
	}
	k, err := DecodePositionKey(g.key)
	if errors.Is(err, ErrNotPosition) {
		return "other connector's offset", kafka.Record{Key: g.key, Value: g.value}, nil
	}
	if err != nil {
		return "position", kafka.Record{}, err
	}
	last, ok, err := DecodePositionValue(g.value)
	if err == nil && !ok {
		err = errors.New("no position")
	}
	return "position", kafka.Record{Key: k.AppendTo(nil), Value: AppendPositionValue(nil, last)}, err
}

// connectPartitions is how many partitions MirrorMaker gives mm2-offsets.
const connectPartitions = 25

func TestJavaRecordsComeBackByteForByte(t *testing.T) {
	files, err := filepath.Glob("testdata/java/*.txt")
	if err != nil || len(files) < 2 {
		t.Fatalf("goldens: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			seen := map[string]int{}
			for _, g := range javaGoldens(t, file) {
				kind, r, err := g.recode()
				if err != nil {
					t.Errorf("%s: %v", g.at, err)
					continue
				}
				seen[kind]++
				if !bytes.Equal(r.Key, g.key) {
					t.Errorf("%s: the key of a %s is\n%x, Java wrote\n%x", g.at, kind, r.Key, g.key)
				}
				if !bytes.Equal(r.Value, g.value) {
					t.Errorf("%s: the value of a %s is\n%x, Java wrote\n%x", g.at, kind, r.Value, g.value)
				}
				if !strings.HasPrefix(g.topic, "mm2-offsets.") {
					continue
				}
				if got := PartitionFor(g.key, connectPartitions); got != g.partition {
					t.Errorf("%s: the key belongs into partition %d, Java wrote it to %d", g.at, got, g.partition)
				}
			}
			for _, kind := range []string{"heartbeat", "checkpoint", "offset sync", "position", "other connector's offset"} {
				if seen[kind] == 0 {
					t.Errorf("the file has no %s", kind)
				}
			}
		})
	}
}
