package config

import (
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Deployment is what a file means: clusters, the flows between them, and the
// process that runs them. It is immutable; Problems says what is wrong with it,
// and with an error among them nothing else in it may be relied on.
type Deployment struct {
	// Aliases are the clusters in the file's order.
	Aliases  []mirror.ClusterAlias
	Clusters map[mirror.ClusterAlias]Cluster
	// Flows are the enabled pairs and those that only write heartbeats, in the
	// order of the aliases.
	Flows    []Flow
	Process  Process
	Problems Problems
}

// Err is nil unless the file is refused; then it names every error of the file.
func (d *Deployment) Err() error { return d.Problems.Err() }

// Targeting are the flows into the named clusters, which is what MirrorMaker's
// --clusters asks for. No names means all flows.
func (d *Deployment) Targeting(targets ...mirror.ClusterAlias) []Flow {
	var flows []Flow
	for i := range d.Flows {
		if len(targets) == 0 || slices.Contains(targets, d.Flows[i].ID.Target) {
			flows = append(flows, d.Flows[i])
		}
	}
	return flows
}

// Process holds what concerns the whole process.
type Process struct {
	MemoryBytes    int64  // bound of all batches in memory
	BytesPerSecond int64  // cap of all flows together; zero: none
	MetricsAddress string // host:port of /metrics and /healthz; empty: off
	Strict         bool
}

// Cluster is one Kafka cluster of the deployment.
type Cluster struct {
	Alias mirror.ClusterAlias
	// Connection is the cluster's plain one: no client layer on top.
	Connection
	BytesPerSecond int64 // cap of all flows from or into it; zero: none
	Origin         Origin

	properties map[string]string
}

// Properties are the cluster's keys without its alias, with references replaced: what a
// [Resource] needs to mean the same cluster. They hold secrets.
func (c Cluster) Properties() map[string]string { return c.properties }

// Flow is one ordered pair of clusters, resolved and with every default applied.
type Flow struct {
	ID mirror.FlowID
	// Enabled copies topics and follows groups. A flow without it only writes
	// heartbeats.
	Enabled bool

	Policy    mirror.ReplicationPolicy
	Naming    Naming
	Selection mirror.TopicSelection
	Groups    mirror.GroupFilter
	Configs   mirror.ConfigFilter

	Topics      Topics
	Heartbeats  Heartbeats
	OffsetSyncs OffsetSyncs
	Checkpoints Checkpoints
	Positions   Positions
	Data        Data
	Losses      Losses
	Clients     Clients

	ExactlyOnce ExactlyOnce
	TasksMax    Opt[int32] // MirrorMaker's parallelism; a hint at most
	// BytesPerSecond caps this flow; zero is no cap.
	BytesPerSecond int64

	effective []Setting
}

// Naming is how topics are called on the target.
type Naming struct {
	Identity          bool
	Separator         string
	InternalSeparator string
	// Baseline applies the rules of MirrorMaker up to 3.9 to internal topics
	// and the default of topics.exclude.
	Baseline bool
}

// Opt is a value that a file may leave unsaid.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Or is the value, or def where the file is silent.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.Value
	}
	return def
}

// Every is how often a job runs. An Interval of zero means that it is off. Set
// says that the file demands the interval; where it does not, Interval is
// heliograph's default.
type Every struct {
	Interval time.Duration
	Set      bool
}

// On says whether the job runs at all.
func (e Every) On() bool { return e.Interval > 0 }

// String is "every 10m", or "off".
func (e Every) String() string {
	if !e.On() {
		return "off"
	}
	return "every " + humanDuration(e.Interval)
}

// Topics says how remote topics are found, made and kept in step.
type Topics struct {
	Refresh           Every
	SyncConfigs       Every
	SyncACLs          Every
	ReplicationFactor int16 // -1: the target's default
	// DefaultsFromSource copies the source's defaults explicitly (use.defaults.from=source).
	DefaultsFromSource bool
	// HoldDeletions is how long a synced setting that can delete data on the
	// target is held back unless accepted; zero applies it at once.
	HoldDeletions time.Duration
}

// Heartbeats says whether and how often this pair writes heartbeats to the target.
type Heartbeats struct {
	Every             Every
	ReplicationFactor int16
}

