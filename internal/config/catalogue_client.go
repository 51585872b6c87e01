package config

// Roles are the kinds of clients a key belongs to; they are combined.
type Roles uint8

// The kinds of clients.
const (
	RoleConsumer Roles = 1 << iota
	RoleProducer
	RoleAdmin
)

const everyRole = RoleConsumer | RoleProducer | RoleAdmin

// roleNames are the prefixes of client layers, in the order of the role bits.
var roleNames = []string{"consumer", "producer", "admin"}

// roleOf is the role behind a prefix, or zero.
func roleOf(prefix string) Roles {
	for i, name := range roleNames {
		if name == prefix {
			return 1 << i
		}
	}
	return 0
}

// ClientKey is one row of the table of client settings.
type ClientKey struct {
	Name   string
	Type   Type
	Roles  Roles
	Values []string
	Effect Effect
	Why    string
	Doc    string
}

const (
	noGroupHere  = "the source is read without a consumer group"
	batchesAsAre = "batches are forwarded as the source holds them"
	alwaysSafe   = "writing is always idempotent with acks=all, and retried without end"
)

// clientKeys are Kafka's client settings and what becomes of them here, apart
// from the connection keys, which every client takes.
var clientKeys = []ClientKey{
	{Name: "client.id", Type: TypeString, Roles: everyRole, Doc: "Name of the client, for quotas and the brokers' logs."},
	{Name: "client.rack", Type: TypeString, Roles: RoleConsumer, Doc: "Rack to read from the nearest replica."},
	{Name: "client.dns.lookup", Type: TypeString, Roles: everyRole, Effect: NoEffect, Why: "all addresses of a name are tried"},
	{Name: "request.timeout.ms", Type: TypeMillis, Roles: everyRole, Doc: "Time-out of a request."},
	{Name: "default.api.timeout.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: "what fails is retried without end"},
	{Name: "metadata.max.age.ms", Type: TypeMillis, Roles: everyRole, Doc: "When metadata is read again."},
	{Name: "metadata.max.idle.ms", Type: TypeMillis, Roles: RoleProducer, Effect: NoEffect, Why: "metadata is kept for the topics of the flow"},
	{Name: "metadata.recovery.strategy", Type: TypeString, Roles: everyRole, Effect: NoEffect, Why: "bootstrap servers are asked again by heliograph's own rule"},
	{Name: "metadata.recovery.rebootstrap.trigger.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: "bootstrap servers are asked again by heliograph's own rule"},
	{Name: "connections.max.idle.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "reconnect.backoff.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "reconnect.backoff.max.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "retry.backoff.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "retry.backoff.max.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "retries", Type: TypeInt, Roles: RoleProducer | RoleAdmin, Effect: NoEffect, Why: alwaysSafe},
	{Name: "socket.connection.setup.timeout.ms", Type: TypeMillis, Roles: everyRole, Doc: "Time-out of connecting."},
	{Name: "socket.connection.setup.timeout.max.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: "connecting has one time-out"},
	{Name: "send.buffer.bytes", Type: TypeInt, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "receive.buffer.bytes", Type: TypeInt, Roles: everyRole, Effect: NoEffect, Why: ownConnections},
	{Name: "interceptor.classes", Type: TypeList, Roles: RoleConsumer | RoleProducer, Effect: Refused, Why: jvmOnly},
	{Name: "metric.reporters", Type: TypeList, Roles: everyRole, Effect: NoEffect, Why: ownMetrics},
	{Name: "metrics.num.samples", Type: TypeInt, Roles: everyRole, Effect: NoEffect, Why: ownMetrics},
	{Name: "metrics.sample.window.ms", Type: TypeMillis, Roles: everyRole, Effect: NoEffect, Why: ownMetrics},
	{Name: "metrics.recording.level", Type: TypeString, Roles: everyRole, Effect: NoEffect, Why: ownMetrics},
	{Name: "auto.include.jmx.reporter", Type: TypeBool, Roles: everyRole, Effect: NoEffect, Why: ownMetrics},
	{Name: "enable.metrics.push", Type: TypeBool, Roles: everyRole, Effect: NoEffect, Why: ownMetrics},
	{Name: "security.providers", Type: TypeString, Roles: everyRole, Effect: NoEffect, Why: "a setting of the JVM"},

	{Name: "auto.offset.reset", Type: TypeString, Roles: RoleConsumer, Values: []string{"earliest", "latest"}, Doc: "Where a partition without a position starts; earliest by default. latest holds for partitions that exist at the start."},
	{Name: "isolation.level", Type: TypeString, Roles: RoleConsumer, Values: []string{"read_uncommitted", "read_committed"}, Doc: "read_committed leaves aborted records out."},
	{Name: "fetch.max.bytes", Type: TypeInt, Roles: RoleConsumer, Doc: "Bytes of one fetch."},
	{Name: "max.partition.fetch.bytes", Type: TypeInt, Roles: RoleConsumer, Doc: "Bytes of one partition in a fetch."},
	{Name: "fetch.min.bytes", Type: TypeInt, Roles: RoleConsumer, Effect: NoEffect, Why: "a fetch is answered as soon as there is a record"},
	{Name: "fetch.max.wait.ms", Type: TypeMillis, Roles: RoleConsumer, Doc: "How long a broker waits for them."},
	{Name: "max.poll.records", Type: TypeInt, Roles: RoleConsumer, Effect: NoEffect, Why: batchesAsAre},
	{Name: "max.poll.interval.ms", Type: TypeMillis, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "enable.auto.commit", Type: TypeBool, Roles: RoleConsumer, Effect: NoEffect, Why: "always false; nothing is committed on the source"},
	{Name: "auto.commit.interval.ms", Type: TypeMillis, Roles: RoleConsumer, Effect: NoEffect, Why: "nothing is committed on the source"},
	{Name: "group.id", Type: TypeString, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "group.instance.id", Type: TypeString, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "group.protocol", Type: TypeString, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "group.remote.assignor", Type: TypeString, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "session.timeout.ms", Type: TypeMillis, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "heartbeat.interval.ms", Type: TypeMillis, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "partition.assignment.strategy", Type: TypeList, Roles: RoleConsumer, Effect: NoEffect, Why: noGroupHere},
	{Name: "allow.auto.create.topics", Type: TypeBool, Roles: RoleConsumer, Effect: NoEffect, Why: "reading never creates topics"},
	{Name: "exclude.internal.topics", Type: TypeBool, Roles: RoleConsumer, Effect: NoEffect, Why: "internal topics are never copied"},
	{Name: "check.crcs", Type: TypeBool, Roles: RoleConsumer, Effect: NoEffect, Why: "the source's checksum travels on, and the target checks it"},
	{Name: "key.deserializer", Type: TypeClass, Roles: RoleConsumer, Effect: NoEffect, Why: bytesAreCopied},
	{Name: "value.deserializer", Type: TypeClass, Roles: RoleConsumer, Effect: NoEffect, Why: bytesAreCopied},

	{Name: "compression.type", Type: TypeString, Roles: RoleProducer, Values: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Doc: "Codec to write with; where silent each batch keeps its own."},
	{Name: "compression.gzip.level", Type: TypeInt, Roles: RoleProducer, Effect: NoEffect, Why: "codecs run at their default levels"},
	{Name: "compression.lz4.level", Type: TypeInt, Roles: RoleProducer, Effect: NoEffect, Why: "codecs run at their default levels"},
	{Name: "compression.zstd.level", Type: TypeInt, Roles: RoleProducer, Effect: NoEffect, Why: "codecs run at their default levels"},
	{Name: "max.request.size", Type: TypeInt, Roles: RoleProducer, Doc: "Bytes of one produce request."},
	{Name: "batch.size", Type: TypeInt, Roles: RoleProducer, Effect: NoEffect, Why: batchesAsAre},
	{Name: "linger.ms", Type: TypeMillis, Roles: RoleProducer, Effect: NoEffect, Why: batchesAsAre + ", so waiting to fill one would only add delay"},
	{Name: "buffer.memory", Type: TypeLong, Roles: RoleProducer, Effect: NoEffect, Why: "memory is bounded for the whole process by heliograph.memory.bytes"},
	{Name: "acks", Type: TypeString, Roles: RoleProducer, Effect: NoEffect, Why: alwaysSafe},
	{Name: "enable.idempotence", Type: TypeBool, Roles: RoleProducer, Effect: NoEffect, Why: alwaysSafe},
	{Name: "max.in.flight.requests.per.connection", Type: TypeInt, Roles: RoleProducer, Effect: NoEffect, Why: alwaysSafe + "; order is kept by sequence numbers"},
	{Name: "delivery.timeout.ms", Type: TypeMillis, Roles: RoleProducer, Effect: NoEffect, Why: alwaysSafe},
	{Name: "max.block.ms", Type: TypeMillis, Roles: RoleProducer, Effect: NoEffect, Why: alwaysSafe},
	{Name: "transaction.timeout.ms", Type: TypeMillis, Roles: RoleProducer, Effect: NoEffect, Why: "transactions are bounded by heliograph's own rule"},
	{Name: "transactional.id", Type: TypeString, Roles: RoleProducer, Effect: NoEffect, Why: "transactional ids are MirrorMaker's, <group.id>-MirrorSourceConnector-<n>"},
	{Name: "partitioner.class", Type: TypeClass, Roles: RoleProducer, Effect: NoEffect, Why: "every record keeps its partition"},
	{Name: "partitioner.ignore.keys", Type: TypeBool, Roles: RoleProducer, Effect: NoEffect, Why: "every record keeps its partition"},
	{Name: "partitioner.adaptive.partitioning.enable", Type: TypeBool, Roles: RoleProducer, Effect: NoEffect, Why: "every record keeps its partition"},
	{Name: "partitioner.availability.timeout.ms", Type: TypeMillis, Roles: RoleProducer, Effect: NoEffect, Why: "every record keeps its partition"},
	{Name: "key.serializer", Type: TypeClass, Roles: RoleProducer, Effect: NoEffect, Why: bytesAreCopied},
	{Name: "value.serializer", Type: TypeClass, Roles: RoleProducer, Effect: NoEffect, Why: bytesAreCopied},
	{Name: "bootstrap.controllers", Type: TypeList, Roles: RoleAdmin, Effect: NoEffect, Why: "brokers are asked, not controllers"},
}
