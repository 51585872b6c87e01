package kafka

// TopicDetail is what Metadata tells of a topic.
type TopicDetail struct {
	Name       string
	ID         TopicID
	Internal   bool // flagged by the broker: __consumer_offsets, __transaction_state
	Code       Code // why the topic could not be described; CodeNone otherwise
	Partitions []PartitionDetail
}

// PartitionDetail is what Metadata tells of a partition.
type PartitionDetail struct {
	Partition   int32
	Leader      int32 // NoNode while leaderless
	LeaderEpoch LeaderEpoch
	Replicas    []int32
	ISR         []int32
	Code        Code
}

// BrokerDetail is one broker as Metadata lists it.
type BrokerDetail struct {
	ID   int32
	Host string
	Port int32
	Rack string
}

// NewTopic asks for a topic. A ReplicationFactor of -1 is the broker's default.
type NewTopic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	Configs           map[string]string
}

// ConfigSource says where a config's value comes from (DescribeConfigs v1 and later).
type ConfigSource int8

// The sources, with their wire values.
const (
	ConfigUnknown              ConfigSource = 0
	ConfigTopic                ConfigSource = 1
	ConfigDynamicBroker        ConfigSource = 2
	ConfigDynamicDefaultBroker ConfigSource = 3
	ConfigStaticBroker         ConfigSource = 4
	ConfigDefault              ConfigSource = 5
	ConfigDynamicBrokerLogger  ConfigSource = 6
)

// ConfigEntry is one config of a topic as DescribeConfigs tells it.
type ConfigEntry struct {
	Name      string
	Value     string
	Null      bool // no value told: sensitive, or unset
	Source    ConfigSource
	ReadOnly  bool
	Sensitive bool
}

// TopicConfigs is the answer for one topic: its entries, or why there are none.
type TopicConfigs struct {
	Entries []ConfigEntry
	Err     error
}

// ConfigChange sets one topic config, or deletes the topic's override of it.
type ConfigChange struct {
	Name   string
	Value  string // ignored when Delete
	Delete bool
}

// ACL is one binding. Names are Kafka's upper-case ones: ResourceType "TOPIC",
// PatternType "LITERAL", Operation "READ", Permission "ALLOW".
type ACL struct {
	ResourceType string
	ResourceName string
	PatternType  string
	Principal    string
	Host         string
	Operation    string
	Permission   string
}

// ScramUser is a name with SCRAM credentials, and for which mechanisms:
// "SCRAM-SHA-256", "SCRAM-SHA-512".
type ScramUser struct {
	Name       string
	Mechanisms []string
}

// GroupListing is one row of ListGroups. GroupType is empty on brokers before 3.8 (KIP-848).
type GroupListing struct {
	Group        string
	ProtocolType string
	State        string
	GroupType    string // "classic", "consumer", "share", "streams", or ""
}

// GroupState is a group's state in Kafka's words, upper case: EMPTY, DEAD,
// STABLE, PREPARING_REBALANCE, COMPLETING_REBALANCE, ASSIGNING, RECONCILING.
type GroupState string

// The two states in which a group's offsets may be written from outside.
const (
	GroupEmpty GroupState = "EMPTY"
	GroupDead  GroupState = "DEAD"
)

// GroupDescription is one described group. A group the cluster does not know is GroupDead.
type GroupDescription struct {
	Group        string
	State        GroupState
	ProtocolType string
	Members      int
	Clients      []string // the members, as "client id at host"
	Err          error
}

// GroupOffset is one committed offset of a group. Offset is the next record to
// read; a negative one means that nothing is committed.
type GroupOffset struct {
	TopicPartition
	Offset      int64
	LeaderEpoch LeaderEpoch
	Metadata    string
	Err         error
}

// GroupOffsets is the answer for one group: its offsets, or why there are none.
type GroupOffsets struct {
	Offsets []GroupOffset
	Err     error
}

// OffsetAt names a position in a partition by meaning.
type OffsetAt int64

// The positions ListOffsets knows by name, with their wire values.
const (
	Latest   OffsetAt = -1 // log end (or last stable offset under ReadCommitted)
	Earliest OffsetAt = -2
)

// PartitionOffset is one answer of ListOffsets or OffsetForLeaderEpoch.
type PartitionOffset struct {
	Offset      int64
	LeaderEpoch LeaderEpoch
	Err         error
}

// Features is what a cluster can do, learnt at connecting.
type Features struct {
	ClusterID string
	// Version is the newest release whose requests all brokers speak, for people: "3.9".
	Version string
	// Brokers is how many brokers are up.
	Brokers int
	// TransactionVersion is the finalized feature transaction.version; 2 is KIP-890's protocol.
	TransactionVersion int16
	// TopicIDs says that Fetch and Produce name topics by id (2.8 and later).
	TopicIDs bool
	// IncrementalAlterConfigs is there from 2.3 on.
	IncrementalAlterConfigs bool
	// Transactions says that InitProducerId, AddPartitionsToTxn and EndTxn are served.
	Transactions bool
}
