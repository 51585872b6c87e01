package coord

import (
	"heliograph/internal/kafka"
	"heliograph/internal/losses"
)

// behindForgotten are takeovers of partitions whose copy has lost, by its own
// retention, what lay behind the position. They belong to [takeovers].
var behindForgotten = []takeover{
	{
		name: "the copy's retention removed the first of what was written since the position",
		find: func(r *rig) {
			r.fill(numbered(0, 9))
			r.stand(r.lane(), positionAt(orders, 2, r.facts(2, false)))
			r.target.write(copies, before, numbered(0, 7)...)
			r.target.logs[copies].start = 4
		}, copied: 2, target: "0 1 2 3 4 5 6 7 8", marked: true,
	},
	{
		name: "the copy's retention removed what somebody else had written, too",
		find: func(r *rig) {
			r.fill(numbered(0, 9))
			r.stand(r.lane(), positionAt(orders, 2, r.facts(2, false)))
			r.target.write(copies, before, numbered(0, 2)...)
			r.target.write(copies, kafka.ProducerID{ID: 99}, records(0, "x", "y")...)
			r.target.write(copies, before, numbered(2, 4)...)
			r.target.logs[copies].start = 5
		}, copied: 3, target: "0 1 x y 2 3 4 5 6 7 8", marked: true,
	},
	{
		name: "the copy's retention removed the first of what was written, and records repeat",
		find: func(r *rig) {
			r.fill(records(0, "a", "b", "c", "d", "c", "d", "e"))
			r.stand(r.lane(), positionAt(orders, 1, r.facts(1, false)))
			r.target.write(copies, before, records(0, "a", "b", "c", "d", "c", "d")...)
			r.target.logs[copies].start = 4
		}, parked: "match 2 places", target: "a b c d c d", marked: true,
	},
	{
		name: "the copy's retention removed all that was written since the position",
		find: func(r *rig) {
			r.fill(numbered(0, 9))
			r.stand(r.lane(), positionAt(orders, 2, r.facts(2, false)))
			r.target.write(copies, before, numbered(0, 5)...)
			r.target.logs[copies].start = 5
		}, parked: "how many of the source's records that were cannot be told", target: "0 1 2 3 4", marked: true,
	},
	{
		name: "retention on both sides removed all since the position",
		find: func(r *rig) {
			r.fill(numbered(0, 5))
			r.source.logs[orders].start = 5
			r.stand(r.lane(), positionAt(orders, 2, r.facts(2, false)))
			r.target.write(copies, before, numbered(0, 5)...)
			r.target.logs[copies].start = 5
		}, target: "0 1 2 3 4", marked: true, lost: []losses.Kind{losses.Overtaken},
	},
	{
		name: "stopped in order, and the copy's retention went on",
		find: func(r *rig) {
			r.fill(numbered(0, 6))
			r.target.write(copies, before, numbered(0, 4)...)
			r.target.logs[copies].start = 4
			r.stand(r.lane(), positionAt(orders, 4, r.facts(4, true)))
		}, copied: 2, target: "0 1 2 3 4 5",
	},
}
