package replicate

import (
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// Path is how a batch was made fit for the target, from the fastest to the slowest.
type Path uint8

// The paths. A batch that the target refuses goes down one path at a time.
const (
	Forwarded Path = iota // the source's bytes with another producer in the header
	Rewritten             // renumbered, trimmed or split, records untouched
	Rebuilt               // every record decoded and encoded again
)

// Entry is one batch in an outlet, with the source range it stands for.
type Entry struct {
	Bytes []byte
	// Buffer is held until the entry is settled; nil where Bytes are the entry's own.
	Buffer *kafka.Buffer
	Count  int32
	Path   Path
	// From is the first source offset the batch stands for and Next the position
	// once it is settled. They differ by more than Count where the source has holes.
	From, Next mirror.UpstreamOffset
	// Runs maps records to source offsets; nil means that record i is From+i.
	Runs         []recordbatch.Run
	MaxTimestamp int64
	// Taken is how many of the source's bytes are settled with the entry.
	Taken int
	// settled, if set, is told the base offset; it is for entries that are not a track's.
	settled func(base mirror.DownstreamOffset)

	sequence int32 // noSequence until bound
	state    entryState
	base     mirror.DownstreamOffset // where the target stored it
	failure  failure
	copied   int // bytes of the budget a private copy holds
	// old says that the broker may forget, while we write, that it has stored the
	// batch: its memory of producers expires by record time.
	old bool
	// doubt says that an answer was lost: the batch may lie in the target's log,
	// whatever later answers say.
	doubt bool
	// plain keeps the batch of a transactional outlet out of the transaction.
	plain bool
}

const noSequence int32 = -1

type entryState uint8

const (
	entryQueued entryState = iota
	entrySent              // answer outstanding
	entryFailed            // answered with a failure, or never answered
	entryStored            // acknowledged, but an earlier one is not
)

// failure is why a batch was not acknowledged. A broken connection has no code.
type failure struct {
	code    kafka.Code
	class   kafka.Class
	message string
}

// unsure reports whether the batch may have been stored all the same. An answer
// with a code that precedes the append is no doubt.
func (f failure) unsure() bool {
	switch f.code {
	case kafka.CodeNone, kafka.CodeRequestTimedOut, kafka.CodeNotEnoughReplicasAfterAppend, kafka.CodeUnknownServerError:
		return true
	}
	return false
}

// bytes is what the entry weighs in its outlet's queue.
func (e *Entry) bytes() int { return len(e.Bytes) }

// release gives the entry's bytes back.
func (e *Entry) release(budget *Budget) {
	if e.Buffer != nil {
		e.Buffer.Release()
		e.Buffer = nil
	}
	if e.copied > 0 {
		budget.Release(e.copied)
		e.copied = 0
	}
	e.Bytes = nil
}

// detach copies the batch out of its shared buffer, so that a batch that is
// stuck does not pin the whole fetch answer it came in.
func (e *Entry) detach(budget *Budget) {
	if e.Buffer == nil {
		return
	}
	own := make([]byte, len(e.Bytes))
	copy(own, e.Bytes)
	budget.Force(len(own))
	e.Buffer.Release()
	e.Buffer, e.Bytes, e.copied = nil, own, len(own)
}
