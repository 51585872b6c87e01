package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSplitMeansTheSame takes every sound file of the corpus apart and puts it together again.
func TestSplitMeansTheSame(t *testing.T) {
	files, _ := filepath.Glob("testdata/corpus/*.properties")
	compared := 0
	for _, file := range files {
		name := corpusName(file)
		if name == "06" {
			continue // refused because no flow is enabled, which is no error of parts
		}
		src := Source{Name: filepath.Base(file), Bytes: readCorpus(t, name)}
		want := Load(src)
		p := Split(src)
		if (want.Err() == nil) != !p.Problems.HasErrors() {
			t.Errorf("%s: %v", file, p.Problems)
		}
		if want.Err() != nil {
			continue
		}
		var resources []Resource
		for _, r := range append(p.Clusters, p.Flows...) {
			r.Literal = true
			resources = append(resources, r)
		}
		got := Resolve(Source{Name: "parts"}, resources...)
		for i := range want.Flows {
			w := &want.Flows[i]
			if !w.Enabled {
				continue
			}
			g := flowOf(t, got, w.ID.String())
			if !g.Enabled || g.Policy.RemoteTopic("x", "y") != w.Policy.RemoteTopic("x", "y") ||
				g.Selection.Filter.Include.String() != w.Selection.Filter.Include.String() ||
				g.Selection.Filter.Exclude.String() != w.Selection.Filter.Exclude.String() ||
				g.Groups.Include.String() != w.Groups.Include.String() || g.Configs.Exclude.String() != w.Configs.Exclude.String() ||
				g.Topics != w.Topics || g.OffsetSyncs != w.OffsetSyncs || g.Checkpoints != w.Checkpoints ||
				g.Data != w.Data || g.Positions != w.Positions || g.ExactlyOnce != w.ExactlyOnce || g.Heartbeats != w.Heartbeats {
				t.Errorf("%s: %s means something else:\n%+v\n%+v", file, w.ID, w, g)
			}
			compared++
		}
		for alias, w := range want.Clusters {
			g := got.Clusters[alias]
			if g.Protocol != w.Protocol || strings.Join(g.BootstrapServers, ",") != strings.Join(w.BootstrapServers, ",") || g.BytesPerSecond != w.BytesPerSecond {
				t.Errorf("%s: cluster %s: %+v, not %+v", file, alias, g, w)
			}
		}
	}
	if compared < 20 {
		t.Errorf("%d flows were compared", compared)
	}
}

func TestSplitRefusesWhatATextCannotHold(t *testing.T) {
	p := Split(Source{Name: "a.yaml", Bytes: []byte("clusters: {A: {bootstrap.servers: [a:1]}, B: {bootstrap.servers: [b:1]}}\nflows: {A->B: {topics: ['x{1,3}']}}\n")})
	if !p.Problems.HasErrors() || len(p.Flows) != 0 {
		t.Errorf("%v %v", p.Problems, p.Flows)
	}
}

func TestSplitTellsWhatIsTheProcesss(t *testing.T) {
	p := Split(Source{Name: "a.properties", Bytes: []byte("clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\nheliograph.memory.bytes=1GiB\n" +
		"offset.storage.replication.factor=1\nA.heliograph.rate.bytes.per.second=1MiB\nB->A.emit.heartbeats.enabled=false\n")})
	if len(p.Left) != 1 || !strings.Contains(p.Left[0], "memory") || len(p.Flows) != 1 || len(p.Clusters) != 2 {
		t.Fatalf("%+v", p)
	}
	if p.Clusters[1].Properties["offset.storage.replication.factor"] != "1" || p.Clusters[0].Properties["offset.storage.replication.factor"] != "" {
		t.Errorf("%+v", p.Clusters)
	}
}
