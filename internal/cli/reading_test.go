package cli

import (
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
)

// scriptPlace reads TOPIC PARTITION OFFSET.
func scriptPlace(ts *testscript.TestScript, args []string) kadm.Offset {
	partition, err := strconv.ParseInt(args[1], 10, 32)
	ts.Check(err)
	offset, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	return kadm.Offset{Topic: args[0], Partition: int32(partition), At: offset, LeaderEpoch: -1}
}

func scriptCommit(ts *testscript.TestScript, _ bool, args []string) {
	cl, ctx := scriptClient(ts, args[0])
	var offsets kadm.Offsets
	offsets.Add(scriptPlace(ts, args[2:]))
	ts.Check(kadm.NewClient(cl).CommitAllOffsets(ctx, args[1], offsets))
}

func scriptTrim(ts *testscript.TestScript, _ bool, args []string) {
	cl, ctx := scriptClient(ts, args[0])
	var offsets kadm.Offsets
	offsets.Add(scriptPlace(ts, args[1:]))
	answers, err := kadm.NewClient(cl).DeleteRecords(ctx, offsets)
	ts.Check(err)
	ts.Check(answers.Error())
}

func TestTranslateTellsPlacesFromGroups(t *testing.T) {
	tests := []struct {
		what, group, place string
		offset             int64
	}{
		{"orders:3:42", "", "orders-3", 42},
		{"A.orders:0:0", "", "A.orders-0", 0},
		{"billing", "billing", "-0", 0},
		{"app:eu:7", "app:eu:7", "-0", 0},
		{"a:b:1:2", "a:b:1:2", "-0", 0},
		{":1:2", ":1:2", "-0", 0},
	}
	for _, tt := range tests {
		var o translateOptions
		if err := o.parse(tt.what); err != nil {
			t.Errorf("%s: %v", tt.what, err)
		}
		if o.Group != tt.group || o.At.String() != tt.place || o.Offset != tt.offset {
			t.Errorf("%s: group %q, place %s, offset %d", tt.what, o.Group, o.At, o.Offset)
		}
	}
	for _, what := range []string{"orders:99999999999:1", "orders:0:99999999999999999999", "orders:0:-1"} {
		var o translateOptions
		if err := o.parse(what); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}
