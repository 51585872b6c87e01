package config

import "heliograph/internal/mirror"

const (
	mirrorPackage   = "org.apache.kafka.connect.mirror."
	jvmOnly         = "the class runs in a JVM only"
	notConnect      = "there is no Connect runtime here"
	noInternalREST  = "instances share work through a consumer group and need no HTTP between them"
	removedIn4      = "removed in Kafka 4.0, where it is always on"
	ownMetrics      = "metrics are served in Prometheus' format, see heliograph.metrics.address"
	bytesAreCopied  = "records are copied as bytes"
	oldExcludeNames = "the old name is still read; MirrorMaker ignores it from 4.0 on, which replicates more than intended"
)

// driverKeys concern the whole file.
var driverKeys = []Key{
	{Name: "clusters", Type: TypeList, Scope: ScopeTop, Doc: "The aliases of all clusters, in any order."},
	{Name: "config.providers", Type: TypeList, Scope: ScopeTop, Doc: "Names of config providers, for values such as `${env:PASSWORD}`."},
	{Name: "config.providers.*", Type: TypeString, Scope: ScopeTop, Doc: "`config.providers.<name>.class` and `config.providers.<name>.param.<param>`. Built in: FileConfigProvider (`allowed.paths`), DirectoryConfigProvider (`allowed.paths`), EnvVarConfigProvider (`allowlist.pattern`)."},
	{Name: "dedicated.mode.enable.internal.rest", Type: TypeBool, Default: "false", Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "listeners", Type: TypeList, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "listeners.https.*", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "rest.advertised.host.name", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "rest.advertised.port", Type: TypeInt, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "rest.advertised.listener", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "access.control.allow.origin", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "access.control.allow.methods", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "response.http.headers.config", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "ssl.client.auth", Type: TypeString, Scope: ScopeTop, Since: "3.5", Effect: NoEffect, Why: noInternalREST},
	{Name: "plugin.path", Type: TypeString, Scope: ScopeTop | ScopeCluster, Effect: NoEffect, Why: "plug-ins of the JVM are not loaded"},
	{Name: "plugin.discovery", Type: TypeString, Scope: ScopeTop | ScopeCluster, Since: "3.6", Effect: NoEffect, Why: "plug-ins of the JVM are not loaded"},
}

