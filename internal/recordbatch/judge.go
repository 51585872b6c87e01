package recordbatch

// Target is what the target topic demands of a batch.
type Target struct {
	MaxMessageBytes int32 // max.message.bytes; 0 means not known
	LogAppendTime   bool  // message.timestamp.type is LogAppendTime
	Compacted       bool  // cleanup.policy contains compact: every record needs a key
	// How far a record's time may lie before and after the broker's, in
	// milliseconds; 0 means not known. Nothing is judged by them: they are for words.
	TimestampBeforeMax, TimestampAfterMax int64
}

// Verdict says what may be done with a batch.
type Verdict uint8

// The verdicts.
const (
	// Drop: there is nothing in it to replicate. Skip it and advance.
	Drop Verdict = iota + 1
	// Forward: its bytes may be produced as they are, once sealed.
	Forward
	// Recode: its records are wanted, its bytes must go through [Rewrite].
	Recode
	// Decode: it is of an old format. [Rewrite] takes it, at the price of decoding.
	Decode
)

// String names the verdict, for logs and metrics.
func (v Verdict) String() string {
	switch v {
	case Drop:
		return "drop"
	case Forward:
		return "forward"
	case Recode:
		return "recode"
	case Decode:
		return "decode"
	}
	return "unknown"
}

// Reason is why a batch is not simply forwarded.
type Reason uint8

// The reasons.
const (
	ReasonNone       Reason = iota // forwarded
	ReasonBefore                   // ends before the first wanted offset
	ReasonControl                  // the broker's own marker
	ReasonEmpty                    // compaction left the batch without records
	ReasonAborted                  // never from Judge: for callers of AbortFilter
	ReasonOldFormat                // magic 0 or 1
	ReasonHoles                    // compaction took some of its records
	ReasonPrefix                   // starts before the first wanted offset
	ReasonAppendTime               // has append times, and the target would lose them
	ReasonTooLarge                 // larger than the target topic takes
)

var reasonNames = [...]string{
	ReasonNone:       "none",
	ReasonBefore:     "before",
	ReasonControl:    "control",
	ReasonEmpty:      "empty",
	ReasonAborted:    "aborted",
	ReasonOldFormat:  "old_format",
	ReasonHoles:      "holes",
	ReasonPrefix:     "prefix",
	ReasonAppendTime: "append_time",
	ReasonTooLarge:   "too_large",
}

// String names the reason, for logs and metrics.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Judge decides by the header alone what may be done with a batch, when from is
// the first wanted source offset. Aborted transactions are not its business, see
// [AbortFilter]; nor can it see a record without key, which a compacted target
// refuses with INVALID_RECORD. More than one reason may hold: [RewriteFor]
// respects them all, the first is named.
func Judge(b *Batch, from int64, t Target) (Verdict, Reason) {
	switch {
	case b.LastOffset() < from:
		return Drop, ReasonBefore
	case b.Magic < 2:
		return Decode, ReasonOldFormat
	case b.Control():
		return Drop, ReasonControl
	case b.Count == 0:
		return Drop, ReasonEmpty
	case int64(b.Count) != int64(b.LastOffsetDelta)+1:
		return Recode, ReasonHoles
	case b.BaseOffset < from:
		return Recode, ReasonPrefix
	case b.LogAppendTime() && !t.LogAppendTime:
		return Recode, ReasonAppendTime
	case t.MaxMessageBytes > 0 && len(b.Bytes) > int(t.MaxMessageBytes):
		return Recode, ReasonTooLarge
	}
	return Forward, ReasonNone
}

// RewriteFor is what [Rewrite] must be told to make a batch acceptable.
func RewriteFor(b *Batch, from int64, t Target) RewriteOptions {
	return RewriteOptions{
		From:       from,
		AppendTime: b.LogAppendTime() && !t.LogAppendTime,
		MaxBytes:   t.MaxMessageBytes,
	}
}
