package mirror

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"heliograph/internal/kafka"
)

func TestPositionKeysAreConnectsByteForByte(t *testing.T) {
	tests := []struct {
		key  PositionKey
		want string
	}{
		{
			PositionKey{SourceConnector, "A", "foo", 0},
			`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]`,
		},
		{
			PositionKey{"my \"mirror\"\\", "a<b>&c/d", "t", 2147483647},
			`["my \"mirror\"\\",{"cluster":"a<b>&c/d","partition":2147483647,"topic":"t"}]`,
		},
		{
			PositionKey{"c", "\b\t\n\f\r\x00\x1f\x7f", "Ω\u2028\u2029😀", 1},
			`["c",{"cluster":"\b\t\n\f\r\u0000\u001F` + "\x7f" + `","partition":1,"topic":"Ω` + "\u2028\u2029" + `😀"}]`,
		},
	}
	for _, tt := range tests {
		got := tt.key.AppendTo(nil)
		if string(got) != tt.want {
			t.Errorf("key  %s\nwant %s", got, tt.want)
		}
		if back, err := DecodePositionKey(got); err != nil || back != tt.key {
			t.Errorf("decoded %+v, %v, want %+v", back, err, tt.key)
		}
	}
}

func TestPositionKeysAreReadInAnyOrder(t *testing.T) {
	want := PositionKey{SourceConnector, "A", "foo", 7}
	for _, key := range []string{
		`["MirrorSourceConnector",{"topic":"foo","cluster":"A","partition":7}]`,
		` [ "MirrorSourceConnector" , { "partition" : 7 , "topic" : "f\u006fo", "cluster":"A" } ] `,
	} {
		if got, err := DecodePositionKey([]byte(key)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
}

func TestOtherKeysAreNoPositions(t *testing.T) {
	tests := []struct {
		want error
		keys []string
	}{
		{ErrNotPosition, []string{
			`["MirrorCheckpointConnector",{"partition":3,"topic":"A.foo","group":"group-1"}]`,
			`["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]`,
			`["jdbc",{"table":"orders"}]`,
			`["c",{}]`,
			`["c",null]`,
			`["c",{"Cluster":"A","partition":0,"topic":"foo"}]`,
			`["c",{"cluster":"A","partition":0,"topic":"foo","more":1}]`,
		}},
		{ErrMalformed, []string{
			``, `x`, `[`, `{}`, `null`, `[]`, `["c"]`, `["c",{},1]`, `[1,{}]`, `[null,{}]`, `["c",[]]`, `["c",1]`,
			`["c",{"cluster":"A","partition":0,"topic":"foo"}]x`,
			`["c",{"cluster":"A","partition":0,"topic":"foo"}] []`,
			`["c",{"cluster":"A","partition":"0","topic":"foo"}]`,
			`["c",{"cluster":"A","partition":0.5,"topic":"foo"}]`,
			`["c",{"cluster":"A","partition":-1,"topic":"foo"}]`,
			`["c",{"cluster":"A","partition":2147483648,"topic":"foo"}]`,
			`["c",{"cluster":null,"partition":0,"topic":"foo"}]`,
			`["c",{"cluster":1,"partition":0,"topic":"foo"}]`,
		}},
	}
	for _, tt := range tests {
		for _, key := range tt.keys {
			if got, err := DecodePositionKey([]byte(key)); !errors.Is(err, tt.want) || got != (PositionKey{}) {
				t.Errorf("%s: %+v, error %v, want %v", key, got, err, tt.want)
			}
		}
	}
}

func TestPositionValues(t *testing.T) {
	if got := string(AppendPositionValue([]byte("x"), 41)); got != `x{"offset":41}` {
		t.Errorf("value %s", got)
	}
	for _, tt := range []struct {
		value string
		last  UpstreamOffset
		ok    bool
	}{
		{`{"offset":41}`, 41, true},
		{` {"more":{}, "offset":0} `, 0, true},
		{`{"offset":9223372036854775807}`, math.MaxInt64, true},
		{`{"offset":-1}`, 0, false},
		{`{"offset":null}`, 0, false},
		{`{}`, 0, false},
		{`null`, 0, false},
	} {
		last, ok, err := DecodePositionValue([]byte(tt.value))
		if err != nil || last != tt.last || ok != tt.ok {
			t.Errorf("%s: %d, %v, %v, want %d, %v", tt.value, last, ok, err, tt.last, tt.ok)
		}
	}
	if last, ok, err := DecodePositionValue(nil); last != 0 || ok || err != nil {
		t.Errorf("tombstone: %d, %v, %v", last, ok, err)
	}
	for _, value := range []string{``, `41`, `[]`, `{"offset":41}{}`, `{"offset":4.5}`, `{"offset":"41"}`, `{"offset":9223372036854775808}`} {
		if last, ok, err := DecodePositionValue([]byte(value)); !errors.Is(err, ErrMalformed) || ok {
			t.Errorf("%s: %d, %v, %v, want an error", value, last, ok, err)
		}
	}
}

func TestPositionFactsTravelInOneHeader(t *testing.T) {
	full := PositionFacts{
		Clean: true, ProducerID: 12, ProducerEpoch: 3, NextTarget: 1000,
		SourceCluster: "src-id", TargetCluster: "dst-id",
		SourceTopicID: kafka.TopicID{1, 2, 3}, TargetTopicID: kafka.TopicID{4},
		SourceEpoch: 7, Mode: "default",
	}
	bare := PositionFacts{
		ProducerID: kafka.NoProducer.ID, ProducerEpoch: kafka.NoProducer.Epoch, SourceEpoch: kafka.NoLeaderEpoch,
	}
	tests := []struct {
		name  string
		facts PositionFacts
		value string
	}{
		{"everything known", full, `{"v":1,"clean":true,"producerId":12,"producerEpoch":3,"nextTarget":1000,` +
			`"sourceCluster":"src-id","targetCluster":"dst-id","sourceTopicId":"AQIDAAAAAAAAAAAAAAAAAA",` +
			`"targetTopicId":"BAAAAAAAAAAAAAAAAAAAAA","sourceEpoch":7,"mode":"default"}`},
		{"nothing known", bare, `{"v":1,"clean":false,"nextTarget":0}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other := kafka.Header{Key: "other", Value: []byte("x")}
			headers := tt.facts.AppendHeader([]kafka.Header{other})
			want := []kafka.Header{other, {Key: "heliograph", Value: []byte(tt.value)}}
			if diff := cmp.Diff(want, headers); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			got, ok, err := DecodePositionFacts(headers)
			if err != nil || !ok || got != tt.facts {
				t.Errorf("decoded %+v, %v, %v", got, ok, err)
			}
		})
	}
}

func TestPositionFactsOfOtherWriters(t *testing.T) {
	header := func(value string) []kafka.Header { return []kafka.Header{{Key: PositionHeader, Value: []byte(value)}} }
	if facts, ok, err := DecodePositionFacts([]kafka.Header{{Key: "other"}}); ok || err != nil || facts != (PositionFacts{}) {
		t.Errorf("a position of MirrorMaker: %+v, %v, %v", facts, ok, err)
	}
	facts, ok, err := DecodePositionFacts(header(`{"v":1,"nextTarget":5,"laterField":[1]}`))
	if err != nil || !ok || facts.NextTarget != 5 || facts.ProducerID != kafka.NoProducer.ID || facts.SourceEpoch != kafka.NoLeaderEpoch {
		t.Errorf("facts with a later field: %+v, %v, %v", facts, ok, err)
	}
	for _, value := range []string{``, `x`, `null`, `{}`, `{"v":1}`, `{"v":2,"nextTarget":5}`, `{"v":1,"nextTarget":"5"}`, `{"v":1,"nextTarget":5}}`} {
		if facts, ok, err := DecodePositionFacts(header(value)); ok || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v, %v, want an error", value, facts, ok, err)
		}
	}
}

// FuzzPositionKey: what we write is JSON that reads back, and any bytes give a
// key, a reason to skip them or an error.
func FuzzPositionKey(f *testing.F) {
	f.Add([]byte(`["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]`), "A", "foo", int32(3))
	f.Add([]byte(`["MirrorCheckpointConnector",{"partition":3,"topic":"A.foo","group":"group-1"}]`), "\x00\x1f\"", "\u2028<", int32(0))
	f.Add([]byte(`["c",{"cluster":"A","partition":0,"topic":"foo"}]x`), "\xff", "😀", int32(7))
	f.Fuzz(func(t *testing.T, raw []byte, cluster, topic string, partition int32) {
		if key, err := DecodePositionKey(raw); err == nil {
			again, err := DecodePositionKey(key.AppendTo(nil))
			if err != nil || again != key {
				t.Fatalf("%q is %+v, written and read %+v, %v", raw, key, again, err)
			}
		} else if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrNotPosition) {
			t.Fatalf("%q: error of no kind: %v", raw, err)
		}

		key := PositionKey{SourceConnector, ClusterAlias(cluster), topic, partition & math.MaxInt32}
		written := key.AppendTo(nil)
		if !json.Valid(written) || !utf8.Valid(written) || strings.ContainsAny(string(written), "\n\t") {
			t.Fatalf("%+v is written as %q", key, written)
		}
		back, err := DecodePositionKey(written)
		if err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		if utf8.ValidString(cluster) && utf8.ValidString(topic) && back != key {
			t.Fatalf("%+v came back as %+v", key, back)
		}
	})
}
