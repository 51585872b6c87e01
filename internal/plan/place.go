package plan

import (
	"fmt"
	"strings"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
)

// Stored is what the lane holds for a partition.
type Stored struct {
	// Last is the last replicated source offset. Committed is false where the
	// record has none: nothing was replicated yet, or somebody reset it.
	Last      mirror.UpstreamOffset
	Committed bool
	// Facts is nil where Java MirrorMaker wrote the position.
	Facts *mirror.PositionFacts
}

// next is s, the next source offset, and whether the position tells it. A
// position of ours without an offset was written before the first record of a
// partition that starts at 0.
func (s Stored) next() (mirror.UpstreamOffset, bool) {
	switch {
	case s.Committed:
		return s.Last + 1, true
	case s.Facts != nil:
		return 0, true
	}
	return 0, false
}

// SourceLog and TargetLog are a partition's bounds: the first offset it has and
// the one after its last.
type (
	// SourceLog bounds the source partition.
	SourceLog struct{ Start, End mirror.UpstreamOffset }
	// TargetLog bounds the target partition.
	TargetLog struct{ Start, End mirror.DownstreamOffset }
)

// Reset says where a partition without a position starts (auto.offset.reset).
type Reset string

// The resets.
const (
	ResetEarliest Reset = "earliest"
	ResetLatest   Reset = "latest"
	ResetNone     Reset = "none"
)

// Choice is what an operator may answer where a partition is parked, and what a
// flow may be told to do beforehand.
type Choice string

// The choices.
const (
	ChoicePark  Choice = "park"  // ask
	ChoiceScan  Choice = "scan"  // read both logs and go on where they stop matching
	ChoiceEnd   Choice = "end"   // copy only what comes from now on
	ChoiceStart Choice = "start" // copy again from the source's start, behind what the target holds
	ChoiceKeep  Choice = "keep"  // believe the position as it stands
)

// PlaceInput is everything known of one partition before its first batch.
type PlaceInput struct {
	Source, Target kafka.TopicPartition

	SourceCluster, TargetCluster string        // ids; empty where a cluster has none
	SourceID, TargetID           kafka.TopicID // unknown where a cluster does not tell
	SourceLog                    SourceLog
	TargetLog                    TargetLog

	Stored *Stored // nil: searched in all lanes and found nowhere
	// Synced says that offset syncs tell of the partition, and that the offset map
	// does not: MirrorMaker has copied it and was killed before its first position.
	Synced bool
	Reset  Reset
	// Born says that the partition came to be while the flow ran: it is read
	// from its start whatever Reset says.
	Born bool
	// Missing is what to do where the target holds data and no position is known.
	Missing Choice
	// ParkOvertaken asks where the source's retention has removed records before
	// they were read; otherwise copying goes on behind them.
	ParkOvertaken bool
	// RestartSource and RestartTarget start over where the topic of that side was
	// deleted and made again.
	RestartSource, RestartTarget bool
	// Answer is an operator's decision for this partition; empty where none was asked for.
	Answer Choice
}

// PlaceKind says how a partition starts.
type PlaceKind string

// The kinds.
const (
	PlaceFresh  PlaceKind = "fresh"  // no position: start at Source
	PlaceResume PlaceKind = "resume" // go on at Source; the target ends where we left it
	PlaceScan   PlaceKind = "scan"   // fence, then read both logs from (Source, Target) to find the place
	PlacePark   PlaceKind = "park"   // ask; Choices are the answers
)

// Gap is a range of source offsets that can no longer be copied.
type Gap struct {
	From, To mirror.UpstreamOffset // To is exclusive
	Reason   string
}

// Placement is the decision.
type Placement struct {
	Kind   PlaceKind
	Source mirror.UpstreamOffset   // where to start, or to scan from
	Target mirror.DownstreamOffset // where the next record should land, or the scan starts
	// Anchored is false for a scan whose Target is only a lower bound: the
	// position was written by Java MirrorMaker, which does not tell. The newest
	// offset sync at or below Source tells more.
	Anchored bool
	Gap      *Gap // to be written to the ledger before the position passes it
	// Lost says what happened to the records of a parked partition, for the
	// ledger; empty where only a position is missing.
	Lost    losses.Kind
	Reason  string
	Choices []Choice
}