// OffsetSyncs says where and how densely offset syncs are written.
type OffsetSyncs struct {
	Enabled           bool
	OnSource          bool // offset-syncs.topic.location=source
	LagMax            int64
	ReplicationFactor int16
}

// Checkpoints says how groups are followed.
type Checkpoints struct {
	Emit              Every
	RefreshGroups     Every
	SyncGroups        Every // off: group offsets are not written to the target
	SyncDeletions     bool  // groups deleted on the source are deleted on the target
	ReplicationFactor int16
}

// Positions says where and how often positions are kept: MirrorMaker's source
// offsets.
type Positions struct {
	GroupID           string // the worker group, "<source>-mm2"
	ProgressGroup     string // on the source; empty: off
	Topic             string // "mm2-offsets.<source>.internal"
	Partitions        int32  // of a topic made by us; -1: the target's default
	ReplicationFactor int16  // -1: the target's default
	Commit            Every
}

// Losses says what happens where records cannot be copied, or may have been
// already.
type Losses struct {
	Policy
	// Topics are policies of some source topics. The first that names a topic
	// stands in the flow's place.
	Topics []TopicPolicy
	// DeadLetters is the topic on the target that keeps poison.
	DeadLetters string
}

// Policy is what happens to a partition in trouble.
type Policy struct {
	Poison        Poison
	Missing       MissingPosition
	Overtaken     OvertakenRecords
	ForeignWriter ForeignWriter

	SourceRecreated, TargetRecreated Recreated
}

// Recreated is what to do where a topic was deleted and made again.
type Recreated string

// The answers to a topic that was made again. Either way it is recorded.
const (
	RecreatedPark  Recreated = "park"
	RecreatedStart Recreated = "start" // copy the source's from its start
)

// TopicPolicy is the policy of the source topics that match.
type TopicPolicy struct {
	Name   string
	Topics mirror.Patterns
	Policy
}

// MissingPosition is what to do where the target holds data and no position is known.
type MissingPosition string

// The answers to a missing position.
const (
	MissingPark  MissingPosition = "park"
	MissingScan  MissingPosition = "scan"
	MissingEnd   MissingPosition = "end"
	MissingStart MissingPosition = "start"
)

// OvertakenRecords is what to do where the source's retention has removed
// records before they were read.
type OvertakenRecords string

// The answers to overtaken records. Either way the loss is recorded first.
const (
	OvertakenContinue OvertakenRecords = "continue" // go on behind the gap
	OvertakenPark     OvertakenRecords = "park"
)

// ForeignWriter is what to do where others have written to a copy.
type ForeignWriter string

// The answers to a foreign writer.
const (
	ForeignPark ForeignWriter = "park"
	ForeignNote ForeignWriter = "note" // say so and go on behind their records
)

// Poison is what happens to a batch that the target refuses for good.
type Poison string

// The policies for a refused batch.
const (
	PoisonStop          Poison = "stop"            // its partition parks
	PoisonSkipAndRecord Poison = "skip-and-record" // it is recorded, the partition goes on
	PoisonDeadLetter    Poison = "dead-letter"     // it is kept in a topic and recorded, the partition goes on
)

// Data says how records are read and written.
type Data struct {
	Isolation kafka.Isolation
	// StartAtLatest starts partitions without a position at their end.
	StartAtLatest     bool
	FetchMaxBytes     Opt[int32]
	PartitionMaxBytes Opt[int32]
	FetchMaxWait      Opt[time.Duration]
	MaxRequestBytes   Opt[int32]         // of a produce request
	RequestTimeout    Opt[time.Duration] // of produce requests
	// Compression is the codec to write with: "none", "gzip", "snappy", "lz4"
	// or "zstd". Unset keeps each batch as it is.
	Compression Opt[string]
}

// ExactlyOnce is what <target>.exactly.once.source.support says.
type ExactlyOnce string

// The values of exactly.once.source.support.
const (
	ExactlyOnceDisabled  ExactlyOnce = "disabled"
	ExactlyOncePreparing ExactlyOnce = "preparing"
	ExactlyOnceEnabled   ExactlyOnce = "enabled"
)

