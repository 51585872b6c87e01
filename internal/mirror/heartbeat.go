package mirror

import "fmt"

// Heartbeat says that a flow's target could be written to at a time. Copies of
// it further downstream tell the topology.
type Heartbeat struct {
	Source, Target ClusterAlias
	// Timestamp in milliseconds since the epoch; the record carries the same.
	Timestamp int64
}

// AppendKey appends the record's key to dst.
func (h Heartbeat) AppendKey(dst []byte) []byte {
	return appendString(appendString(dst, string(h.Source)), string(h.Target))
}

// AppendValue appends the record's value to dst.
func (h Heartbeat) AppendValue(dst []byte) []byte {
	return appendInt64(appendInt16(dst, recordVersion), h.Timestamp)
}

// DecodeHeartbeat reads a record of a heartbeats topic.
func DecodeHeartbeat(key, value []byte) (Heartbeat, error) {
	k := reader{b: key}
	h := Heartbeat{
		Source: ClusterAlias(k.string("sourceClusterAlias")),
		Target: ClusterAlias(k.string("targetClusterAlias")),
	}
	if k.err != nil {
		return Heartbeat{}, fmt.Errorf("heartbeat key: %w", k.err)
	}
	v := reader{b: value}
	v.version()
	h.Timestamp = v.int64("timestamp")
	if v.err != nil {
		return Heartbeat{}, fmt.Errorf("heartbeat %s->%s: %w", h.Source, h.Target, v.err)
	}
	return h, nil
}

// String prints the heartbeat as Kafka's HeartbeatFormatter does.
func (h Heartbeat) String() string {
	return fmt.Sprintf("Heartbeat{sourceClusterAlias=%s, targetClusterAlias=%s, timestamp=%d}",
		h.Source, h.Target, h.Timestamp)
}
