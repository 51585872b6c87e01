package flow

import (
	"testing"
	"time"
)

func TestShortestOfTheBrokersTimes(t *testing.T) {
	for _, row := range []struct {
		values []string
		want   time.Duration
		known  bool
	}{
		{nil, 0, false},
		{[]string{"", "-1", "soon"}, 0, false},
		{[]string{"86400000"}, 24 * time.Hour, true},
		{[]string{"86400000", "3600000", "86400000"}, time.Hour, true},
		{[]string{"9223372036854775807"}, 9223372036854000000, true},
	} {
		if got, known := shortest(row.values); got != row.want || known != row.known {
			t.Errorf("%v: %v %v, want %v %v", row.values, got, known, row.want, row.known)
		}
	}
}
