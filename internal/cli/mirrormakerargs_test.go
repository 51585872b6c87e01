package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMirrorMakerArgumentsAreReadAsMirrorMakerReadsThem(t *testing.T) {
	for _, tc := range []struct {
		args string
		want mirrorMakerArgs
		err  string
	}{
		{args: "f", want: mirrorMakerArgs{File: "f"}},
		{args: "f --clusters B", want: mirrorMakerArgs{File: "f", Clusters: []string{"B"}}},
		{args: "f --clusters B C D", want: mirrorMakerArgs{File: "f", Clusters: []string{"B", "C", "D"}}},
		{args: "--clusters=B f", want: mirrorMakerArgs{File: "f", Clusters: []string{"B"}}},
		{args: "--cl=B f", want: mirrorMakerArgs{File: "f", Clusters: []string{"B"}}},
		{args: "f --c B C", want: mirrorMakerArgs{File: "f", Clusters: []string{"B", "C"}}},
		{args: "--clusters B -- f", want: mirrorMakerArgs{File: "f", Clusters: []string{"B"}}},
		{args: "f --clusters B --clusters C", want: mirrorMakerArgs{File: "f", Clusters: []string{"C"}}},
		{args: "-daemon f", want: mirrorMakerArgs{File: "f", Background: true}},
		{args: "-h", want: mirrorMakerArgs{Help: true}},
		{args: "--help --nonsense", want: mirrorMakerArgs{Help: true}},
		{args: "f --he", want: mirrorMakerArgs{Help: true}},
		{args: "--clusters B f", err: "put the file first"},
		{args: "--clusters B", err: "the file is missing"},
		{args: "f --clusters", err: "argument --clusters: expected at least one argument"},
		{args: "f --clusters -h", err: "argument --clusters: expected at least one argument"},
		{args: "f g", err: "unrecognized arguments: 'g'"},
		{args: "f --verbose", err: "unrecognized arguments: '--verbose'"},
		{args: "f -daemon", err: "unrecognized arguments: '-daemon'"},
		{args: "-daemon", err: "the file is missing"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			got, err := parseMirrorMakerArgs(strings.Fields(tc.args))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheNameDecidesTheGrammar(t *testing.T) {
	for name, want := range map[string]bool{
		"connect-mirror-maker": true, "/opt/kafka/bin/connect-mirror-maker.sh": true,
		"heliograph": false, "./heliograph": false, "kafka-mirror-maker": false,
	} {
		if got := isMirrorMakerName(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
