package plan

import (
	"cmp"
	"slices"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// wildcard is the resource name that stands for every topic.
const wildcard = "*"

// ACLInput is one round of copying topic ACLs.
type ACLInput struct {
	Flow      mirror.FlowID
	Selection mirror.TopicSelection
	Source    []kafka.ACL
	Target    []kafka.ACL // bindings that need not be made again; nil where unknown
}

// ACLs plans the bindings to create, as MirrorMaker chooses them: literal topic
// bindings of topics that are replicated, never ALLOW WRITE, and ALLOW ALL only
// as ALLOW READ, so that nobody but the replicator writes to a copy. Nothing is
// ever deleted. A binding on every topic is never made: where names stay the
// same it would open the whole target.
func ACLs(in ACLInput) []Action {
	have := make(map[kafka.ACL]bool, len(in.Target))
	for _, a := range in.Target {
		have[a] = true
	}
	source := slices.SortedFunc(slices.Values(in.Source), compareACL)
	var actions []Action
	for _, a := range source {
		if a.ResourceType != "TOPIC" || a.PatternType != "LITERAL" {
			continue
		}
		if a.Permission == "ALLOW" && a.Operation == "WRITE" {
			continue
		}
		if ok, _ := in.Selection.Replicates(a.ResourceName); !ok {
			continue
		}
		grant := a
		grant.ResourceName = in.Selection.Policy.RemoteTopic(in.Flow.Source, a.ResourceName)
		reason := "as on topic " + a.ResourceName + " of " + string(in.Flow.Source)
		if grant.Permission == "ALLOW" && grant.Operation == "ALL" {
			grant.Operation = "READ"
			reason += ", where it is ALL: only the replicator writes to a copy"
		}
		if grant.ResourceName == wildcard {
			actions = append(actions, RefuseACL{Source: a, Reason: "it would hold for every topic of the target"})
			continue
		}
		if have[grant] {
			continue
		}
		have[grant] = true
		actions = append(actions, GrantACL{ACL: grant, Source: a, Reason: reason})
	}
	return actions
}

func compareACL(a, b kafka.ACL) int {
	return cmp.Or(
		cmp.Compare(a.ResourceType, b.ResourceType),
		cmp.Compare(a.ResourceName, b.ResourceName),
		cmp.Compare(a.PatternType, b.PatternType),
		cmp.Compare(a.Principal, b.Principal),
		cmp.Compare(a.Permission, b.Permission),
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(a.Host, b.Host),
	)
}
