package mirror

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"heliograph/internal/kafka"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(s))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// internalRecord is what heartbeats, checkpoints and offset syncs have in common.
type internalRecord interface {
	AppendKey(dst []byte) []byte
	AppendValue(dst []byte) []byte
	String() string
}

func decodeAs(r internalRecord, key, value []byte) (internalRecord, error) {
	switch r.(type) {
	case Heartbeat:
		return DecodeHeartbeat(key, value)
	case Checkpoint:
		return DecodeCheckpoint(key, value)
	default:
		return DecodeOffsetSync(key, value)
	}
}

// The bytes are MirrorMaker's, from the specification's worked examples.
func TestInternalRecordsAreMirrorMakersByteForByte(t *testing.T) {
	tests := []struct {
		record           internalRecord
		key, value, text string
	}{
		{
			Heartbeat{"A", "B", 1700000000000},
			"00 01 41 | 00 01 42",
			"00 00 | 00 00 01 8b cf e5 68 00",
			"Heartbeat{sourceClusterAlias=A, targetClusterAlias=B, timestamp=1700000000000}",
		},
		{
			Checkpoint{"group-1", kafka.TopicPartition{Topic: "A.foo", Partition: 3}, 4, 5, "metadata-6"},
			"00 07 67 72 6f 75 70 2d 31 | 00 05 41 2e 66 6f 6f | 00 00 00 03",
			"00 00 | 00 00 00 00 00 00 00 04 | 00 00 00 00 00 00 00 05 | 00 0a 6d 65 74 61 64 61 74 61 2d 36",
			"Checkpoint{consumerGroupId=group-1, topicPartition=A.foo-3, upstreamOffset=4, downstreamOffset=5, metadata=metadata-6}",
		},
		{
			Checkpoint{"group-1", kafka.TopicPartition{Topic: "A.foo", Partition: 3}, 1000, 1001, ""},
			"00 07 67 72 6f 75 70 2d 31 | 00 05 41 2e 66 6f 6f | 00 00 00 03",
			"00 00 | 00 00 00 00 00 00 03 e8 | 00 00 00 00 00 00 03 e9 | 00 00",
			"Checkpoint{consumerGroupId=group-1, topicPartition=A.foo-3, upstreamOffset=1000, downstreamOffset=1001, metadata=}",
		},
		{
			OffsetSync{kafka.TopicPartition{Topic: "foo", Partition: 2}, 100, 201},
			"00 03 66 6f 6f | 00 00 00 02",
			"00 00 00 00 00 00 00 64 | 00 00 00 00 00 00 00 c9",
			"OffsetSync{topicPartition=foo-2, upstreamOffset=100, downstreamOffset=201}",
		},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			prefix := []byte("before")
			if got, want := tt.record.AppendKey(bytes.Clone(prefix)), append(bytes.Clone(prefix), unhex(t, tt.key)...); !bytes.Equal(got, want) {
				t.Errorf("key   %x\nwant  %x", got, want)
			}
			if got, want := tt.record.AppendValue(bytes.Clone(prefix)), append(bytes.Clone(prefix), unhex(t, tt.value)...); !bytes.Equal(got, want) {
				t.Errorf("value %x\nwant  %x", got, want)
			}
			if got := tt.record.String(); got != tt.text {
				t.Errorf("prints %s\nwant   %s", got, tt.text)
			}
			got, err := decodeAs(tt.record, append(unhex(t, tt.key), 1, 2), append(unhex(t, tt.value), 3))
			if err != nil || got != tt.record {
				t.Errorf("decoded with trailing bytes: %v, %v", got, err)
			}
			checkShortInput(t, tt.record, unhex(t, tt.key), unhex(t, tt.value))
		})
	}
}

