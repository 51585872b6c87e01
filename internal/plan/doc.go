// Package plan computes what has to be done and never does it: which topics to
// create and grow, which settings to change, which ACLs to grant, which group
// offsets to commit, and where a partition's copying starts.
//
// It is for every caller that needs the same answer: the loops of syncer carry
// the actions out, the dry-run verb prints them, tests compare them. It is not
// for observing clusters or for deciding when.
//
// The walk:
//
//	matched := Match(observed, desired)     which topic is copied to which name, which are parked and why
//	Topics(matched, desired)                -> CreateTopic, AddPartitions, Park
//	Configs(ConfigInput)                    -> AlterConfig, HoldConfig, and the Holds for the next round
//	ACLs(ACLInput)                          -> GrantACL, RefuseACL
//	Group(GroupInput)                       -> CommitGroup, and a reason for each offset left alone
//	Place(PlaceInput)                       -> where a partition starts, or what to ask the operator
//
// Words: a topic's remote name is its name on the target. A change is held when
// it could delete records on the target: it waits, visibly, until it is accepted
// or its time is over. A partition or topic is parked when only a person can
// decide; its neighbours go on.
//
// Invariants:
//   - The package does no I/O, reads no clock, starts nothing and keeps no state;
//     what must be remembered between rounds is passed in and out as a value.
//   - Every action and every refusal says why in words an operator understands.
//   - Results are ordered by name, whatever the order of the input.
//   - Carrying out all actions of a plan leaves nothing to plan.
package plan
