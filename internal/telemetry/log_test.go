package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogIsTextOnATerminalAndJSONElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    LogOptions
		json bool
	}{
		{"pipe", LogOptions{}, true},
		{"terminal", LogOptions{Terminal: true}, false},
		{"text asked for", LogOptions{Format: LogText}, false},
		{"json asked for on a terminal", LogOptions{Format: LogJSON, Terminal: true}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			log, _ := NewLogger(&out, tc.o)
			log.Info("flow running", KeyFlow, "A->B")
			if got := json.Valid(out.Bytes()); got != tc.json {
				t.Errorf("json is %v, want %v: %s", got, tc.json, out.String())
			}
			if !strings.Contains(out.String(), "A->B") {
				t.Errorf("attribute missing: %s", out.String())
			}
		})
	}
}

func TestDurationsAreWordsInBothForms(t *testing.T) {
	for format, want := range map[LogFormat]string{LogJSON: `"wait":"35.485s"`, LogText: "wait=35.485s"} {
		var out bytes.Buffer
		log, _ := NewLogger(&out, LogOptions{Format: format})
		log.Info("recovered", KeyWait, 35484839622*time.Nanosecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}

func TestColoursOnlyWhenWanted(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	for _, tc := range []struct {
		name     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"terminal", true, nil, true},
		{"pipe", false, nil, false},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false},
		{"dumb terminal", true, map[string]string{"TERM": "dumb"}, false},
	} {
		if got := WantsColor(tc.terminal, env(tc.env)); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	var out bytes.Buffer
	log, _ := NewLogger(&out, LogOptions{Format: LogText})
	log.Error("x")
	if strings.Contains(out.String(), "\x1b[") {
		t.Errorf("colours although not wanted: %q", out.String())
	}
}

func TestLevelsAreReadByName(t *testing.T) {
	if l, err := ParseLogLevel("warn"); err != nil || l != slog.LevelWarn {
		t.Errorf("warn: %v, %v", l, err)
	}
	if _, err := ParseLogLevel("loud"); err == nil {
		t.Error("loud: want an error")
	}
}
