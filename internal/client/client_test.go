package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func dial(t *testing.T, s Server) *Client {
	t.Helper()
	c, err := New(s, "heliograph/test")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequestAndAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" || r.Method != http.MethodPut ||
			r.URL.EscapedPath() != "/base/api/v1/flows/a%2Fb" || r.URL.Query().Get("q") != "x y" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("ETag", `"8"`)
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	etag, err := dial(t, Server{URL: srv.URL + "/base", TokenFile: file}).Do(t.Context(), Request{
		Method: http.MethodPut, Path: "/api/v1/flows/" + Segment("a/b"), Query: map[string][]string{"q": {"x y"}}, Body: map[string]string{"k": "v"},
	}, &out)
	if err != nil || etag != `"8"` || out["k"] != "v" {
		t.Errorf("%v %q %v", err, etag, out)
	}
}

func TestProblems(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"fields":  {422, `{"title":"Unprocessable","status":422,"detail":"validation failed","errors":[{"pointer":"/properties/topics","resource":"flow A->B","field":"topics","reason":"not a pattern","hint":"write .*"}]}`, "validation failed\n  flow A->B: topics: not a pattern (write .*)"},
		"title":   {404, `{"title":"Not Found"}`, "Not Found"},
		"foreign": {502, "<html>", "GET /x: answered 502"},
		"token":   {401, `{"title":"Unauthorized","detail":"no"}`, "does not know this token"},
		"other":   {307, "", "answered 307"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		_, err := dial(t, Server{URL: srv.URL}).Do(t.Context(), Request{Path: "/x"}, nil)
		srv.Close()
		p, ok := errors.AsType[*ProblemError](err)
		if !ok || p.Status != tt.status || !strings.Contains(p.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	address := srv.URL
	srv.Close()
	_, err := dial(t, Server{URL: address}).Do(t.Context(), Request{Path: "/x"}, nil)
	if _, ok := errors.AsType[*UnreachableError](err); !ok {
		t.Errorf("nobody there: %v", err)
	}
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer srv.Close()
	var out map[string]any
	_, err = dial(t, Server{URL: srv.URL}).Do(t.Context(), Request{Path: "/x"}, &out)
	if _, ok := errors.AsType[*UnreachableError](err); !ok {
		t.Errorf("somebody else: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = dial(t, Server{URL: srv.URL}).Do(ctx, Request{Path: "/x"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

func TestBadServers(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Server{
		"no scheme":      {URL: "localhost:9405"},
		"login":          {URL: "http://me:secret@localhost"},
		"no token file":  {URL: "http://x", TokenFile: empty + "x"},
		"empty token":    {URL: "http://x", TokenFile: empty},
		"odd token":      Server{URL: "http://x"}.WithToken("a\r\nb: c"),
		"no CA file":     {URL: "https://x", CAFile: empty + "x"},
		"no certificate": {URL: "https://x", CAFile: empty},
	} {
		if _, err := New(s, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the client that does not trust it
	srv.StartTLS()
	defer srv.Close()
	if _, err := dial(t, Server{URL: srv.URL}).Do(t.Context(), Request{Path: "/x"}, nil); err == nil {
		t.Error("a certificate of nobody is trusted")
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, Server{URL: srv.URL, CAFile: file}).Do(t.Context(), Request{Path: "/x"}, nil); err != nil {
		t.Error(err)
	}
}

func TestExposed(t *testing.T) {
	for address, exposed := range map[string]bool{
		"http://h.example:8083": true, "http://10.0.0.1": true, "https://h.example": false, "http://localhost:1": false, "http://127.0.0.1:1": false, "http://[::1]:1": false,
	} {
		if got := dial(t, Server{URL: address}.WithToken("t")).Exposed(); got != exposed {
			t.Errorf("%s: %v", address, got)
		}
		if dial(t, Server{URL: address}).Exposed() {
			t.Errorf("%s: no token is exposed", address)
		}
	}
}

func TestStream(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hello\n\nid: 1\nevent: a\ndata: {\ndata: }\n\n\nid: 2\ndata: x\n\ndata: cut off")
	}))
	defer srv.Close()
	var got []string
	err := dial(t, Server{URL: srv.URL}).Stream(t.Context(), Request{Path: "/x"}, func(e Event) error {
		got = append(got, fmt.Sprintf("%s %s %q", e.ID, e.Name, e.Data))
		return nil
	})
	if want := `1 a "{\n}"|2  "x"`; !errors.Is(err, io.EOF) || strings.Join(got, "|") != want {
		t.Errorf("%v %s, want %s", err, strings.Join(got, "|"), want)
	}
	stop := errors.New("enough")
	if err := dial(t, Server{URL: srv.URL}).Stream(t.Context(), Request{Path: "/x"}, func(Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

func TestContexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deeper", "contexts.yaml")
	c, err := ReadContexts(file)
	if err != nil || len(c.Servers) != 0 {
		t.Fatalf("%v %v", err, c)
	}
	if _, err := c.Get("prod"); err == nil || !strings.Contains(err.Error(), "none yet") {
		t.Error(err)
	}
	c.Servers["prod"] = Server{URL: "https://h.example", TokenFile: "/t"}
	c.Current = "prod"
	if err := c.Write(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", err, info.Mode())
	}
	back, err := ReadContexts(file)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(c)
	b, _ := json.Marshal(back)
	if string(a) != string(b) {
		t.Errorf("%s became %s", a, b)
	}
	if _, err := back.Get("test"); err == nil || !strings.Contains(err.Error(), "there are prod") {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("contexts:\n  a: {sever: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadContexts(file); err == nil {
		t.Error("a field that is not known is accepted")
	}
}
