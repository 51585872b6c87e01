package recordbatch

import (
	"testing"
)

func TestJudge(t *testing.T) {
	target := Target{MaxMessageBytes: 1 << 20}
	for _, c := range []struct {
		name    string
		batch   []byte
		from    int64
		target  Target
		verdict Verdict
		reason  Reason
	}{
		{"plain", plainBatch(), 0, target, Forward, ReasonNone},
		{"plain, limits unknown", plainBatch(), 0, Target{}, Forward, ReasonNone},
		{"starts exactly at from", plainBatch(), 40, target, Forward, ReasonNone},
		{"starts before from", plainBatch(), 41, target, Recode, ReasonPrefix},
		{"only its last record wanted", plainBatch(), 43, target, Recode, ReasonPrefix},
		{"ends before from", plainBatch(), 44, target, Drop, ReasonBefore},
		{"holes", compactedBatch(), 0, target, Recode, ReasonHoles},
		{"no records", emptyBatch(), 0, target, Drop, ReasonEmpty},
		{"append time, target create time", appendTimeBatch(), 0, target, Recode, ReasonAppendTime},
		{"append time, target append time", appendTimeBatch(), 0, Target{LogAppendTime: true}, Forward, ReasonNone},
		{"create time, target append time", plainBatch(), 0, Target{LogAppendTime: true}, Forward, ReasonNone},
		{"exactly as large as allowed", plainBatch(), 0, Target{MaxMessageBytes: int32(len(plainBatch()))}, Forward, ReasonNone},
		{"one byte larger", plainBatch(), 0, Target{MaxMessageBytes: int32(len(plainBatch())) - 1}, Recode, ReasonTooLarge},
		{"marker", markerBatch(9, 50, ControlCommit), 0, target, Drop, ReasonControl},
		{"transactional", transactionalBatch(9, 50, "x"), 0, target, Forward, ReasonNone},
		{"delete horizon", horizonBatch(), 0, target, Forward, ReasonNone},
		{"magic 0", legacyEntry(0, 0, 5, 0, nil, nil), 0, target, Decode, ReasonOldFormat},
		{"magic 1 before from", legacyEntry(1, 0, 5, 0, nil, nil), 6, target, Drop, ReasonBefore},
		{"wrapper with its last record wanted", legacyWrapper(1, CodecGzip, someRecords()), 43, target, Decode, ReasonOldFormat},
		{"more records than offsets", with(plainBatch(), func(h *Header) { h.Count = 9 }), 0, target, Recode, ReasonHoles},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict, reason := Judge(view(t, c.batch), c.from, c.target)
			if verdict != c.verdict || reason != c.reason {
				t.Errorf("got %v (%v), want %v (%v)", verdict, reason, c.verdict, c.reason)
			}
		})
	}
}

func TestRewriteForMeetsEveryReasonAtOnce(t *testing.T) {
	batch := appendTimeBatch()
	target := Target{MaxMessageBytes: int32(len(batch)) - 1}
	out, err := Rewrite(view(t, batch), RewriteFor(view(t, batch), 41, target))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range out {
		verdict, reason := Judge(view(t, r.Bytes), 0, target)
		if verdict != Forward {
			t.Errorf("after the rewrite still %v: %v", verdict, reason)
		}
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for r := ReasonNone; r <= ReasonTooLarge; r++ {
		if name := r.String(); name == "" || name == "unknown" || seen[name] {
			t.Errorf("reason %d is named %q", r, name)
		} else {
			seen[name] = true
		}
	}
	for v := Drop; v <= Decode; v++ {
		if name := v.String(); name == "unknown" || seen[name] {
			t.Errorf("verdict %d is named %q", v, name)
		} else {
			seen[name] = true
		}
	}
}
