package telemetry

// The attribute keys of log lines. A key means the same thing everywhere, so
// that one query finds one flow, topic or group in every line that is about it.
const (
	KeyFlow        = "flow"         // "A->B"
	KeyCluster     = "cluster"      // alias
	KeyTopic       = "topic"        // name at the source unless KeyTarget tells more
	KeyRemoteTopic = "remote_topic" // name at the target
	KeyPartition   = "partition"
	KeyGroup       = "group"
	KeyLane        = "lane"
	KeyLeaderEpoch = "leader_epoch"
	KeyUpstream    = "upstream"   // offset at the source
	KeyDownstream  = "downstream" // offset at the target
	KeyReason      = "reason"
	KeyState       = "state"
	KeyError       = "err"
	KeyHint        = "hint"
	KeyAddress     = "address"
	KeyFile        = "file"
	KeySignal      = "signal"
	KeyWait        = "wait"
	KeyCount       = "count"
	KeyVersion     = "version"

	// KeyRepeated is how many equal lines were counted instead of written.
	KeyRepeated = "repeated_times"
)