// String is one line for the dry run and the log.
func (p Placement) String() string {
	var b strings.Builder
	b.WriteString(string(p.Kind))
	switch p.Kind {
	case PlaceFresh:
		fmt.Fprintf(&b, " at source offset %d", p.Source)
	case PlaceResume:
		fmt.Fprintf(&b, " at source offset %d, target offset %d", p.Source, p.Target)
	case PlaceScan:
		fmt.Fprintf(&b, " from source offset %d, target offset %d", p.Source, p.Target)
		if !p.Anchored {
			b.WriteString(" or later")
		}
	case PlacePark: // the reason says where
	}
	b.WriteString(": " + p.Reason)
	if p.Gap != nil && p.Kind != PlacePark {
		fmt.Fprintf(&b, "; source offsets %d to %d are lost: %s", p.Gap.From, p.Gap.To-1, p.Gap.Reason)
	}
	if len(p.Choices) > 0 {
		words := make([]string, len(p.Choices))
		for i, c := range p.Choices {
			words[i] = string(c)
		}
		b.WriteString("; choose " + strings.Join(words, ", "))
	}
	return b.String()
}

// Place decides where a partition starts. Whatever could copy a record twice or
// leave one out without an entry in the ledger is parked or scanned.
func Place(in PlaceInput) Placement {
	if in.Answer != "" && in.Answer != ChoicePark {
		return in.chosen(in.Answer, "as answered")
	}
	if in.Stored == nil {
		return in.withoutPosition("no position is stored")
	}
	s, ok := in.Stored.next()
	if !ok {
		return in.withoutPosition("the stored position was reset")
	}
	if p, bad := in.foreign(); bad {
		return p
	}
	if s > in.SourceLog.End {
		return park(fmt.Sprintf("the position is at source offset %d and the source ends at %d: it was truncated or made again", s, in.SourceLog.End),
			ChoiceStart, ChoiceEnd).losing(losses.SourceTruncated)
	}
	gap := in.overtaken(s)
	if gap != nil && in.ParkOvertaken {
		p := park(fmt.Sprintf("source offsets %d to %d are lost: %s", gap.From, gap.To-1, gap.Reason), ChoiceKeep).losing(losses.Overtaken)
		p.Gap = gap
		return p
	}
	if in.Stored.Facts == nil {
		return in.fromJava(s, gap)
	}
	return in.fromFacts(s, *in.Stored.Facts, gap)
}

// withoutPosition starts a partition that nobody has copied yet, or asks.
func (in PlaceInput) withoutPosition(why string) Placement {
	if in.TargetLog.End == 0 {
		return in.fresh(why + " and the target is empty")
	}
	if in.asks() && in.Synced {
		return Placement{
			Kind: PlaceScan, Source: in.SourceLog.Start, Target: in.TargetLog.Start,
			Reason: why + ", and MirrorMaker's offset syncs tell how far it has copied",
		}
	}
	if in.asks() {
		return park(fmt.Sprintf("%s and target partition %s is not empty: it ends at offset %d", why, in.Target, in.TargetLog.End),
			ChoiceScan, ChoiceEnd, ChoiceStart)
	}
	return in.chosen(in.Missing, why+", so as configured")
}

// asks reports whether a missing position is for a person to decide.
func (in PlaceInput) asks() bool { return in.Missing == "" || in.Missing == ChoicePark }

func (in PlaceInput) fresh(why string) Placement {
	switch {
	case in.Born:
		return Placement{Kind: PlaceFresh, Source: in.SourceLog.Start, Target: in.TargetLog.End, Reason: why + ", born while running"}
	case in.Reset == ResetLatest:
		return Placement{Kind: PlaceFresh, Source: in.SourceLog.End, Target: in.TargetLog.End, Reason: why + ", auto.offset.reset=latest"}
	case in.Reset == ResetNone:
		return park(why+" and auto.offset.reset=none forbids to choose", ChoiceEnd, ChoiceStart)
	}
	return Placement{Kind: PlaceFresh, Source: in.SourceLog.Start, Target: in.TargetLog.End, Reason: why}
}

// chosen does what somebody decided.
func (in PlaceInput) chosen(c Choice, why string) Placement {
	why = fmt.Sprintf("%s: %s", why, c)
	switch c {
	case ChoiceEnd:
		return Placement{Kind: PlaceFresh, Source: in.SourceLog.End, Target: in.TargetLog.End, Reason: why}
	case ChoiceStart:
		return Placement{Kind: PlaceFresh, Source: in.SourceLog.Start, Target: in.TargetLog.End, Reason: why}
	case ChoiceScan:
		p := Placement{Kind: PlaceScan, Source: in.SourceLog.Start, Target: in.TargetLog.Start, Reason: why}
		if in.Stored != nil {
			if s, ok := in.Stored.next(); ok && s <= in.SourceLog.End {
				p.Source = max(s, in.SourceLog.Start)
				p.Gap = in.overtaken(s)
			}
		}
		return p
	case ChoiceKeep:
		if in.Stored != nil {
			if s, ok := in.Stored.next(); ok && s <= in.SourceLog.End {
				return Placement{Kind: PlaceResume, Source: max(s, in.SourceLog.Start), Target: in.TargetLog.End, Anchored: true, Gap: in.overtaken(s), Reason: why}
			}
		}
		return park(why+" is not possible without a position inside the source's log", ChoiceScan, ChoiceEnd, ChoiceStart)
	case ChoicePark: // asking is what the caller does without a choice
	}
	return park(why+" is no choice", ChoiceScan, ChoiceEnd, ChoiceStart)
}

