package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/service/servicetest"
)

// observedAPI is an API with recorded spans, metrics and log lines.
type observedAPI struct {
	*api.API
	spans   *tracetest.InMemoryExporter
	metrics *prometheus.Registry
	log     bytes.Buffer
}

func newObservedAPI(t testing.TB, s *apitest.Server, sampler sdktrace.Sampler) *observedAPI {
	t.Helper()
	w := &observedAPI{spans: tracetest.NewInMemoryExporter(), metrics: prometheus.NewRegistry()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithSampler(sdktrace.ParentBased(sampler)))
	w.API = api.New(s.Service, api.Options{
		PublicURL: servicetest.Issuer, Version: "test", Tracer: provider.Tracer("test"), Metrics: w.metrics,
		Log: slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return w
}

// call makes a call and returns its span, or nil, and its log line.
func (w *observedAPI) call(t testing.TB, method, path string, headers ...string) (*tracetest.SpanStub, map[string]any) {
	t.Helper()
	w.spans.Reset()
	w.log.Reset()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w.ServeHTTP(httptest.NewRecorder(), r)
	var line map[string]any
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil || line["msg"] != "call" {
		t.Fatalf("the log is %q", w.log.String())
	}
	for _, s := range w.spans.GetSpans() {
		if s.SpanKind == trace.SpanKindServer {
			return &s, line
		}
	}
	return nil, line
}

// attributes returns a span's attributes as strings.
func attributes(s *tracetest.SpanStub) map[string]string {
	found := map[string]string{}
	for _, a := range s.Attributes {
		found[string(a.Key)] = a.Value.String()
	}
	return found
}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

func TestCallsAreTracedAndLogged(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	w := newObservedAPI(t, s, sdktrace.NeverSample())
	authorization := "Bearer " + s.Token("erp")

	span, line := w.call(t, http.MethodGet, "/v1/work-orders/wo_Quarrington?a=secret", "Authorization", authorization,
		"Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01", "Tracestate", "vendor=Quarrington", "X-Request-Id", "mine-1")
	if span == nil || span.Name != "GET /v1/work-orders/:id" || span.Parent.SpanID().String() != clientSpan || span.SpanContext.TraceID().String() != clientTrace {
		t.Fatalf("the span is %+v", span)
	}
	expected := map[string]string{
		"http.request.method": "GET", "http.route": "/v1/work-orders/:id", "http.response.status_code": "400",
		"millwright.request_id": "mine-1", "millwright.integration_id": s.ID("erp"), "error.type": "invalid_request",
	}
	if got := attributes(span); !maps.Equal(got, expected) {
		t.Errorf("the span's attributes are %v, want %v", got, expected)
	}
	want(t, "the client's tracestate", span.SpanContext.TraceState().String(), "")
	for name, value := range map[string]any{
		"level": "INFO", "request_id": "mine-1", "method": "GET", "route": "/v1/work-orders/:id", "status": 400.0,
		"integration_id": s.ID("erp"), "code": "invalid_request",
	} {
		want(t, "the line's "+name, line[name], value)
	}
	if strings.Contains(w.log.String(), "Quarrington") || strings.Contains(w.log.String(), "secret") {
		t.Errorf("the path or the query is logged: %s", w.log.String())
	}

	if span, _ := w.call(t, http.MethodGet, "/v1/me", "Authorization", authorization, "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-00"); span != nil {
		t.Error("a call is traced although the client did not sample it")
	}
	if span, _ := w.call(t, http.MethodGet, "/v1/me", "Authorization", authorization, "Traceparent", "nonsense"); span != nil {
		t.Error("a call is traced although the sampler dropped it")
	}
	_, line = w.call(t, http.MethodGet, "/livez")
	want(t, "the level of a probe", line["level"], any("DEBUG"))
	_, line = w.call(t, "QUARRINGTON", "/v1/me")
	if line["method"] != "other" || strings.Contains(w.log.String(), "QUARRINGTON") {
		t.Errorf("a client's unknown method is logged: %s", w.log.String())
	}
}

// A call that its client gave up is no error of the server.
func TestAnAbandonedCallIsNotAnError(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	w := newObservedAPI(t, s, sdktrace.AlwaysSample())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	authorization := "Bearer " + s.Token("erp")
	for _, path := range []string{"/v1/me", "/v1/work-orders"} {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.Header.Set("Authorization", authorization)
		w.ServeHTTP(httptest.NewRecorder(), r)
	}
	if got := w.log.String(); strings.Count(got, `"status":499`) != 2 || strings.Contains(got, `"level":"ERROR"`) || strings.Contains(got, `"code"`) {
		t.Errorf("the log is\n%s", got)
	}
	for _, span := range w.spans.GetSpans() {
		if span.SpanKind == trace.SpanKindServer && span.Status.Code == codes.Error {
			t.Errorf("the span %s is an error", span.Name)
		}
	}
}

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	w := newObservedAPI(t, s, sdktrace.NeverSample())
	authorization := "Bearer " + s.Token("erp")
	w.call(t, http.MethodGet, "/v1/me", "Authorization", authorization)
	w.call(t, http.MethodGet, "/v1/me", "Authorization", authorization)
	w.call(t, http.MethodGet, "/v1/me")
	w.call(t, http.MethodGet, "/v1/work-orders/wo_1", "Authorization", authorization)
	w.call(t, http.MethodGet, "/v1/nowhere")
	w.call(t, "QUARRINGTON", "/v1/me")
	w.call(t, http.MethodPost, "/v1/oauth/token")
	got := counted(t, w.metrics)
	for name, want := range map[string]float64{
		`millwright_http_requests_total{GET,/v1/me,200}`:              2,
		`millwright_http_requests_total{GET,/v1/me,401}`:              1,
		`millwright_http_requests_total{GET,/v1/work-orders/:id,404}`: 1,
		`millwright_http_requests_total{GET,none,404}`:                1,
		`millwright_http_requests_total{POST,/v1/oauth/token,400}`:    1,
		`millwright_http_requests_total{other,none,405}`:              1,
		`millwright_http_request_duration_seconds{GET,/v1/me}`:        3,
		`millwright_http_rejections_total{invalid_token}`:             1,
		`millwright_http_rejections_total{not_found}`:                 2,
		`millwright_http_rejections_total{method_not_allowed}`:        1,
		`millwright_http_rejections_total{rate_limited}`:              0, // exported before the first one
		`millwright_http_requests_in_flight{}`:                        0,
	} {
		if n, shown := got[name]; !shown || n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	for name := range got {
		if strings.Contains(name, "QUARRINGTON") || strings.Contains(name, "wo_1") || strings.Contains(name, "nowhere") {
			t.Errorf("a label contains text of the client: %s", name)
		}
	}
}

// counted returns the metrics of a registry: name{label values} to the value, or to the
// number of observations of a histogram.
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all[family.GetName()+"{"+strings.Join(labels, ",")+"}"] =
				m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// Two APIs that counted into one registry would be one in every figure.
func TestTwoAPIsDoNotShareARegistry(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	options := api.Options{PublicURL: servicetest.Issuer, Version: "test", Metrics: prometheus.NewRegistry()}
	api.New(s.Service, options)
	defer func() {
		if recover() == nil {
			t.Error("registering the metrics of a second API did not fail")
		}
	}()
	api.New(s.Service, options)
}
