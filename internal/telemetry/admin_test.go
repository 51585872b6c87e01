package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// admin starts a server that answers with *h and returns its base URL.
func admin(t *testing.T, h *Health, pprof bool) string {
	t.Helper()
	a, err := ListenAdmin(t.Context(), AdminOptions{
		Address:  "127.0.0.1:0",
		Gatherer: NewRegistry(ReadBuild("1.2.3")),
		Health:   func() Health { return *h },
		PProf:    pprof,
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + a.Address()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestHealthAnswersAliveAndReadyApart(t *testing.T) {
	ok := PartState{Name: "A->B", State: "running", Ready: true}
	waits := PartState{Name: "C->B", State: "waiting", Reason: "cluster C cannot be reached"}
	for _, tc := range []struct {
		name              string
		health            Health
		both, live, ready int
	}{
		{"all well", Health{Alive: true, Ready: true, Parts: []PartState{ok}}, 200, 200, 200},
		{"one flow waits", Health{Alive: true, Parts: []PartState{ok, waits}}, 503, 200, 503},
		{"dead", Health{Parts: []PartState{waits}}, 503, 503, 503},
	} {
		t.Run(tc.name, func(t *testing.T) {
			base := admin(t, &tc.health, false)
			for path, want := range map[string]int{"/healthz": tc.both, "/healthz/live": tc.live, "/healthz/ready": tc.ready} {
				if got, body := get(t, base+path); got != want {
					t.Errorf("GET %s: %d, want %d: %s", path, got, want, body)
				}
			}
			_, body := get(t, base+"/healthz")
			var got Health
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.health, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadyNamesOnlyWhatIsNotReady(t *testing.T) {
	base := admin(t, &Health{Alive: true, Parts: []PartState{
		{Name: "A->B", State: "running", Ready: true},
		{Name: "C->B", State: "waiting", Reason: "cluster C cannot be reached"},
	}}, false)
	_, body := get(t, base+"/healthz/ready")
	if strings.Contains(body, "A->B") || !strings.Contains(body, "cluster C cannot be reached") {
		t.Errorf("unexpected answer %s", body)
	}
}

func TestMetricsTellTheBuild(t *testing.T) {
	base := admin(t, &Health{}, false)
	code, body := get(t, base+"/metrics")
	if code != 200 || !strings.Contains(body, `version="1.2.3"`) || !strings.Contains(body, "heliograph_build_info{") {
		t.Errorf("%d: no build information in:\n%s", code, body)
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	if code, _ := get(t, admin(t, &Health{}, false)+"/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles without asking: %d, want 404", code)
	}
	if code, _ := get(t, admin(t, &Health{}, true)+"/debug/pprof/"); code != http.StatusOK {
		t.Errorf("profiles when asked for: %d, want 200", code)
	}
}

func TestATakenAddressIsAnErrorAtOnce(t *testing.T) {
	base := admin(t, &Health{}, false)
	_, err := ListenAdmin(t.Context(), AdminOptions{Address: strings.TrimPrefix(base, "http://")})
	if err == nil || !strings.Contains(err.Error(), "admin server on 127.0.0.1:") {
		t.Errorf("got %v, want an error that names the address", err)
	}
}
