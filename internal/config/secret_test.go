package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretIsNeverText(t *testing.T) {
	type holder struct {
		S Secret
		P *Secret
	}
	s := NewSecret("hunter2")
	h := holder{S: s, P: &s}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "s", s, "h", h)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "s", s, "h", h)
	encoded, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"v": fmt.Sprintf("%v %v", s, h), "plus": fmt.Sprintf("%+v %+v", s, h), "sharp": fmt.Sprintf("%#v %#v", s, h),
		"s": fmt.Sprintf("%s %q", s, s), "json": string(encoded), "slog": logged.String(),
	} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s shows it: %s", name, text)
		}
		if !strings.Contains(text, hidden) {
			t.Errorf("%s does not say that something is hidden: %s", name, text)
		}
	}
	if s.Reveal() != "hunter2" {
		t.Error("Reveal does not reveal")
	}
}

func TestShownKeepsReferencesOnly(t *testing.T) {
	for raw, want := range map[string]string{
		"":            "",
		"hunter2":     hidden,
		"${env:PW}":   "${env:PW}",
		` ${env:PW} `: "${env:PW}",
		`x required username="${env:USER}" password="hunter2";`:   hidden + " ${env:USER}",
		`x required username="${env:USER}" password="${f:/p:k}";`: hidden + " ${env:USER} ${f:/p:k}",
	} {
		if got := (value{Raw: raw}).shown(true); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
	if got := (value{Raw: "orders"}).shown(false); got != "orders" {
		t.Errorf("no secret is shown as %q", got)
	}
}
