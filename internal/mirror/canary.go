package mirror

// canaryPrefix and canarySuffix make a name internal to every MirrorMaker of a
// chain, so that none copies it on.
const (
	canaryPrefix = "mm2-canary."
	canarySuffix = ".internal"
)

// CanaryAlias is the source's alias in a canary: its books are beside
// MirrorMaker's own.
func CanaryAlias(source ClusterAlias) ClusterAlias { return "canary." + source }

// Canary is a policy whose copies lie beside those of the given one, under names
// that nobody reads or copies: mm2-canary.<remote name>.internal. It is for
// trying a flow from source while MirrorMaker runs it.
func Canary(policy ReplicationPolicy, source ClusterAlias) ReplicationPolicy {
	return canaryPolicy{policy, source}
}

type canaryPolicy struct {
	ReplicationPolicy
	source ClusterAlias
}

func (p canaryPolicy) RemoteTopic(_ ClusterAlias, topic string) string {
	return canaryPrefix + p.ReplicationPolicy.RemoteTopic(p.source, topic) + canarySuffix
}
