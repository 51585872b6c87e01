package plan

import (
	"testing"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func id(b byte) kafka.TopicID { return kafka.TopicID{b} }

// placed is a partition whose position 100 -> 200 was written in order.
func placed() PlaceInput {
	return PlaceInput{
		Source: tp("orders", 0), Target: tp("A.orders", 0),
		SourceCluster: "ca", TargetCluster: "cb", SourceID: id(1), TargetID: id(2),
		SourceLog: SourceLog{Start: 10, End: 500}, TargetLog: TargetLog{Start: 20, End: 200},
		Stored: &Stored{Last: 99, Committed: true, Facts: &mirror.PositionFacts{
			Clean: true, NextTarget: 200, SourceCluster: "ca", TargetCluster: "cb", SourceTopicID: id(1), TargetTopicID: id(2),
		}},
		Reset: ResetEarliest,
	}
}

func TestPlaceOfAPartition(t *testing.T) {
	facts := func(in *PlaceInput, change func(*mirror.PositionFacts)) {
		f := *in.Stored.Facts
		change(&f)
		in.Stored = &Stored{Last: in.Stored.Last, Committed: in.Stored.Committed, Facts: &f}
	}
	cases := []struct {
		name   string
		change func(*PlaceInput)
		want   string
	}{
		{"clean stop", func(*PlaceInput) {}, "resume at source offset 100, target offset 200: stopped in order"},
		{"crash", func(in *PlaceInput) {
			facts(in, func(f *mirror.PositionFacts) { f.Clean = false })
			in.TargetLog.End = 230
		}, "scan from source offset 100, target offset 200: not stopped in order: more may have been written since the position"},
		{
			"crash with nothing behind the position", func(in *PlaceInput) { facts(in, func(f *mirror.PositionFacts) { f.Clean = false }) },
			"scan from source offset 100, target offset 200: not stopped in order: more may have been written since the position",
		},
		{
			"clean stop and a foreign writer", func(in *PlaceInput) { in.TargetLog.End = 205 },
			"scan from source offset 100, target offset 200: stopped in order at target offset 200, and the target now ends at 205: somebody else has written",
		},
		{
			"target truncated", func(in *PlaceInput) { in.TargetLog.End = 150 },
			"park: the position is at target offset 200 and the target ends at 150: it was truncated; choose scan, keep, start",
		},
		{
			"source truncated", func(in *PlaceInput) { in.SourceLog.End = 50 },
			"park: the position is at source offset 100 and the source ends at 50: it was truncated or made again; choose start, end",
		},
		{"at the source's end", func(in *PlaceInput) { in.SourceLog.End = 100 }, "resume at source offset 100, target offset 200: stopped in order"},
		{
			"retention overtook", func(in *PlaceInput) { in.SourceLog.Start = 130 },
			"resume at source offset 130, target offset 200: stopped in order; source offsets 100 to 129 are lost: the source's retention removed them before they were read",
		},
		{
			"retention overtook, told to ask", func(in *PlaceInput) { in.SourceLog.Start, in.ParkOvertaken = 130, true },
			"park: source offsets 100 to 129 are lost: the source's retention removed them before they were read; choose keep",
		},
		{
			"another source cluster", func(in *PlaceInput) { in.SourceCluster = "cx" },
			"park: the position belongs to source cluster ca, this one is cx; choose scan, end, start",
		},
		{
			"another target cluster", func(in *PlaceInput) { in.TargetCluster = "cx" },
			"park: the position belongs to target cluster cb, this one is cx; choose scan, end, start",
		},
		{
			"source topic made again, told to start over", func(in *PlaceInput) { in.SourceID, in.RestartSource = id(9), true },
			"fresh at source offset 10: source topic orders was deleted and made again: the position belongs to topic id AQAAAAAAAAAAAAAAAAAAAA, this one is CQAAAAAAAAAAAAAAAAAAAA, so as configured: start",
		},
		{
			"target topic made again, told to start over", func(in *PlaceInput) { in.TargetID, in.RestartTarget, in.TargetLog = id(9), true, TargetLog{} },
			"fresh at source offset 10: target topic A.orders was deleted and made again: the position belongs to topic id AgAAAAAAAAAAAAAAAAAAAA, this one is CQAAAAAAAAAAAAAAAAAAAA, so as configured: start",
		},
		{
			"target topic made again and filled, told to start over", func(in *PlaceInput) { in.TargetID, in.RestartTarget = id(9), true },
			"park: target topic A.orders was deleted and made again: the position belongs to topic id AgAAAAAAAAAAAAAAAAAAAA, this one is CQAAAAAAAAAAAAAAAAAAAA; choose start, keep, end",
		},
		{
			"source topic made again", func(in *PlaceInput) { in.SourceID = id(9) },
			"park: source topic orders was deleted and made again: the position belongs to topic id AQAAAAAAAAAAAAAAAAAAAA, this one is CQAAAAAAAAAAAAAAAAAAAA; choose start, end",
		},
		{
			"target topic made again", func(in *PlaceInput) { in.TargetID = id(9) },
			"park: target topic A.orders was deleted and made again: the position belongs to topic id AgAAAAAAAAAAAAAAAAAAAA, this one is CQAAAAAAAAAAAAAAAAAAAA; choose start, keep, end",
		},
		{
			"cluster that does not tell ids", func(in *PlaceInput) { in.SourceID, in.SourceCluster = kafka.TopicID{}, "" },
			"resume at source offset 100, target offset 200: stopped in order",
		},
		{"position written before the first record", func(in *PlaceInput) {
			in.Stored = &Stored{Facts: &mirror.PositionFacts{NextTarget: 0}}
			in.SourceLog, in.TargetLog = SourceLog{0, 40}, TargetLog{0, 7}
		}, "scan from source offset 0, target offset 0: not stopped in order: more may have been written since the position"},

		{
			"MirrorMaker's position", func(in *PlaceInput) { in.Stored = &Stored{Last: 99, Committed: true} },
			"scan from source offset 100, target offset 20 or later: MirrorMaker wrote the position and may have copied more since",
		},
		{"MirrorMaker's position and an untouched target", func(in *PlaceInput) {
			in.Stored, in.TargetLog = &Stored{Last: 99, Committed: true}, TargetLog{}
		}, "park: MirrorMaker's position says that source offsets below 100 are copied and the target has never held a record; choose start, keep, end"},
		{
			"MirrorMaker's position was reset", func(in *PlaceInput) { in.Stored = &Stored{} },
			"park: the stored position was reset and target partition A.orders-0 is not empty: it ends at offset 200; choose scan, end, start",
		},

		{
			"new", func(in *PlaceInput) { in.Stored, in.TargetLog = nil, TargetLog{} },
			"fresh at source offset 10: no position is stored and the target is empty",
		},
		{
			"new from latest", func(in *PlaceInput) { in.Stored, in.TargetLog, in.Reset = nil, TargetLog{}, ResetLatest },
			"fresh at source offset 500: no position is stored and the target is empty, auto.offset.reset=latest",
		},
		{"born while running from latest", func(in *PlaceInput) {
			in.Stored, in.TargetLog, in.Reset, in.Born = nil, TargetLog{}, ResetLatest, true
		}, "fresh at source offset 10: no position is stored and the target is empty, born while running"},
		{
			"new without a reset", func(in *PlaceInput) { in.Stored, in.TargetLog, in.Reset = nil, TargetLog{}, ResetNone },
			"park: no position is stored and the target is empty and auto.offset.reset=none forbids to choose; choose end, start",
		},
		{
			"position missing", func(in *PlaceInput) { in.Stored = nil },
			"park: no position is stored and target partition A.orders-0 is not empty: it ends at offset 200; choose scan, end, start",
		},
		{
			"position missing and the target emptied by retention", func(in *PlaceInput) { in.Stored, in.TargetLog = nil, TargetLog{200, 200} },
			"park: no position is stored and target partition A.orders-0 is not empty: it ends at offset 200; choose scan, end, start",
		},
		{
			"position missing, told to scan", func(in *PlaceInput) { in.Stored, in.Missing = nil, ChoiceScan },
			"scan from source offset 10, target offset 20 or later: no position is stored, so as configured: scan",
		},
		{
			"position missing, told to go on at the end", func(in *PlaceInput) { in.Stored, in.Missing = nil, ChoiceEnd },
			"fresh at source offset 500: no position is stored, so as configured: end",
		},
		{
			"position missing, told to copy again", func(in *PlaceInput) { in.Stored, in.Missing = nil, ChoiceStart },
			"fresh at source offset 10: no position is stored, so as configured: start",
		},

		{
			"answered keep", func(in *PlaceInput) { in.TargetID, in.Answer = id(9), ChoiceKeep },
			"resume at source offset 100, target offset 200: as answered: keep",
		},
		{
			"answered keep without a position", func(in *PlaceInput) { in.Stored, in.Answer = nil, ChoiceKeep },
			"park: as answered: keep is not possible without a position inside the source's log; choose scan, end, start",
		},
		{
			"answered scan", func(in *PlaceInput) { in.TargetLog.End, in.Answer = 150, ChoiceScan },
			"scan from source offset 100, target offset 20 or later: as answered: scan",
		},
		{
			"answered nonsense", func(in *PlaceInput) { in.Answer = "maybe" },
			"park: as answered: maybe is no choice; choose scan, end, start",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := placed()
			c.change(&in)
			if got := Place(in).String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
