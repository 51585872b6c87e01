package mirror

import (
	"encoding/json"
	"fmt"
	"slices"

	"heliograph/internal/kafka"
)

// PositionHeader is the key of the record header that carries [PositionFacts].
// MirrorMaker ignores headers of its positions.
const PositionHeader = "heliograph"

// PositionFacts is what we know of a position beyond MirrorMaker's bytes. A
// position without them was written by Java MirrorMaker.
type PositionFacts struct {
	// Clean says that the writer stopped in order: nothing was written to the
	// target partition after NextTarget.
	Clean bool
	// ProducerID and ProducerEpoch wrote the data since the last position. The id
	// is named in a position before its first batch. Both are those of
	// [kafka.NoProducer] where there is none.
	ProducerID    int64
	ProducerEpoch int16
	// NextTarget is the next offset in the target partition, the t of a position.
	NextTarget DownstreamOffset
	// SourceCluster and TargetCluster are cluster ids, empty where a cluster has none.
	SourceCluster, TargetCluster string
	// SourceTopicID and TargetTopicID are zero where a cluster does not tell.
	SourceTopicID, TargetTopicID kafka.TopicID
	// SourceEpoch is the leader epoch of the last replicated batch.
	SourceEpoch kafka.LeaderEpoch
	// Mode is the delivery mode the position was written in, "default" or "exactly-once".
	Mode string
}

// factsVersion rises only if a field changes its meaning; new fields do not
// raise it, because older readers ignore what they do not know.
const factsVersion = 1

// factsJSON is the encoding. Pointers tell absence from zero.
type factsJSON struct {
	Version       int    `json:"v"`
	Clean         bool   `json:"clean"`
	ProducerID    *int64 `json:"producerId,omitempty"`
	ProducerEpoch *int16 `json:"producerEpoch,omitempty"`
	NextTarget    *int64 `json:"nextTarget"`
	SourceCluster string `json:"sourceCluster,omitempty"`
	TargetCluster string `json:"targetCluster,omitempty"`
	SourceTopicID string `json:"sourceTopicId,omitempty"`
	TargetTopicID string `json:"targetTopicId,omitempty"`
	SourceEpoch   *int32 `json:"sourceEpoch,omitempty"`
	Mode          string `json:"mode,omitempty"`
}

// AppendHeader appends the facts as one record header.
func (f PositionFacts) AppendHeader(headers []kafka.Header) []kafka.Header {
	next := int64(f.NextTarget)
	j := factsJSON{
		Version:       factsVersion,
		Clean:         f.Clean,
		NextTarget:    &next,
		SourceCluster: f.SourceCluster,
		TargetCluster: f.TargetCluster,
		SourceTopicID: f.SourceTopicID.String(),
		TargetTopicID: f.TargetTopicID.String(),
		Mode:          f.Mode,
	}
	if f.ProducerID != kafka.NoProducer.ID {
		j.ProducerID, j.ProducerEpoch = &f.ProducerID, &f.ProducerEpoch
	}
	if f.SourceEpoch != kafka.NoLeaderEpoch {
		epoch := int32(f.SourceEpoch)
		j.SourceEpoch = &epoch
	}
	value, err := json.Marshal(j)
	if err != nil {
		panic("mirror: position facts: " + err.Error()) // strings, numbers and booleans always encode
	}
	return append(headers, kafka.Header{Key: PositionHeader, Value: value})
}

// DecodePositionFacts finds the facts among a position's headers, the last ones
// where there are several. ok is false where there are none: the position is
// MirrorMaker's own. Fields that are not known are ignored.
func DecodePositionFacts(headers []kafka.Header) (facts PositionFacts, ok bool, err error) {
	for _, h := range slices.Backward(headers) {
		if h.Key == PositionHeader {
			facts, err = decodeFacts(h.Value)
			return facts, err == nil, err
		}
	}
	return PositionFacts{}, false, nil
}

func decodeFacts(value []byte) (PositionFacts, error) {
	var j factsJSON
	if err := decodeJSON(value, &j); err != nil {
		return PositionFacts{}, fmt.Errorf("position header %s: %w: %w", PositionHeader, err, ErrMalformed)
	}
	if j.Version != factsVersion {
		return PositionFacts{}, fmt.Errorf("position header %s: version %d was written by another release, this one knows %d: %w",
			PositionHeader, j.Version, factsVersion, ErrMalformed)
	}
	if j.NextTarget == nil {
		return PositionFacts{}, fmt.Errorf("position header %s: nextTarget is missing: %w", PositionHeader, ErrMalformed)
	}
	f := PositionFacts{
		Clean:         j.Clean,
		ProducerID:    kafka.NoProducer.ID,
		ProducerEpoch: kafka.NoProducer.Epoch,
		NextTarget:    DownstreamOffset(*j.NextTarget),
		SourceCluster: j.SourceCluster,
		TargetCluster: j.TargetCluster,
		SourceTopicID: kafka.ParseTopicID(j.SourceTopicID),
		TargetTopicID: kafka.ParseTopicID(j.TargetTopicID),
		SourceEpoch:   kafka.NoLeaderEpoch,
		Mode:          j.Mode,
	}
	if j.ProducerID != nil && j.ProducerEpoch != nil {
		f.ProducerID, f.ProducerEpoch = *j.ProducerID, *j.ProducerEpoch
	}
	if j.SourceEpoch != nil {
		f.SourceEpoch = kafka.LeaderEpoch(*j.SourceEpoch)
	}
	return f, nil
}
