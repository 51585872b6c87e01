package kafka

// Record is one decoded record. A nil Key or Value is null, which differs from empty.
type Record struct {
	Key, Value []byte
	Headers    []Header
	// Timestamp in milliseconds since the epoch; TimestampNone where the record has none.
	Timestamp int64
	// Offset in its partition; set on reading, ignored on writing.
	Offset int64
}

// TimestampNone is the timestamp of a record that carries none.
const TimestampNone int64 = -1

// Header is one record header. A nil Value is null.
type Header struct {
	Key   string
	Value []byte
}