// foreign parks a position that was written for another cluster or topic.
func (in PlaceInput) foreign() (Placement, bool) {
	f := in.Stored.Facts
	if f == nil {
		return Placement{}, false
	}
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case differ(f.SourceCluster, in.SourceCluster):
		return park(fmt.Sprintf("the position belongs to source cluster %s, this one is %s", f.SourceCluster, in.SourceCluster), ChoiceScan, ChoiceEnd, ChoiceStart), true
	case differ(f.TargetCluster, in.TargetCluster):
		return park(fmt.Sprintf("the position belongs to target cluster %s, this one is %s", f.TargetCluster, in.TargetCluster), ChoiceScan, ChoiceEnd, ChoiceStart), true
	case differ(f.SourceTopicID.String(), in.SourceID.String()):
		reason := fmt.Sprintf("source topic %s was deleted and made again: the position belongs to topic id %s, this one is %s", in.Source.Topic, f.SourceTopicID, in.SourceID)
		if in.RestartSource {
			return in.chosen(ChoiceStart, reason+", so as configured").losing(losses.SourceRecreated), true
		}
		return park(reason, ChoiceStart, ChoiceEnd).losing(losses.SourceRecreated), true
	case differ(f.TargetTopicID.String(), in.TargetID.String()):
		reason := fmt.Sprintf("target topic %s was deleted and made again: the position belongs to topic id %s, this one is %s", in.Target.Topic, f.TargetTopicID, in.TargetID)
		if in.RestartTarget && in.TargetLog.End == 0 {
			return in.chosen(ChoiceStart, reason+", so as configured").losing(losses.TargetTruncated), true
		}
		return park(reason, ChoiceStart, ChoiceKeep, ChoiceEnd).losing(losses.TargetTruncated), true
	}
	return Placement{}, false
}

// overtaken is the range that the source's retention removed before it was read.
func (in PlaceInput) overtaken(s mirror.UpstreamOffset) *Gap {
	if s >= in.SourceLog.Start {
		return nil
	}
	return &Gap{From: s, To: in.SourceLog.Start, Reason: "the source's retention removed them before they were read"}
}

// fromJava handles a position without our facts.
func (in PlaceInput) fromJava(s mirror.UpstreamOffset, gap *Gap) Placement {
	if in.TargetLog.End == 0 {
		return park(fmt.Sprintf("MirrorMaker's position says that source offsets below %d are copied and the target has never held a record", s),
			ChoiceStart, ChoiceKeep, ChoiceEnd)
	}
	return Placement{
		Kind: PlaceScan, Source: max(s, in.SourceLog.Start), Target: in.TargetLog.Start, Gap: gap,
		Reason: "MirrorMaker wrote the position and may have copied more since",
	}
}

// modeExactlyOnce is [mirror.PositionFacts.Mode] of a position that was written
// in the transaction of its data.
const modeExactlyOnce = "exactly-once"

// fromFacts handles a position that tells where the target was.
func (in PlaceInput) fromFacts(s mirror.UpstreamOffset, f mirror.PositionFacts, gap *Gap) Placement {
	t, end := f.NextTarget, in.TargetLog.End
	at := max(s, in.SourceLog.Start)
	switch {
	case end >= t && f.Mode == modeExactlyOnce:
		// The position was committed with its data, and taking the lane over has
		// aborted whatever was open. Markers lie between t and the end.
		return Placement{Kind: PlaceResume, Source: at, Target: end, Anchored: true, Gap: gap, Reason: "committed with its data"}
	case end < t:
		return park(fmt.Sprintf("the position is at target offset %d and the target ends at %d: it was truncated", t, end),
			ChoiceScan, ChoiceKeep, ChoiceStart).losing(losses.TargetTruncated)
	case f.Clean && end == t:
		return Placement{Kind: PlaceResume, Source: at, Target: t, Anchored: true, Gap: gap, Reason: "stopped in order"}
	case f.Clean:
		return Placement{
			Kind: PlaceScan, Source: at, Target: t, Anchored: true, Gap: gap,
			Reason: fmt.Sprintf("stopped in order at target offset %d, and the target now ends at %d: somebody else has written", t, end),
		}
	}
	return Placement{Kind: PlaceScan, Source: at, Target: t, Anchored: true, Gap: gap, Reason: "not stopped in order: more may have been written since the position"}
}

func (p Placement) losing(k losses.Kind) Placement {
	p.Lost = k
	return p
}

func park(reason string, choices ...Choice) Placement {
	return Placement{Kind: PlacePark, Reason: reason, Choices: choices}
}