// Clients are the flow's resolved client settings, one per role as MirrorMaker
// layers them.
type Clients struct {
	SourceConsumer Client // reads records; reads offset syncs kept on the source
	SourceAdmin    Client
	SourceProducer Client // writes offset syncs kept on the source
	TargetConsumer Client // reads checkpoints; reads offset syncs kept on the target
	TargetAdmin    Client
	TargetProducer Client // writes offset syncs kept on the target
	RecordProducer Client // writes records, heartbeats, checkpoints
	Worker         Client // positions and the lane group, on the target
}

// Client is one role's connection and tuning.
type Client struct {
	Connection
	ClientID       string // the user's part; empty where the file is silent
	Rack           string
	RequestTimeout Opt[time.Duration]
	MetadataMaxAge Opt[time.Duration]
	SetupTimeout   Opt[time.Duration]
}

// Connection is how to reach a cluster and who to be there.
type Connection struct {
	BootstrapServers []string
	Protocol         Protocol
	TLS              *TLS  // nil without TLS
	SASL             *SASL // nil without a login
}

// Protocol is security.protocol.
type Protocol string

// The four protocols.
const (
	Plaintext     Protocol = "PLAINTEXT"
	SSL           Protocol = "SSL"
	SASLPlaintext Protocol = "SASL_PLAINTEXT"
	SASLSSL       Protocol = "SASL_SSL"
)

// UsesTLS says whether connections are encrypted.
func (p Protocol) UsesTLS() bool { return p == SSL || p == SASLSSL }

// UsesSASL says whether connections log in.
func (p Protocol) UsesSASL() bool { return p == SASLPlaintext || p == SASLSSL }

// TLS describes the material of a TLS connection; files are loaded elsewhere.
type TLS struct {
	Truststore Store // zero: the system's certificate authorities
	Keystore   Store // zero: no client certificate
	// VerifyHostname is false only where ssl.endpoint.identification.algorithm is empty.
	VerifyHostname bool
	MinVersion     string // "TLSv1.2" or "TLSv1.3"
	MaxVersion     string
}

// Store is a trust store or a key store: a file, or PEM text.
type Store struct {
	Type        string // as the file says: "JKS", "PKCS12", "PEM"; the content decides
	Location    string // path; empty where the text is inline
	Password    Secret
	Certificate string // PEM: trusted certificates, or the client's chain
	Key         Secret // PEM: the client's private key
	KeyPassword Secret
}

// IsZero says that no store is given.
func (s Store) IsZero() bool { return s.Location == "" && s.Certificate == "" && s.Key.IsZero() }

// SASL is a login: a mechanism and its credential.
type SASL struct {
	Mechanism  string // "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"
	Credential Credential
}

// Credential is one of [Plain], [Scram], [OAuth], [Kerberos] and [MSKIAM].
type Credential interface{ credential() }

// Plain is a user name and a password.
type Plain struct {
	Username string
	Password Secret
}

// Scram is a user name and a password for SCRAM, or a delegation token.
type Scram struct {
	Username  string
	Password  Secret
	TokenAuth bool
}

// OAuth is how to obtain a bearer token by the client credentials grant, or
// from a file.
type OAuth struct {
	TokenEndpoint string
	TokenFile     string // a file: URL in the token endpoint's place
	ClientID      string
	ClientSecret  Secret
	Scope         string
	Extensions    map[string]string
	// TLS holds ssl.* options of the JAAS entry, for the token endpoint.
	TLS map[string]string
}

// Kerberos is a principal with a keytab.
type Kerberos struct {
	ServiceName string
	Principal   string
	Keytab      string
}

// MSKIAM is a login by AWS's signatures, with the credentials of the process's
// environment.
type MSKIAM struct{}

func (Plain) credential()    {}
func (Scram) credential()    {}
func (OAuth) credential()    {}
func (Kerberos) credential() {}
func (MSKIAM) credential()   {}

// Setting is one effective key of a flow for people: secrets hidden,
// references kept.
type Setting struct {
	Key    string // as the flow sees it, for example "source.consumer.fetch.max.bytes"
	Value  string
	Origin Origin
}

// Effective lists what the flow runs with and where each value comes from,
// ordered by key.
func (f *Flow) Effective() []Setting { return f.effective }
