package kafkatest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReleasesDecideHowBrokersRun(t *testing.T) {
	for _, row := range []struct {
		version       string
		ok            bool
		kraft, mirror bool
	}{
		{version: "2.4.1", ok: true},
		{version: "3.2.3", ok: true, mirror: true},
		{version: "3.3.0", ok: true, kraft: true, mirror: true},
		{version: "4.3.1", ok: true, kraft: true, mirror: true},
		{version: "4.3"},
		{version: "4.x.1"},
		{version: ""},
	} {
		r, err := parseRelease(row.version)
		if (err == nil) != row.ok || r.kraft() != row.kraft || r.mirror() != row.mirror {
			t.Errorf("%q: kraft %v, mirror %v, %v", row.version, r.kraft(), r.mirror(), err)
		}
	}
}

func TestDropQuarrellingLeavesOneLogger(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"slf4j-simple-1.7.36.jar", "slf4j-reload4j-1.7.36.jar", "log4j-slf4j-impl-2.25.4.jar", "kafka-clients-3.9.2.jar"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dropQuarrelling(dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v, want the clients and the simple logger", left, err)
	}
}

func TestToolsAreFoundByClass(t *testing.T) {
	if class, err := toolClass("", "", "some.where.Tool"); err != nil || class != "some.where.Tool" {
		t.Errorf("a name with dots became %q, %v", class, err)
	}
}

// A child must be gone with its log kept, and its end told as a shell tells it.
func TestProcessEndsAsAsked(t *testing.T) {
	dir := t.TempDir()
	p, err := StartProcess(ProcessSpec{Name: "sleeper", Dir: dir, Path: "sh", Args: []string{"-c", "echo hello; exec sleep 1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if !p.Running() || p.PeakMemory() == 0 {
		t.Errorf("running %v with %d bytes", p.Running(), p.PeakMemory())
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if code, err := p.ExitCode(t.Context()); err != nil || code != 137 {
		t.Errorf("exit code %d, %v, want 137", code, err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("killing a dead process: %v", err)
	}
}
