package kafkatest

import (
	"fmt"
	"strconv"
	"strings"
)

// The releases the project is tested against.
const (
	// ReleaseOld is the oldest supported release. It runs with ZooKeeper.
	ReleaseOld = "2.4.1"
	// ReleaseSource is the usual source.
	ReleaseSource = "3.9.2"
	// ReleaseTarget is the usual target.
	ReleaseTarget = "4.3.1"
)

// release is a parsed Kafka version.
type release struct{ major, minor, patch int }

func parseRelease(s string) (release, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return release{}, fmt.Errorf("kafka release %q: want three numbers like %s", s, ReleaseSource)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return release{}, fmt.Errorf("kafka release %q: %q is not a number", s, p)
		}
		n[i] = v
	}
	return release{n[0], n[1], n[2]}, nil
}

// atLeast reports whether r is major.minor or newer.
func (r release) atLeast(major, minor int) bool {
	return r.major > major || r.major == major && r.minor >= minor
}

// kraft reports whether brokers run without ZooKeeper: KRaft is ready for use from 3.3 on.
func (r release) kraft() bool { return r.atLeast(3, 3) }

// mirror reports whether the release published MirrorMaker 2 as an artifact.
func (r release) mirror() bool { return r.atLeast(2, 5) }
