package kafka

import "strconv"

// Code is an error code of the Kafka protocol, as a broker sends it. It is an
// error; CodeNone is success and must not be returned as one: use [Code.Err].
type Code int16

// The codes by Kafka's own names (org.apache.kafka.common.protocol.Errors).
const (
	CodeUnknownServerError                 Code = -1
	CodeNone                               Code = 0
	CodeOffsetOutOfRange                   Code = 1
	CodeCorruptMessage                     Code = 2
	CodeUnknownTopicOrPartition            Code = 3
	CodeInvalidFetchSize                   Code = 4
	CodeLeaderNotAvailable                 Code = 5
	CodeNotLeaderOrFollower                Code = 6
	CodeRequestTimedOut                    Code = 7
	CodeBrokerNotAvailable                 Code = 8
	CodeReplicaNotAvailable                Code = 9
	CodeMessageTooLarge                    Code = 10
	CodeStaleControllerEpoch               Code = 11
	CodeOffsetMetadataTooLarge             Code = 12
	CodeNetworkException                   Code = 13
	CodeCoordinatorLoadInProgress          Code = 14
	CodeCoordinatorNotAvailable            Code = 15
	CodeNotCoordinator                     Code = 16
	CodeInvalidTopicException              Code = 17
	CodeRecordListTooLarge                 Code = 18
	CodeNotEnoughReplicas                  Code = 19
	CodeNotEnoughReplicasAfterAppend       Code = 20
	CodeInvalidRequiredAcks                Code = 21
	CodeIllegalGeneration                  Code = 22
	CodeInconsistentGroupProtocol          Code = 23
	CodeInvalidGroupID                     Code = 24
	CodeUnknownMemberID                    Code = 25
	CodeInvalidSessionTimeout              Code = 26
	CodeRebalanceInProgress                Code = 27
	CodeInvalidCommitOffsetSize            Code = 28
	CodeTopicAuthorizationFailed           Code = 29
	CodeGroupAuthorizationFailed           Code = 30
	CodeClusterAuthorizationFailed         Code = 31
	CodeInvalidTimestamp                   Code = 32
	CodeUnsupportedSASLMechanism           Code = 33
	CodeIllegalSASLState                   Code = 34
	CodeUnsupportedVersion                 Code = 35
	CodeTopicAlreadyExists                 Code = 36
	CodeInvalidPartitions                  Code = 37
	CodeInvalidReplicationFactor           Code = 38
	CodeInvalidReplicaAssignment           Code = 39
	CodeInvalidConfig                      Code = 40
	CodeNotController                      Code = 41
	CodeInvalidRequest                     Code = 42
	CodeUnsupportedForMessageFormat        Code = 43
	CodePolicyViolation                    Code = 44
	CodeOutOfOrderSequenceNumber           Code = 45
	CodeDuplicateSequenceNumber            Code = 46
	CodeInvalidProducerEpoch               Code = 47
	CodeInvalidTxnState                    Code = 48
	CodeInvalidProducerIDMapping           Code = 49
	CodeInvalidTransactionTimeout          Code = 50
	CodeConcurrentTransactions             Code = 51
	CodeTransactionCoordinatorFenced       Code = 52
	CodeTransactionalIDAuthorizationFailed Code = 53
	CodeSecurityDisabled                   Code = 54
	CodeOperationNotAttempted              Code = 55
	CodeKafkaStorageError                  Code = 56
	CodeLogDirNotFound                     Code = 57
	CodeSASLAuthenticationFailed           Code = 58
	CodeUnknownProducerID                  Code = 59
	CodeReassignmentInProgress             Code = 60
	CodeDelegationTokenAuthDisabled        Code = 61
	CodeDelegationTokenNotFound            Code = 62
	CodeDelegationTokenOwnerMismatch       Code = 63
	CodeDelegationTokenRequestNotAllowed   Code = 64
	CodeDelegationTokenAuthorizationFailed Code = 65
	CodeDelegationTokenExpired             Code = 66
	CodeInvalidPrincipalType               Code = 67
	CodeNonEmptyGroup                      Code = 68
	CodeGroupIDNotFound                    Code = 69
	CodeFetchSessionIDNotFound             Code = 70
	CodeInvalidFetchSessionEpoch           Code = 71
	CodeListenerNotFound                   Code = 72
	CodeTopicDeletionDisabled              Code = 73
	CodeFencedLeaderEpoch                  Code = 74
	CodeUnknownLeaderEpoch                 Code = 75
	CodeUnsupportedCompressionType         Code = 76
	CodeStaleBrokerEpoch                   Code = 77
	CodeOffsetNotAvailable                 Code = 78
	CodeMemberIDRequired                   Code = 79
	CodePreferredLeaderNotAvailable        Code = 80
	CodeGroupMaxSizeReached                Code = 81
	CodeFencedInstanceID                   Code = 82
	CodeEligibleLeadersNotAvailable        Code = 83
	CodeElectionNotNeeded                  Code = 84
	CodeNoReassignmentInProgress           Code = 85
	CodeGroupSubscribedToTopic             Code = 86
	CodeInvalidRecord                      Code = 87
	CodeUnstableOffsetCommit               Code = 88
	CodeThrottlingQuotaExceeded            Code = 89
	CodeProducerFenced                     Code = 90
	CodeResourceNotFound                   Code = 91
	CodeDuplicateResource                  Code = 92
	CodeUnacceptableCredential             Code = 93
	CodeInconsistentVoterSet               Code = 94
	CodeInvalidUpdateVersion               Code = 95
	CodeFeatureUpdateFailed                Code = 96
	CodePrincipalDeserializationFailure    Code = 97
	CodeSnapshotNotFound                   Code = 98
	CodePositionOutOfRange                 Code = 99
	CodeUnknownTopicID                     Code = 100
	CodeDuplicateBrokerRegistration        Code = 101
	CodeBrokerIDNotRegistered              Code = 102
	CodeInconsistentTopicID                Code = 103
	CodeInconsistentClusterID              Code = 104
	CodeTransactionalIDNotFound            Code = 105
	CodeFetchSessionTopicIDError           Code = 106
	CodeIneligibleReplica                  Code = 107
	CodeNewLeaderElected                   Code = 108
	CodeOffsetMovedToTieredStorage         Code = 109
	CodeFencedMemberEpoch                  Code = 110
	CodeUnreleasedInstanceID               Code = 111
	CodeUnsupportedAssignor                Code = 112
	CodeStaleMemberEpoch                   Code = 113
	CodeMismatchedEndpointType             Code = 114
	CodeUnsupportedEndpointType            Code = 115
	CodeUnknownControllerID                Code = 116
	CodeUnknownSubscriptionID              Code = 117
	CodeTelemetryTooLarge                  Code = 118
	CodeInvalidRegistration                Code = 119
	CodeTransactionAbortable               Code = 120
	CodeInvalidRecordState                 Code = 121
	CodeShareSessionNotFound               Code = 122
	CodeInvalidShareSessionEpoch           Code = 123
	CodeFencedStateEpoch                   Code = 124
	CodeInvalidVoterKey                    Code = 125
	CodeDuplicateVoter                     Code = 126
	CodeVoterNotFound                      Code = 127
)

