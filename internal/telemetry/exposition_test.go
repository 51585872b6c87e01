package telemetry

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// strange is what a label or a help may hold.
const strange = "a\\b\"c\nd é"

func TestExpositionIsReadBackAsItWasMeant(t *testing.T) {
	var out strings.Builder
	e := NewExposition(&out)
	e.Family("empty", Gauge, "Left out.")
	e.Family("things_total", Counter, strange)
	values := map[string]float64{
		strange: 3, "half": 0.5, "large": 1 << 60, "minus": -7, "infinite": math.Inf(1), "": 1e-9,
	}
	for label, v := range values {
		e.Sample(AppendLabels(nil, "what", label, "more", "x"), v)
	}
	e.Family("bare", Gauge, "Without labels.")
	e.Sample(nil, 12)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 2 || families["things_total"].GetHelp() != strange || families["bare"].GetMetric()[0].GetGauge().GetValue() != 12 {
		t.Errorf("%v", families)
	}
	got := map[string]float64{}
	for _, m := range families["things_total"].GetMetric() {
		got[m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
	}
	if d := cmp.Diff(values, got); d != "" {
		t.Error(d)
	}
}

func TestExpositionEndsWithItsReader(t *testing.T) {
	gone := errors.New("gone")
	r, w := io.Pipe()
	_ = r.CloseWithError(gone)
	e := NewExposition(w)
	e.Family("things", Gauge, "Many.")
	for range 100_000 {
		e.Sample(nil, 1)
	}
	if err := e.Close(); !errors.Is(err, gone) {
		t.Error(err)
	}
	if cap(e.buf) > 4*expositionBlock {
		t.Errorf("%d bytes were kept for nobody", cap(e.buf))
	}
}

func TestMetricsHoldRegistryAndSeries(t *testing.T) {
	h := AdminHandler(AdminOptions{
		Gatherer: NewRegistry(ReadBuild("1.2.3")), Health: func() Health { return Health{} },
		Series: func(e *Exposition) {
			e.Family("heliograph_things", Gauge, "Things.")
			e.Sample(AppendLabels(nil, "kind", "x"), 5)
		},
	})
	for _, encoding := range []string{"", "gzip"} {
		req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		req.Header.Set("Accept-Encoding", encoding)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		var body io.Reader = rec.Body
		if got := rec.Header().Get("Content-Encoding"); got != encoding {
			t.Errorf("encoding %q, want %q", got, encoding)
		}
		if encoding == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"heliograph_build_info", "heliograph_things", "go_goroutines"} {
			if families[name] == nil {
				t.Errorf("%s is missing", name)
			}
		}
	}
}

func TestMetricsThatCannotBeGatheredAreAnError(t *testing.T) {
	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("no disk") })
	h := AdminHandler(AdminOptions{Gatherer: broken, Health: func() Health { return Health{} }})
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if rec.Code != http.StatusInternalServerError || !strings.Contains(rec.Body.String(), "no disk") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