// sourceKeys concern topics and records of a flow.
var sourceKeys = []Key{
	{Name: "enabled", Type: TypeBool, Default: "false", Scope: flowOrTop, Doc: "Replicates from S to T. At the top level it enables every pair that has a worker."},
	{Name: "source.cluster.alias", Type: TypeString, Default: "S", Scope: flowOrTop, Effect: Refused, Why: "flows are named by their clusters; an alias of another name would rename topics and positions in every flow"},
	{Name: "target.cluster.alias", Type: TypeString, Default: "T", Scope: flowOrTop, Effect: Refused, Why: "flows are named by their clusters"},
	{Name: "topics", Type: TypePatterns, Default: mirror.DefaultTopics, Scope: flowOrTop, Doc: "Topics to copy."},
	{Name: "topics.exclude", Type: TypePatterns, Default: mirror.DefaultTopicsExclude4, Scope: flowOrTop, Since: "2.7", Doc: "Topics not to copy; wins over topics. With heliograph.compatibility=3.9 the default is `" + mirror.DefaultTopicsExclude39 + "`."},
	{Name: "topics.blacklist", Type: TypePatterns, Scope: flowOrTop, Until: "3.9", Doc: "Old name of topics.exclude. " + oldExcludeNames + "."},
	{Name: "topic.filter.class", Type: TypeClass, Default: mirrorPackage + "DefaultTopicFilter", Scope: flowOrTop, Values: []string{"DefaultTopicFilter"}, Effect: Refused, Why: jvmOnly},
	{Name: "config.properties.exclude", Type: TypePatterns, Default: mirror.DefaultConfigPropertiesExclude, Scope: flowOrTop, Since: "2.7", Doc: "Topic settings not to copy; setting it replaces the whole default."},
	{Name: "config.properties.blacklist", Type: TypePatterns, Scope: flowOrTop, Until: "3.9", Doc: "Old name of config.properties.exclude. " + oldExcludeNames + "."},
	{Name: "config.property.filter.class", Type: TypeClass, Default: mirrorPackage + "DefaultConfigPropertyFilter", Scope: flowOrTop, Values: []string{"DefaultConfigPropertyFilter"}, Effect: Refused, Why: jvmOnly},
	{Name: "use.defaults.from", Type: TypeString, Default: "target", Scope: ScopeFlow, Values: []string{"source", "target"}, Since: "3.5", Doc: "`source` copies the source's defaults explicitly."},
	{Name: "use.incremental.alter.configs", Type: TypeString, Default: "required", Scope: flowOrTop, Since: "3.5", Until: "3.9", Effect: NoEffect, Why: removedIn4},
	{Name: "add.source.alias.to.metrics", Type: TypeBool, Default: "true", Scope: flowOrTop, Since: "3.5", Until: "3.9", Effect: NoEffect, Why: removedIn4},
	{Name: "auto.include.jmx.reporter", Type: TypeBool, Scope: flowOrTop | ScopeCluster, Until: "3.9", Effect: NoEffect, Why: ownMetrics},
	{Name: "replication.factor", Type: TypeFactor, Default: "2", Scope: flowOrTop, Doc: "Replication factor of new remote topics; -1 is the target's default."},
	{Name: "replication.policy.class", Type: TypeClass, Default: mirrorPackage + "DefaultReplicationPolicy", Scope: flowOrTop, Doc: "DefaultReplicationPolicy prefixes topics with the source's alias, IdentityReplicationPolicy (3.0) keeps their names. Other classes are refused."},
	{Name: "replication.policy.separator", Type: TypeString, Default: ".", Scope: flowOrTop, Doc: "What stands between alias and topic; used as written, trailing blanks included."},
	{Name: "replication.policy.internal.topic.separator.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Since: "3.6", Doc: "`false` keeps dots in the names of checkpoints and offset syncs topics whatever the separator."},
	{Name: "replication.policy.*", Type: TypeString, Scope: flowOrTop, Effect: NoEffect, Why: "only class, separator and internal.topic.separator.enabled mean anything to the policies there are"},
	{Name: "forwarding.admin.class", Type: TypeClass, Default: "org.apache.kafka.clients.admin.ForwardingAdmin", Scope: flowOrTop, Values: []string{"ForwardingAdmin"}, Since: "3.4", Effect: Refused, Why: jvmOnly},
	{Name: "admin.timeout.ms", Type: TypeMillis, Default: "60000", Scope: flowOrTop, Effect: NoEffect, Why: "nothing waits for admin work at start-up; each request has its own time-out"},
	{Name: "consumer.poll.timeout.ms", Type: TypeMillis, Default: "1000", Scope: flowOrTop, Effect: NoEffect, Why: "nothing polls; a fetch waits as long as fetch.max.wait.ms says"},
	{Name: "refresh.topics.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Doc: "Looks for new topics and partitions while running."},
	{Name: "refresh.topics.interval.seconds", Type: TypeSeconds, Default: "5", Java: "600", Scope: flowOrTop, Doc: "How often topics and partitions are looked for."},
	{Name: "sync.topic.configs.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Doc: "Keeps settings of remote topics in step. They are copied at creation in any case."},
	{Name: "sync.topic.configs.interval.seconds", Type: TypeSeconds, Default: "60", Java: "600", Scope: flowOrTop, Doc: "How often topic settings are compared."},
	{Name: "sync.topic.acls.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Doc: "Copies ACLs of topics. Under identity naming an ACL on `*` is never copied."},
	{Name: "sync.topic.acls.interval.seconds", Type: TypeSeconds, Default: "60", Java: "600", Scope: flowOrTop, Doc: "How often ACLs are compared."},
	{Name: "heartbeats.replication.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Since: "4.0", Doc: "Copies heartbeats topics whatever topics says; `false` only where the filter accepts them."},
	{Name: "offset.lag.max", Type: TypeLong, Default: "100", Scope: flowOrTop, Doc: "How far a partition may run ahead of its last offset sync."},
	{Name: "emit.offset-syncs.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Since: "3.9", Doc: "Writes offset syncs. Without them there are no checkpoints and no group offsets."},
	{Name: "offset-syncs.topic.location", Type: TypeString, Default: "source", Scope: flowOrTop, Values: []string{"source", "target"}, Since: "3.0", Doc: "The cluster that holds the offset syncs topic; `target` needs no write access to the source."},
	{Name: "offset-syncs.topic.replication.factor", Type: TypeFactor, Default: "3", Scope: flowOrTop, Doc: "Replication factor of the offset syncs topic."},
	{Name: "metric.reporters", Type: TypeList, Scope: flowOrTop | ScopeCluster, Effect: NoEffect, Why: ownMetrics},
	{Name: "metric.names.formats", Type: TypeList, Default: "legacy", Scope: flowOrTop, Since: "4.3", Effect: NoEffect, Why: ownMetrics},
	{Name: "tasks.max", Type: TypeInt, Default: "", Java: "1", Scope: flowOrTop, Effect: NoEffect, Why: "all partitions are copied in parallel without a number of tasks to choose"},
}

// checkpointKeys concern consumer groups of a flow.
var checkpointKeys = []Key{
	{Name: "groups", Type: TypePatterns, Default: mirror.DefaultGroups, Scope: flowOrTop, Doc: "Consumer groups to follow."},
	{Name: "groups.exclude", Type: TypePatterns, Default: mirror.DefaultGroupsExclude, Scope: flowOrTop, Since: "2.7", Doc: "Consumer groups not to follow."},
	{Name: "groups.blacklist", Type: TypePatterns, Scope: flowOrTop, Until: "3.9", Doc: "Old name of groups.exclude. " + oldExcludeNames + "."},
	{Name: "group.filter.class", Type: TypeClass, Default: mirrorPackage + "DefaultGroupFilter", Scope: flowOrTop, Values: []string{"DefaultGroupFilter"}, Effect: Refused, Why: jvmOnly},
	{Name: "refresh.groups.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Doc: "Looks for new groups while running."},
	{Name: "refresh.groups.interval.seconds", Type: TypeSeconds, Default: "5", Java: "600", Scope: flowOrTop, Doc: "How often groups are looked for."},
	{Name: "emit.checkpoints.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Doc: "Writes checkpoints of groups."},
	{Name: "emit.checkpoints.interval.seconds", Type: TypeSeconds, Default: "5", Java: "60", Scope: flowOrTop, Doc: "How often checkpoints are written."},
	{Name: "sync.group.offsets.enabled", Type: TypeBool, Default: "false", Scope: flowOrTop, Since: "2.7", Doc: "Commits translated offsets for groups on the target."},
	{Name: "sync.group.offsets.interval.seconds", Type: TypeSeconds, Default: "5", Java: "60", Scope: flowOrTop, Since: "2.7", Doc: "How often offsets are committed on the target."},
	{Name: "checkpoints.topic.replication.factor", Type: TypeFactor, Default: "3", Scope: flowOrTop, Doc: "Replication factor of the checkpoints topic."},
}

// heartbeatKeys concern heartbeats, which every pair writes by default.
var heartbeatKeys = []Key{
	{Name: "emit.heartbeats.enabled", Type: TypeBool, Default: "true", Scope: flowOrTop, Doc: "Writes heartbeats to the target, for disabled pairs too."},
	{Name: "emit.heartbeats.interval.seconds", Type: TypeSeconds, Default: "1", Scope: flowOrTop, Doc: "How often heartbeats are written."},
	{Name: "heartbeats.topic.replication.factor", Type: TypeFactor, Default: "3", Scope: flowOrTop, Doc: "Replication factor of the heartbeats topic."},
}

// ownKeys are heliograph's; MirrorMaker ignores them.
var ownKeys = []Key{
	{Name: "heliograph.memory.bytes", Type: TypeSize, Default: "64MiB", Scope: ScopeTop, Doc: "Bound of all batches held in memory by the process."},
	{Name: "heliograph.rate.bytes.per.second", Type: TypeSize, Default: "unlimited", Scope: ScopeTop | ScopeFlow | ScopeCluster, Doc: "Cap on the bytes written per second: of the process at the top level, of one flow, or of all flows that read from or write to one cluster."},
	{Name: "heliograph.metrics.address", Type: TypeString, Default: ":9404", Scope: ScopeTop, Doc: "Where /metrics and /healthz are served; `off` for nowhere."},
	{Name: "heliograph.retention.hold.hours", Type: TypeLong, Default: "24", Scope: flowOrTop, Doc: "How long a synced setting that can delete data on the target (retention lowered, cleanup.policy to delete) is held back unless accepted; `off` applies it at once."},
	{Name: "heliograph.poison", Type: TypeString, Default: string(PoisonStop), Scope: flowOrTop, Values: []string{string(PoisonStop), string(PoisonSkipAndRecord), string(PoisonDeadLetter)}, Doc: "What happens to a record that the target refuses for good, and to a batch that cannot be decoded: `stop` parks its partition, `skip-and-record` goes on behind it and records what is missing, `dead-letter` keeps it in heliograph.dead.letter.topic first. errors.tolerance=all means skip-and-record where this key is silent."},
	{Name: "heliograph.dead.letter.topic", Type: TypeString, Default: "mm2-dead-letters.S.internal", Scope: flowOrTop, Doc: "The topic on the target that keeps poison where heliograph.poison is `dead-letter`. It is made with the first letter: one partition, 30 days, records up to 33 MiB, times of arrival. One that exists is used as it is. A letter is the record as it was, with headers that say where it came from and why it is here; what is too large for the topic is cut, and says so."},
	{Name: "heliograph.missing.position", Type: TypeString, Default: string(MissingPark), Scope: flowOrTop, Values: []string{string(MissingPark), string(MissingScan), string(MissingEnd), string(MissingStart)}, Doc: "What happens where the target holds data and no position is known: `park` waits for an answer, `scan` finds the place by comparing both ends, `end` goes on with new records, `start` copies from the beginning again."},
	{Name: "heliograph.retention.overtaken", Type: TypeString, Default: string(OvertakenContinue), Scope: flowOrTop, Values: []string{string(OvertakenContinue), string(OvertakenPark)}, Doc: "What happens where the source's retention has removed records before they were read: `continue` goes on with the oldest that is left, `park` waits for a person. Either way the loss ledger says first which offsets are missing."},
	{Name: "heliograph.foreign.writer", Type: TypeString, Scope: flowOrTop, Values: []string{string(ForeignPark), string(ForeignNote)}, Doc: "What happens where others write to a copy: `park` stops the partition, `note` says so and goes on behind their records. Where the key is silent, `park` under IdentityReplicationPolicy, where these may be the promoted target's own producers, and `note` otherwise."},
	{Name: policiesKey, Type: TypeList, Scope: flowOrTop, Doc: "Names of policies that hold for some topics in place of the flow's. The first whose topics match decides."},
	{Name: policiesKey + ".*", Type: TypeString, Scope: flowOrTop, Doc: "`heliograph.policies.<name>.topics`: patterns of source topics. `heliograph.policies.<name>.poison`, `.missing.position`, `.retention.overtaken`, `.foreign.writer`, `.source.recreated` and `.target.recreated`: as heliograph.poison and so on, for these topics; what a policy leaves out is as in the flow."},
	{Name: "heliograph.progress.group", Type: TypeString, Scope: flowOrTop, Doc: "A consumer group on the source under which heliograph commits how far it has copied, so that Kafka's lag tools and lag exporters show the replication lag; `off` for none. Where the key is silent it is `__heliograph.<source>.<target>` if offset syncs lie on the source, and off if they lie on the target. It is never synced itself."},
	{Name: "heliograph.sync.group.deletions", Type: TypeBool, Default: "false", Scope: flowOrTop, Doc: "Deletes a group on the target when it was deleted on the source, if the target's group is empty and stands where heliograph put it. Needs sync.group.offsets.enabled."},
	{Name: "heliograph.source.recreated", Type: TypeString, Default: string(RecreatedPark), Scope: flowOrTop, Values: []string{string(RecreatedPark), string(RecreatedStart)}, Doc: "What happens where a source topic was deleted and made again: `park` waits for a person, `start` copies the new one from its start, behind what the copy holds of the old one. Either way the loss ledger says so."},
	{Name: "heliograph.target.recreated", Type: TypeString, Default: string(RecreatedPark), Scope: flowOrTop, Values: []string{string(RecreatedPark), string(RecreatedStart)}, Doc: "What happens where a copy was deleted and made again: `park` waits for a person, `start` copies all that the source still has into the empty topic. A copy that holds records parks in any case."},
	{Name: "heliograph.compatibility", Type: TypeString, Default: "4", Scope: flowOrTop, Values: []string{"3.9", "4"}, Doc: "Whose rules decide which topics are internal and what topics.exclude is by default: MirrorMaker up to 3.9 leaves out every topic that ends in .internal or -internal, from 4.0 on only MirrorMaker's own."},
	{Name: "heliograph.strict", Type: TypeBool, Default: "false", Scope: ScopeTop, Doc: "Refuses the file for what is otherwise a warning: unknown and misplaced keys."},
}
