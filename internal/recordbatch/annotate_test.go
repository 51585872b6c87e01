package recordbatch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heliograph/internal/kafka"
)

var update = flag.Bool("update", false, "write goldens and fuzz seeds anew")

// TestAnnotateGoldens pins the bytes of every shape and what is said of them.
func TestAnnotateGoldens(t *testing.T) {
	for name, batch := range shapes() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "annotate", name+".txt")
			got := Annotate(view(t, batch))
			if *update {
				writeFile(t, path, got)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, path, got, string(want))
		})
	}
}

// TestFuzzSeeds writes the shapes as seeds of the fuzz targets when asked to,
// and otherwise sees that they are there.
func TestFuzzSeeds(t *testing.T) {
	for _, target := range []string{"FuzzScan", "FuzzHeader", "FuzzRestamp", "FuzzRewrite"} {
		for name, batch := range shapes() {
			path := filepath.Join("testdata", "fuzz", target, name)
			seed := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", batch)
			if *update {
				writeFile(t, path, seed)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != seed {
				t.Errorf("%s is not the shape of that name (run with -update): %v", path, err)
			}
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAnnotateSaysWhatIsOdd(t *testing.T) {
	long := built([]kafka.Record{{Value: []byte(strings.Repeat("long ", 100)), Timestamp: 1 << 60}}, BuildOptions{})
	for name, c := range map[string]struct {
		batch []byte
		says  []string
	}{
		"long value":     {long, []string{"… (500 bytes)", "1152921504606846976"}},
		"many records":   {with(plainBatch(), func(h *Header) { h.Count = 9 }), []string{"IMPOSSIBLE", "cannot be read"}},
		"unknown codec":  {with(plainBatch(), func(h *Header) { h.Attributes |= 7 }), []string{"codec 7", "cannot be read"}},
		"no time":        {built([]kafka.Record{{Timestamp: kafka.TimestampNone}}, BuildOptions{}), []string{"time none"}},
		"unknown marker": {markerBatch(1, 2, 5), []string{"control", "record 0"}},
	} {
		got := Annotate(view(t, c.batch))
		for _, s := range c.says {
			if !strings.Contains(got, s) {
				t.Errorf("%s: no %q in\n%s", name, s, got)
			}
		}
	}
}

// What a record holds must not show in any form where it is not to.
func TestAnnotateHeaderHidesRecords(t *testing.T) {
	for name, batch := range shapes() {
		b := view(t, batch)
		head, all := AnnotateHeader(b), Annotate(b)
		if !strings.HasPrefix(all, head) {
			t.Errorf("%s: the header alone is told otherwise:\n%s", name, head)
		}
		if last := strings.TrimSpace(head)[strings.LastIndex(strings.TrimSpace(head), "\n")+1:]; !strings.Contains(last, "records") || !strings.HasSuffix(last, "bytes") {
			t.Errorf("%s: ends with %q, not with the records' size", name, last)
		}
	}
}
