package server

import "maps"

// targetFactors let the target choose how many replicas what flows of the APIs make
// has. MirrorMaker's fixed numbers, 2 and 3, are refused by smaller clusters, and who
// asks over an API often does not know how many brokers there are.
var targetFactors = map[string]string{
	"replication.factor":                    "-1",
	"heartbeats.topic.replication.factor":   "-1",
	"checkpoints.topic.replication.factor":  "-1",
	"offset-syncs.topic.replication.factor": "-1",
	"offset.storage.replication.factor":     "-1",
}

// withTargetFactors are the configuration's defaults, which win, on top of ours.
func withTargetFactors(defaults map[string]string) map[string]string {
	out := maps.Clone(targetFactors)
	maps.Copy(out, defaults)
	return out
}
