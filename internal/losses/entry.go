package losses

import (
	"encoding/json"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Kind says what happened to the records.
type Kind string

// The kinds.
const (
	// Overtaken: the source's retention removed them before they were read.
	Overtaken Kind = "overtaken"
	// Refused: the target refuses the batch, and the policy says to go on.
	Refused Kind = "refused"
	// Undecodable: the batch cannot be read, and the policy says to go on.
	Undecodable Kind = "undecodable"
	// SourceTruncated: the source's log ends before what was copied already.
	SourceTruncated Kind = "source-truncated"
	// SourceRecreated: the source topic was deleted and made again.
	SourceRecreated Kind = "source-recreated"
	// TargetTruncated: the target's log ends before what was written, or was made again.
	TargetTruncated Kind = "target-truncated"
	// ForeignWriter: somebody else writes to the target partition.
	ForeignWriter Kind = "foreign-writer"
)

// Action is what was done about it.
type Action string

// The actions.
const (
	Continued    Action = "continued"     // copying went on behind the range
	DeadLettered Action = "dead-lettered" // the same, and the records are kept in the dead-letter topic
	Parked       Action = "parked"        // the partition waits for a person
)

// Entry is one line of the ledger.
type Entry struct {
	Flow     mirror.FlowID
	Source   kafka.TopicPartition
	Target   kafka.TopicPartition
	From, To mirror.UpstreamOffset // source offsets [From, To); equal where no record is lost
	Records  int64                 // at most; offsets may have had no record
	Kind     Kind
	Action   Action
	Reason   string
	At       time.Time
}

const version = 1

type key struct {
	Source    string `json:"source"`
	Target    string `json:"target"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	Kind      Kind   `json:"kind"`
	At        int64  `json:"at"`
}

type value struct {
	Version         int    `json:"version"`
	RemoteTopic     string `json:"remoteTopic"`
	RemotePartition int32  `json:"remotePartition"`
	To              int64  `json:"to"`
	Records         int64  `json:"records"`
	Action          Action `json:"action"`
	Reason          string `json:"reason"`
}

// Record encodes the entry.
func (e Entry) Record() kafka.Record {
	k, errKey := json.Marshal(key{
		string(e.Flow.Source), string(e.Flow.Target), e.Source.Topic, e.Source.Partition, int64(e.From), e.Kind, e.At.UnixMilli(),
	})
	v, errValue := json.Marshal(value{version, e.Target.Topic, e.Target.Partition, int64(e.To), e.Records, e.Action, e.Reason})
	if errKey != nil || errValue != nil {
		panic("losses: strings and numbers always encode")
	}
	return kafka.Record{Key: k, Value: v, Timestamp: e.At.UnixMilli()}
}

// Decode reads an entry.
func Decode(r kafka.Record) (Entry, error) {
	var k key
	var v value
	if err := json.Unmarshal(r.Key, &k); err != nil {
		return Entry{}, fmt.Errorf("loss ledger key at offset %d: %w", r.Offset, err)
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return Entry{}, fmt.Errorf("loss ledger value at offset %d: %w", r.Offset, err)
	}
	return Entry{
		Flow:   mirror.FlowID{Source: mirror.ClusterAlias(k.Source), Target: mirror.ClusterAlias(k.Target)},
		Source: kafka.TopicPartition{Topic: k.Topic, Partition: k.Partition},
		Target: kafka.TopicPartition{Topic: v.RemoteTopic, Partition: v.RemotePartition},
		From:   mirror.UpstreamOffset(k.From), To: mirror.UpstreamOffset(v.To), Records: v.Records,
		Kind: k.Kind, Action: v.Action, Reason: v.Reason, At: time.UnixMilli(k.At),
	}, nil
}

// String is the entry in one line.
func (e Entry) String() string {
	span := fmt.Sprintf("source offsets %d to %d (at most %d records)", e.From, e.To-1, e.Records)
	if e.From >= e.To {
		span = fmt.Sprintf("at source offset %d", e.From)
	}
	return fmt.Sprintf("%s %s %s %s, %s: %s; %s", e.At.UTC().Format(time.RFC3339), e.Flow, e.Source, e.Kind, span, e.Reason, e.Action)
}
