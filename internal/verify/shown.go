package verify

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"unicode/utf8"

	"heliograph/internal/kafka"
)

const (
	// maxLookedUp bounds the differences of a partition whose records are read
	// again to tell in which fields they differ.
	maxLookedUp = 10
	// maxShown bounds how much of a key, a value or a header is shown.
	maxShown = 1 << 10
)

// Shown is a record's content, for those who asked to see it.
type Shown struct {
	Offset    int64         `json:"offset"`
	Timestamp int64         `json:"timestamp"`
	Key       Text          `json:"key"`
	Value     Text          `json:"value"`
	Headers   []ShownHeader `json:"headers"`
}

// ShownHeader is one header of a shown record.
type ShownHeader struct {
	Key   string `json:"key"`
	Value Text   `json:"value"`
}

// Text is a field of a record. Bytes that are not text come as base64.
type Text struct {
	Null   bool   `json:"null,omitempty"`
	Text   string `json:"text,omitempty"`
	Base64 string `json:"base64,omitempty"`
	Bytes  int    `json:"bytes"` // the whole length; what is shown may be cut
}

func textOf(b []byte) Text {
	t := Text{Null: b == nil, Bytes: len(b)}
	cut := b[:min(len(b), maxShown)]
	if utf8.Valid(b) {
		t.Text = string(cut)
	} else {
		t.Base64 = base64.StdEncoding.EncodeToString(cut)
	}
	return t
}

func shownOf(r *kafka.Record) *Shown {
	s := &Shown{Offset: r.Offset, Timestamp: r.Timestamp, Key: textOf(r.Key), Value: textOf(r.Value)}
	for _, h := range r.Headers {
		s.Headers = append(s.Headers, ShownHeader{Key: h.Key, Value: textOf(h.Value)})
	}
	return s
}

// fields names the parts in which two records differ.
func fields(a, b *kafka.Record) []string {
	var out []string
	if !sameBytes(a.Key, b.Key) {
		out = append(out, "key")
	}
	if !sameBytes(a.Value, b.Value) {
		out = append(out, "value")
	}
	if !slices.EqualFunc(a.Headers, b.Headers, func(x, y kafka.Header) bool { return x.Key == y.Key && sameBytes(x.Value, y.Value) }) {
		out = append(out, "headers")
	}
	if a.Timestamp != b.Timestamp {
		out = append(out, "timestamp")
	}
	return out
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// lookUp reads the first records of the first differences again: to tell in which
// fields changed ones differ, and to show all of them where that is wanted.
func lookUp(ctx context.Context, source, target *side, list []Difference, show bool) error {
	for i := range list[:min(len(list), maxLookedUp)] {
		d := &list[i]
		var a, b *kafka.Record
		var err error
		if (show || d.Kind == Changed) && d.SourceRecords > 0 {
			if a, err = source.one(ctx, d.SourceOffset); err != nil {
				return err
			}
		}
		if (show || d.Kind == Changed) && d.TargetRecords > 0 {
			if b, err = target.one(ctx, d.TargetOffset); err != nil {
				return err
			}
		}
		if d.Kind == Changed && a != nil && b != nil {
			d.Fields = fields(a, b)
		}
		if show && a != nil {
			d.Source = shownOf(a)
		}
		if show && b != nil {
			d.Target = shownOf(b)
		}
	}
	return nil
}

// one reads a record; nil if the log no longer has it.
func (s *side) one(ctx context.Context, offset int64) (*kafka.Record, error) {
	var found *kafka.Record
	err := s.cluster.ReadRecords(ctx, s.tp, offset, offset+1, s.iso, func(r kafka.Record) error {
		if r.Offset == offset {
			found = &kafka.Record{
				Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Timestamp: r.Timestamp, Offset: r.Offset,
				Headers: slices.Clone(r.Headers),
			}
		}
		return nil
	})
	return found, err
}
