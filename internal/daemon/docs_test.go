package daemon

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEverySeriesIsDocumented holds docs/metrics.md against what /metrics tells.
func TestEverySeriesIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	families := regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(string(golden), -1)
	if len(families) == 0 {
		t.Fatal("the golden names no series")
	}
	for _, f := range families {
		name := strings.TrimPrefix(f[1], "kafka_connect_mirror_mirrorsourceconnector_")
		if !strings.Contains(string(doc), name) {
			t.Errorf("docs/metrics.md does not tell of %s", f[1])
		}
	}
	for _, name := range regexp.MustCompile("`(heliograph_(?:flow|partition|memory)[a-z_]+)").FindAllStringSubmatch(string(doc), -1) {
		if !strings.Contains(string(golden), "# TYPE "+name[1]+" ") {
			t.Errorf("docs/metrics.md tells of %s, which does not exist", name[1])
		}
	}
}