func checkShortInput(t *testing.T, r internalRecord, key, value []byte) {
	t.Helper()
	for n := range key {
		if got, err := decodeAs(r, key[:n], value); !errors.Is(err, ErrMalformed) {
			t.Errorf("with %d bytes of the key: %v, %v", n, got, err)
		}
	}
	for n := range value {
		if got, err := decodeAs(r, key, value[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("with %d bytes of the value: %v, %v", n, got, err)
		}
	}
	if got, err := decodeAs(r, key, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("a tombstone decodes to %v, %v", got, err)
	}
}

func TestForeignRecordsAreErrors(t *testing.T) {
	text := []byte("some text of another program")
	tests := map[string]struct {
		record     internalRecord
		key, value []byte
	}{
		"text as heartbeat":     {Heartbeat{}, text, text},
		"text as checkpoint":    {Checkpoint{}, text, text},
		"text as offset sync":   {OffsetSync{}, text, text},
		"a negative length":     {Heartbeat{}, unhex(t, "ffff 0001 42"), unhex(t, "0000 0000000000000001")},
		"a broken character":    {Heartbeat{}, unhex(t, "0001 ff 0001 42"), unhex(t, "0000 0000000000000001")},
		"another version":       {Heartbeat{}, unhex(t, "0001 41 0001 42"), unhex(t, "0001 0000000000000001")},
		"a negative partition":  {OffsetSync{}, unhex(t, "0001 41 ffffffff"), make([]byte, 16)},
		"a cut-off metadata":    {Checkpoint{}, unhex(t, "0001 67 0001 74 00000000"), append(make([]byte, 18), 0, 5, 'a')},
		"a checkpoint of no TP": {Checkpoint{}, unhex(t, "0001 67"), make([]byte, 20)},
	}
	for name, tt := range tests {
		if got, err := decodeAs(tt.record, tt.key, tt.value); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: decoded to %v, %v", name, got, err)
		}
	}
}

func TestStringsThatDoNotFitPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a string of 32768 bytes was written")
		}
	}()
	Checkpoint{Metadata: strings.Repeat("x", 1<<15)}.AppendValue(nil)
}

func TestPartitionForAgreesWithKafka(t *testing.T) {
	// Values of Kafka's own partitioner.
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "abc": 479470107,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
	// The specification's cross-check with 25 partitions.
	for key, want := range map[string]int32{
		`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]`:            16,
		`["MirrorSourceConnector",{"cluster":"A","partition":1,"topic":"foo"}]`:            17,
		`["MirrorCheckpointConnector",{"partition":3,"topic":"A.foo","group":"group-1"}]`:  15,
		`["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]`: 0,
	} {
		if got := PartitionFor([]byte(key), 25); got != want {
			t.Errorf("PartitionFor(%s, 25) = %d, want %d", key, got, want)
		}
	}
}

// fuzzRecord checks what every decoder owes: a value that encodes to what was
// read, or an error that says malformed.
func fuzzRecord(t *testing.T, r internalRecord, key, value []byte) {
	t.Helper()
	got, err := decodeAs(r, key, value)
	if err != nil {
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("error without ErrMalformed: %v", err)
		}
		return
	}
	if k, v := got.AppendKey(nil), got.AppendValue(nil); !bytes.HasPrefix(key, k) || !bytes.HasPrefix(value, v) {
		t.Fatalf("read %x %x, wrote %x %x", key, value, k, v)
	}
}

func addRecordSeeds(f *testing.F) {
	f.Helper()
	for _, r := range []internalRecord{
		Heartbeat{"A", "B", 1700000000000},
		Checkpoint{"group-1", kafka.TopicPartition{Topic: "A.foo", Partition: 3}, 4, 5, "metadata-6"},
		OffsetSync{kafka.TopicPartition{Topic: "foo", Partition: 2}, 100, 201},
	} {
		f.Add(r.AppendKey(nil), r.AppendValue(nil))
	}
	f.Add([]byte{0xff, 0xff}, []byte(nil))
}

func FuzzHeartbeat(f *testing.F) {
	addRecordSeeds(f)
	f.Fuzz(func(t *testing.T, key, value []byte) { fuzzRecord(t, Heartbeat{}, key, value) })
}

func FuzzCheckpoint(f *testing.F) {
	addRecordSeeds(f)
	f.Fuzz(func(t *testing.T, key, value []byte) { fuzzRecord(t, Checkpoint{}, key, value) })
}

func FuzzOffsetSync(f *testing.F) {
	addRecordSeeds(f)
	f.Fuzz(func(t *testing.T, key, value []byte) { fuzzRecord(t, OffsetSync{}, key, value) })
}
