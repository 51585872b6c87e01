package losses

import (
	"strconv"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Letter is poison as it is kept in the dead-letter topic: one record, or a
// batch that cannot be taken apart.
type Letter struct {
	// Offset is the source offset of the record, or of the batch's first.
	Offset mirror.UpstreamOffset
	// Record is as it lies on the source. A batch's bytes are its value.
	Record kafka.Record
	Batch  bool
	// Cut is how many bytes the value had before what did not fit was cut off;
	// 0 where it is whole.
	Cut int
}

// The headers of a dead letter. They follow the record's own.
const (
	HeaderFlow      = "heliograph.flow"
	HeaderTopic     = "heliograph.source.topic"
	HeaderPartition = "heliograph.source.partition"
	HeaderOffset    = "heliograph.source.offset"
	HeaderTimestamp = "heliograph.source.timestamp" // milliseconds; of records only
	HeaderKind      = "heliograph.kind"             // of the ledger's entry
	HeaderReason    = "heliograph.reason"
	HeaderForm      = "heliograph.form" // "record", or "batch" where the value is a whole batch
	HeaderCut       = "heliograph.cut"  // the value's length before the rest was cut off
)

// Encode makes the record of the dead-letter topic. Its own time is left to the
// writer: the source's may be what the target refuses.
func (l *Letter) Encode(e Entry) kafka.Record {
	r := kafka.Record{Key: l.Record.Key, Value: l.Record.Value}
	r.Headers = append(r.Headers, l.Record.Headers...)
	add := func(key, value string) { r.Headers = append(r.Headers, kafka.Header{Key: key, Value: []byte(value)}) }
	add(HeaderFlow, e.Flow.String())
	add(HeaderTopic, e.Source.Topic)
	add(HeaderPartition, strconv.Itoa(int(e.Source.Partition)))
	add(HeaderOffset, strconv.FormatInt(int64(l.Offset), 10))
	form := "batch"
	if !l.Batch {
		form = "record"
		add(HeaderTimestamp, strconv.FormatInt(l.Record.Timestamp, 10))
	}
	add(HeaderKind, string(e.Kind))
	add(HeaderReason, e.Reason)
	add(HeaderForm, form)
	if l.Cut > 0 {
		add(HeaderCut, strconv.Itoa(l.Cut))
	}
	return r
}

// Shorten cuts the longest part of what does not fit to half: the value, or the
// key or the record's own headers where these are longer. It reports false where
// nothing is left to cut.
func (l *Letter) Shorten() bool {
	headers := 0
	for _, h := range l.Record.Headers {
		headers += len(h.Key) + len(h.Value)
	}
	value, key := len(l.Record.Value), len(l.Record.Key)
	switch {
	case value+key+headers == 0:
		return false
	case value >= key && value >= headers:
		if l.Cut == 0 {
			l.Cut = value
		}
		l.Record.Value = l.Record.Value[:value/2]
	case key >= headers:
		l.Record.Key = l.Record.Key[:key/2]
	default:
		l.Record.Headers = nil
	}
	return true
}
