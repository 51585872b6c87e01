package mirror

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// ErrNotPosition is returned for keys in a positions topic that are well formed
// and not the position of a replicated partition: MirrorMaker's checkpoint and
// heartbeat connectors leave theirs there, and on a shared Connect cluster so
// does every other connector. Skip them.
var ErrNotPosition = errors.New("not the position of a replicated partition")

// PositionKey is the key of a position: which partition of which cluster.
type PositionKey struct {
	// Connector is [SourceConnector], or on a Connect cluster the name that the
	// user gave the connector.
	Connector string
	Cluster   ClusterAlias
	Topic     string // the source's name
	Partition int32
}

// AppendTo appends the key as Kafka Connect writes it. Connect finds keys by
// their exact bytes, so field order and escapes are part of the format.
func (k PositionKey) AppendTo(dst []byte) []byte {
	dst = appendJSONString(append(dst, '['), k.Connector)
	dst = appendJSONString(append(dst, `,{"cluster":`...), string(k.Cluster))
	dst = strconv.AppendInt(append(dst, `,"partition":`...), int64(k.Partition), 10)
	dst = appendJSONString(append(dst, `,"topic":`...), k.Topic)
	return append(dst, "}]"...)
}

// appendJSONString quotes s as Jackson does: only quotes, backslashes and
// control characters are escaped. encoding/json escapes more, even with HTML
// escaping off.
func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\b':
			dst = append(dst, `\b`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\f':
			dst = append(dst, `\f`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// DecodePositionKey reads a key of a positions topic in any field order. It
// returns [ErrNotPosition] for keys of other kinds and [ErrMalformed] for bytes
// that are no Connect key at all.
func DecodePositionKey(key []byte) (PositionKey, error) {
	var parts []json.RawMessage
	if err := decodeJSON(key, &parts); err != nil {
		return PositionKey{}, fmt.Errorf("position key: %w: %w", err, ErrMalformed)
	}
	if len(parts) != 2 {
		return PositionKey{}, fmt.Errorf("position key has %d elements, not 2: %w", len(parts), ErrMalformed)
	}
	var k PositionKey
	if err := decodeJSON(parts[0], &k.Connector); err != nil || isJSONNull(parts[0]) {
		return PositionKey{}, fmt.Errorf("position key: connector name is no string: %w", ErrMalformed)
	}
	// A map, because field names of a struct would match in any case.
	var fields map[string]json.RawMessage
	if err := decodeJSON(parts[1], &fields); err != nil {
		return PositionKey{}, fmt.Errorf("position key of connector %q: partition is no object: %w", k.Connector, ErrMalformed)
	}
	if len(fields) != 3 {
		return PositionKey{}, ErrNotPosition
	}
	var cluster, topic *string
	var partition *int32
	for _, f := range []struct {
		name string
		into any
	}{{"cluster", &cluster}, {"topic", &topic}, {"partition", &partition}} {
		raw, ok := fields[f.name]
		if !ok {
			return PositionKey{}, ErrNotPosition
		}
		if err := decodeJSON(raw, f.into); err != nil {
			return PositionKey{}, fmt.Errorf("position key of connector %q: field %q: %w", k.Connector, f.name, ErrMalformed)
		}
	}
	if cluster == nil || topic == nil || partition == nil || *partition < 0 {
		return PositionKey{}, fmt.Errorf("position key of connector %q: a field is null or negative: %w", k.Connector, ErrMalformed)
	}
	k.Cluster, k.Topic, k.Partition = ClusterAlias(*cluster), *topic, *partition
	return k, nil
}

// AppendPositionValue appends the value of a position. last is the last source
// offset that was replicated, not the next one.
func AppendPositionValue(dst []byte, last UpstreamOffset) []byte {
	dst = strconv.AppendInt(append(dst, `{"offset":`...), int64(last), 10)
	return append(dst, '}')
}

// DecodePositionValue reads the value of a position: the last replicated source
// offset. ok is false where nothing is stored: a tombstone, a missing, null or
// negative offset.
func DecodePositionValue(value []byte) (last UpstreamOffset, ok bool, err error) {
	if value == nil {
		return 0, false, nil
	}
	var fields map[string]json.RawMessage
	if err := decodeJSON(value, &fields); err != nil {
		return 0, false, fmt.Errorf("position value: %w: %w", err, ErrMalformed)
	}
	raw, present := fields["offset"]
	if !present || isJSONNull(raw) {
		return 0, false, nil
	}
	var offset int64
	if err := decodeJSON(raw, &offset); err != nil {
		return 0, false, fmt.Errorf("position value: offset %s is no integer: %w", raw, ErrMalformed)
	}
	if offset < 0 {
		return 0, false, nil
	}
	return UpstreamOffset(offset), true, nil
}

// decodeJSON decodes exactly one JSON value and nothing behind it.
func decodeJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func isJSONNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
