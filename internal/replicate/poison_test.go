package replicate

import (
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

func TestARefusalNamesTheSettingThatForbids(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	entry := func(at time.Time) *Entry {
		raw, err := recordbatch.Build([]kafka.Record{{Value: []byte("v"), Timestamp: at.UnixMilli()}}, recordbatch.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return &Entry{Bytes: raw, Count: 1}
	}
	known := recordbatch.Target{MaxMessageBytes: 2000, TimestampBeforeMax: 3600000, TimestampAfterMax: 7200000}
	for name, tt := range map[string]struct {
		code    kafka.Code
		at      time.Time
		demands recordbatch.Target
		want    string
	}{
		"too old":   {kafka.CodeInvalidTimestamp, now.AddDate(-1, 0, 0), known, "its time is 2025-07-01T00:00:00Z, which message.timestamp.before.max.ms = 3600000 of topic A.t forbids"},
		"too new":   {kafka.CodeInvalidTimestamp, now.AddDate(1, 0, 0), known, "its time is 2027-07-01T00:00:00Z, which message.timestamp.after.max.ms = 7200000 of topic A.t forbids"},
		"not known": {kafka.CodeInvalidTimestamp, now.AddDate(1, 0, 0), recordbatch.Target{}, "its time is 2027-07-01T00:00:00Z, which message.timestamp.after.max.ms of topic A.t forbids"},
		"too large": {kafka.CodeMessageTooLarge, now, known, "it has 69 bytes, which max.message.bytes = 2000 of topic A.t forbids"},
		"other":     {kafka.CodeInvalidRecord, now, known, ""},
	} {
		spec := &TrackSpec{}
		spec.Target.Topic, spec.Demands = "A.t", tt.demands
		if tt.want != "" {
			tt.want += ": raise it there and restart, or choose another heliograph.poison"
		}
		if got := whatItTakes(entry(tt.at), tt.code, spec, now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