var codes = map[Code]struct {
	name  string
	class Class
}{
	CodeUnknownServerError:                 {"UNKNOWN_SERVER_ERROR", ClassRetry},
	CodeNone:                               {"NONE", 0},
	CodeOffsetOutOfRange:                   {"OFFSET_OUT_OF_RANGE", ClassOperator},
	CodeCorruptMessage:                     {"CORRUPT_MESSAGE", ClassData},
	CodeUnknownTopicOrPartition:            {"UNKNOWN_TOPIC_OR_PARTITION", ClassRefresh},
	CodeInvalidFetchSize:                   {"INVALID_FETCH_SIZE", ClassBug},
	CodeLeaderNotAvailable:                 {"LEADER_NOT_AVAILABLE", ClassRefresh},
	CodeNotLeaderOrFollower:                {"NOT_LEADER_OR_FOLLOWER", ClassRefresh},
	CodeRequestTimedOut:                    {"REQUEST_TIMED_OUT", ClassRetry},
	CodeBrokerNotAvailable:                 {"BROKER_NOT_AVAILABLE", ClassRefresh},
	CodeReplicaNotAvailable:                {"REPLICA_NOT_AVAILABLE", ClassRefresh},
	CodeMessageTooLarge:                    {"MESSAGE_TOO_LARGE", ClassData},
	CodeStaleControllerEpoch:               {"STALE_CONTROLLER_EPOCH", ClassRetry},
	CodeOffsetMetadataTooLarge:             {"OFFSET_METADATA_TOO_LARGE", ClassOperator},
	CodeNetworkException:                   {"NETWORK_EXCEPTION", ClassRetry},
	CodeCoordinatorLoadInProgress:          {"COORDINATOR_LOAD_IN_PROGRESS", ClassRetry},
	CodeCoordinatorNotAvailable:            {"COORDINATOR_NOT_AVAILABLE", ClassRetry},
	CodeNotCoordinator:                     {"NOT_COORDINATOR", ClassRetry},
	CodeInvalidTopicException:              {"INVALID_TOPIC_EXCEPTION", ClassOperator},
	CodeRecordListTooLarge:                 {"RECORD_LIST_TOO_LARGE", ClassData},
	CodeNotEnoughReplicas:                  {"NOT_ENOUGH_REPLICAS", ClassRetry},
	CodeNotEnoughReplicasAfterAppend:       {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", ClassRetry},
	CodeInvalidRequiredAcks:                {"INVALID_REQUIRED_ACKS", ClassBug},
	CodeIllegalGeneration:                  {"ILLEGAL_GENERATION", ClassFence},
	CodeInconsistentGroupProtocol:          {"INCONSISTENT_GROUP_PROTOCOL", ClassOperator},
	CodeInvalidGroupID:                     {"INVALID_GROUP_ID", ClassOperator},
	CodeUnknownMemberID:                    {"UNKNOWN_MEMBER_ID", ClassFence},
	CodeInvalidSessionTimeout:              {"INVALID_SESSION_TIMEOUT", ClassOperator},
	CodeRebalanceInProgress:                {"REBALANCE_IN_PROGRESS", ClassRetry},
	CodeInvalidCommitOffsetSize:            {"INVALID_COMMIT_OFFSET_SIZE", ClassOperator},
	CodeTopicAuthorizationFailed:           {"TOPIC_AUTHORIZATION_FAILED", ClassOperator},
	CodeGroupAuthorizationFailed:           {"GROUP_AUTHORIZATION_FAILED", ClassOperator},
	CodeClusterAuthorizationFailed:         {"CLUSTER_AUTHORIZATION_FAILED", ClassOperator},
	CodeInvalidTimestamp:                   {"INVALID_TIMESTAMP", ClassData},
	CodeUnsupportedSASLMechanism:           {"UNSUPPORTED_SASL_MECHANISM", ClassOperator},
	CodeIllegalSASLState:                   {"ILLEGAL_SASL_STATE", ClassOperator},
	CodeUnsupportedVersion:                 {"UNSUPPORTED_VERSION", ClassOperator},
	CodeTopicAlreadyExists:                 {"TOPIC_ALREADY_EXISTS", ClassOperator},
	CodeInvalidPartitions:                  {"INVALID_PARTITIONS", ClassOperator},
	CodeInvalidReplicationFactor:           {"INVALID_REPLICATION_FACTOR", ClassOperator},
	CodeInvalidReplicaAssignment:           {"INVALID_REPLICA_ASSIGNMENT", ClassOperator},
	CodeInvalidConfig:                      {"INVALID_CONFIG", ClassOperator},
	CodeNotController:                      {"NOT_CONTROLLER", ClassRefresh},
	CodeInvalidRequest:                     {"INVALID_REQUEST", ClassBug},
	CodeUnsupportedForMessageFormat:        {"UNSUPPORTED_FOR_MESSAGE_FORMAT", ClassOperator},
	CodePolicyViolation:                    {"POLICY_VIOLATION", ClassOperator},
	CodeOutOfOrderSequenceNumber:           {"OUT_OF_ORDER_SEQUENCE_NUMBER", ClassBug},
	CodeDuplicateSequenceNumber:            {"DUPLICATE_SEQUENCE_NUMBER", ClassBug},
	CodeInvalidProducerEpoch:               {"INVALID_PRODUCER_EPOCH", ClassFence},
	CodeInvalidTxnState:                    {"INVALID_TXN_STATE", ClassFence},
	CodeInvalidProducerIDMapping:           {"INVALID_PRODUCER_ID_MAPPING", ClassFence},
	CodeInvalidTransactionTimeout:          {"INVALID_TRANSACTION_TIMEOUT", ClassOperator},
	CodeConcurrentTransactions:             {"CONCURRENT_TRANSACTIONS", ClassRetry},
	CodeTransactionCoordinatorFenced:       {"TRANSACTION_COORDINATOR_FENCED", ClassRetry},
	CodeTransactionalIDAuthorizationFailed: {"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", ClassOperator},
	CodeSecurityDisabled:                   {"SECURITY_DISABLED", ClassOperator},
	CodeOperationNotAttempted:              {"OPERATION_NOT_ATTEMPTED", ClassRetry},
	CodeKafkaStorageError:                  {"KAFKA_STORAGE_ERROR", ClassRefresh},
	CodeLogDirNotFound:                     {"LOG_DIR_NOT_FOUND", ClassOperator},
	CodeSASLAuthenticationFailed:           {"SASL_AUTHENTICATION_FAILED", ClassOperator},
	CodeUnknownProducerID:                  {"UNKNOWN_PRODUCER_ID", ClassBug},
	CodeReassignmentInProgress:             {"REASSIGNMENT_IN_PROGRESS", ClassRetry},
	CodeDelegationTokenAuthDisabled:        {"DELEGATION_TOKEN_AUTH_DISABLED", ClassOperator},
	CodeDelegationTokenNotFound:            {"DELEGATION_TOKEN_NOT_FOUND", ClassOperator},
	CodeDelegationTokenOwnerMismatch:       {"DELEGATION_TOKEN_OWNER_MISMATCH", ClassOperator},
	CodeDelegationTokenRequestNotAllowed:   {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", ClassOperator},
	CodeDelegationTokenAuthorizationFailed: {"DELEGATION_TOKEN_AUTHORIZATION_FAILED", ClassOperator},
	CodeDelegationTokenExpired:             {"DELEGATION_TOKEN_EXPIRED", ClassOperator},
	CodeInvalidPrincipalType:               {"INVALID_PRINCIPAL_TYPE", ClassOperator},
	CodeNonEmptyGroup:                      {"NON_EMPTY_GROUP", ClassOperator},
	CodeGroupIDNotFound:                    {"GROUP_ID_NOT_FOUND", ClassOperator},
	CodeFetchSessionIDNotFound:             {"FETCH_SESSION_ID_NOT_FOUND", ClassRetry},
	CodeInvalidFetchSessionEpoch:           {"INVALID_FETCH_SESSION_EPOCH", ClassRetry},
	CodeListenerNotFound:                   {"LISTENER_NOT_FOUND", ClassRefresh},
	CodeTopicDeletionDisabled:              {"TOPIC_DELETION_DISABLED", ClassOperator},
	CodeFencedLeaderEpoch:                  {"FENCED_LEADER_EPOCH", ClassRefresh},
	CodeUnknownLeaderEpoch:                 {"UNKNOWN_LEADER_EPOCH", ClassRetry},
	CodeUnsupportedCompressionType:         {"UNSUPPORTED_COMPRESSION_TYPE", ClassData},
	CodeStaleBrokerEpoch:                   {"STALE_BROKER_EPOCH", ClassRetry},
	CodeOffsetNotAvailable:                 {"OFFSET_NOT_AVAILABLE", ClassRetry},
	CodeMemberIDRequired:                   {"MEMBER_ID_REQUIRED", ClassRetry},
	CodePreferredLeaderNotAvailable:        {"PREFERRED_LEADER_NOT_AVAILABLE", ClassRetry},
	CodeGroupMaxSizeReached:                {"GROUP_MAX_SIZE_REACHED", ClassOperator},
	CodeFencedInstanceID:                   {"FENCED_INSTANCE_ID", ClassFence},
	CodeEligibleLeadersNotAvailable:        {"ELIGIBLE_LEADERS_NOT_AVAILABLE", ClassRetry},
	CodeElectionNotNeeded:                  {"ELECTION_NOT_NEEDED", ClassRetry},
	CodeNoReassignmentInProgress:           {"NO_REASSIGNMENT_IN_PROGRESS", ClassOperator},
	CodeGroupSubscribedToTopic:             {"GROUP_SUBSCRIBED_TO_TOPIC", ClassOperator},
	CodeInvalidRecord:                      {"INVALID_RECORD", ClassData},
	CodeUnstableOffsetCommit:               {"UNSTABLE_OFFSET_COMMIT", ClassRetry},
	CodeThrottlingQuotaExceeded:            {"THROTTLING_QUOTA_EXCEEDED", ClassRetry},
	CodeProducerFenced:                     {"PRODUCER_FENCED", ClassFence},
	CodeResourceNotFound:                   {"RESOURCE_NOT_FOUND", ClassOperator},
	CodeDuplicateResource:                  {"DUPLICATE_RESOURCE", ClassOperator},
	CodeUnacceptableCredential:             {"UNACCEPTABLE_CREDENTIAL", ClassOperator},
	CodeInconsistentVoterSet:               {"INCONSISTENT_VOTER_SET", ClassOperator},
	CodeInvalidUpdateVersion:               {"INVALID_UPDATE_VERSION", ClassOperator},
	CodeFeatureUpdateFailed:                {"FEATURE_UPDATE_FAILED", ClassOperator},
	CodePrincipalDeserializationFailure:    {"PRINCIPAL_DESERIALIZATION_FAILURE", ClassOperator},
	CodeSnapshotNotFound:                   {"SNAPSHOT_NOT_FOUND", ClassRetry},
	CodePositionOutOfRange:                 {"POSITION_OUT_OF_RANGE", ClassOperator},
	CodeUnknownTopicID:                     {"UNKNOWN_TOPIC_ID", ClassRefresh},
	CodeDuplicateBrokerRegistration:        {"DUPLICATE_BROKER_REGISTRATION", ClassOperator},
	CodeBrokerIDNotRegistered:              {"BROKER_ID_NOT_REGISTERED", ClassRefresh},
	CodeInconsistentTopicID:                {"INCONSISTENT_TOPIC_ID", ClassRefresh},
	CodeInconsistentClusterID:              {"INCONSISTENT_CLUSTER_ID", ClassOperator},
	CodeTransactionalIDNotFound:            {"TRANSACTIONAL_ID_NOT_FOUND", ClassOperator},
	CodeFetchSessionTopicIDError:           {"FETCH_SESSION_TOPIC_ID_ERROR", ClassRetry},
	CodeIneligibleReplica:                  {"INELIGIBLE_REPLICA", ClassRetry},
	CodeNewLeaderElected:                   {"NEW_LEADER_ELECTED", ClassRefresh},
	CodeOffsetMovedToTieredStorage:         {"OFFSET_MOVED_TO_TIERED_STORAGE", ClassRetry},
	CodeFencedMemberEpoch:                  {"FENCED_MEMBER_EPOCH", ClassFence},
	CodeUnreleasedInstanceID:               {"UNRELEASED_INSTANCE_ID", ClassRetry},
	CodeUnsupportedAssignor:                {"UNSUPPORTED_ASSIGNOR", ClassOperator},
	CodeStaleMemberEpoch:                   {"STALE_MEMBER_EPOCH", ClassFence},
	CodeMismatchedEndpointType:             {"MISMATCHED_ENDPOINT_TYPE", ClassOperator},
	CodeUnsupportedEndpointType:            {"UNSUPPORTED_ENDPOINT_TYPE", ClassOperator},
	CodeUnknownControllerID:                {"UNKNOWN_CONTROLLER_ID", ClassRefresh},
	CodeUnknownSubscriptionID:              {"UNKNOWN_SUBSCRIPTION_ID", ClassOperator},
	CodeTelemetryTooLarge:                  {"TELEMETRY_TOO_LARGE", ClassOperator},
	CodeInvalidRegistration:                {"INVALID_REGISTRATION", ClassOperator},
	CodeTransactionAbortable:               {"TRANSACTION_ABORTABLE", ClassRetry},
	CodeInvalidRecordState:                 {"INVALID_RECORD_STATE", ClassOperator},
	CodeShareSessionNotFound:               {"SHARE_SESSION_NOT_FOUND", ClassRetry},
	CodeInvalidShareSessionEpoch:           {"INVALID_SHARE_SESSION_EPOCH", ClassRetry},
	CodeFencedStateEpoch:                   {"FENCED_STATE_EPOCH", ClassFence},
	CodeInvalidVoterKey:                    {"INVALID_VOTER_KEY", ClassOperator},
	CodeDuplicateVoter:                     {"DUPLICATE_VOTER", ClassOperator},
	CodeVoterNotFound:                      {"VOTER_NOT_FOUND", ClassOperator},
}

// String is Kafka's name of the code; unknown codes are CODE_n.
func (c Code) String() string {
	if k, ok := codes[c]; ok {
		return k.name
	}
	return "CODE_" + strconv.Itoa(int(c))
}

// Error is the same as String, so that a code can be an error's cause.
func (c Code) Error() string { return c.String() }

// Err is nil for CodeNone and the code itself otherwise.
func (c Code) Err() error {
	if c == CodeNone {
		return nil
	}
	return c
}

// Class says what to do about the code. A code this build does not know is ClassOperator.
func (c Code) Class() Class {
	if k, ok := codes[c]; ok {
		return k.class
	}
	return ClassOperator
}
