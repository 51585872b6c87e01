package offsets

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// ChunkRuns is how many runs one record of the offset map holds.
const ChunkRuns = 256

// ChunkKey names a chunk of a partition's map in mm2-offset-runs.<source>.internal.
type ChunkKey struct {
	Topic     string
	TopicID   kafka.TopicID // of the source topic; zero where the cluster does not tell
	Partition int32
	Chunk     int64 // AnchorsChunk, or a chunk of runs
}

// AnchorsChunk is the number under which a map's anchors are stored.
const AnchorsChunk = -1

type chunkKeyJSON struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId,omitempty"`
	Partition int32  `json:"partition"`
	Chunk     int64  `json:"chunk"`
}

// AppendTo appends the key's bytes.
func (k ChunkKey) AppendTo(dst []byte) []byte {
	b, err := json.Marshal(chunkKeyJSON{k.Topic, k.TopicID.String(), k.Partition, k.Chunk})
	if err != nil {
		panic("offsets: strings and numbers always encode")
	}
	return append(dst, b...)
}

// DecodeChunkKey reads a key.
func DecodeChunkKey(key []byte) (ChunkKey, error) {
	var j chunkKeyJSON
	if err := json.Unmarshal(key, &j); err != nil {
		return ChunkKey{}, fmt.Errorf("offset map key: %w", err)
	}
	if j.Partition < 0 || j.Chunk < AnchorsChunk {
		return ChunkKey{}, fmt.Errorf("offset map key: partition %d, chunk %d", j.Partition, j.Chunk)
	}
	return ChunkKey{Topic: j.Topic, TopicID: kafka.ParseTopicID(j.TopicID), Partition: j.Partition, Chunk: j.Chunk}, nil
}

const chunkVersion = 1

// Chunk is the number of the chunk that holds the map's last run, and the
// value to store for it: a version byte, then per run three varints, the
// distance of both starts from the last run's ends and the count.
func (m *RunMap) Chunk(n int64) []byte {
	from := max(n*ChunkRuns-m.first, 0)
	to := min((n+1)*ChunkRuns-m.first, int64(len(m.runs)))
	if from >= to {
		return nil
	}
	return encodeRuns(m.runs[from:to])
}

// Anchors is the value to store under AnchorsChunk; nil where there are none.
func (m *RunMap) Anchors() []byte {
	if len(m.anchors) == 0 {
		return nil
	}
	return encodeRuns(m.anchors)
}

func encodeRuns(runs []Run) []byte {
	dst := []byte{chunkVersion}
	var last Run
	for _, r := range runs {
		dst = binary.AppendVarint(dst, int64(r.Up-last.End()))
		dst = binary.AppendVarint(dst, int64(r.Down-last.DownEnd()))
		dst = binary.AppendUvarint(dst, uint64(r.Count))
		last = r
	}
	return dst
}

// LastChunk is the number of the chunk that holds the last run.
func (m *RunMap) LastChunk() int64 {
	return (m.first + int64(max(len(m.runs), 1)) - 1) / ChunkRuns
}

// FirstChunk is the number of the oldest chunk the map still holds.
func (m *RunMap) FirstChunk() int64 { return m.first / ChunkRuns }

// DecodeChunk reads a chunk's runs.
func DecodeChunk(value []byte) ([]Run, error) {
	if len(value) == 0 || value[0] != chunkVersion {
		return nil, fmt.Errorf("offset map chunk: unknown version in %d bytes", len(value))
	}
	var runs []Run
	var last Run
	for p := value[1:]; len(p) > 0; {
		up, n := binary.Varint(p)
		if n <= 0 {
			return nil, fmt.Errorf("offset map chunk: run %d is cut off", len(runs))
		}
		p = p[n:]
		d, k := binary.Varint(p)
		if k <= 0 {
			return nil, fmt.Errorf("offset map chunk: run %d is cut off", len(runs))
		}
		p = p[k:]
		count, k := binary.Uvarint(p)
		if k <= 0 || count == 0 || count > 1<<62 {
			return nil, fmt.Errorf("offset map chunk: run %d has an impossible count", len(runs))
		}
		p = p[k:]
		r := Run{Up: last.End() + mirror.UpstreamOffset(up), Down: last.DownEnd() + mirror.DownstreamOffset(d), Count: int64(count)}
		if len(runs) > 0 && (up < 0 || d < 0) || r.Up < 0 || r.Down < 0 || r.End() < r.Up || r.DownEnd() < r.Down {
			return nil, fmt.Errorf("offset map chunk: run %d lies before its predecessor", len(runs))
		}
		runs = append(runs, r)
		last = r
	}
	return runs, nil
}

// LoadRuns makes a map of stored chunks, as far as they agree with a position
// that says that everything before source offset position is settled and that
// the target went on at end. Runs written ahead of the position are left out,
// and the last run is as long as the position says. Anchors that do not lie
// before the runs belong to another map and are left out.
func LoadRuns(chunks map[int64][]Run, position mirror.UpstreamOffset, end mirror.DownstreamOffset) *RunMap {
	m := &RunMap{}
	numbers := make([]int64, 0, len(chunks))
	for n := range chunks {
		if n != AnchorsChunk {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if len(m.runs) == 0 {
			m.first = n * ChunkRuns
		} else if n != numbers[i-1]+1 || int64(len(m.runs))%ChunkRuns != 0 {
			*m = RunMap{first: n * ChunkRuns} // a hole: what lies before it cannot be trusted to be complete
		}
		for _, r := range chunks[n] {
			if r.Up >= position || r.Down >= end {
				break
			}
			if _, err := m.Append(r); err != nil {
				m.runs = nil
				m.first = n * ChunkRuns
			}
		}
	}
	if len(m.runs) > 0 {
		last := &m.runs[len(m.runs)-1]
		last.Count = max(1, min(int64(position-last.Up), int64(end-last.Down)))
	}
	for _, a := range chunks[AnchorsChunk] {
		if len(m.runs) > 0 && a.End() <= m.runs[0].Up && a.DownEnd() <= m.runs[0].Down {
			m.anchors = append(m.anchors, a)
		}
	}
	return m
}
