package e2e

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"millwright/workflows"
)

// span is a span that a process sent.
type span struct {
	*traces.Span
	service string
}

func (s span) trace() string  { return hex.EncodeToString(s.GetTraceId()) }
func (s span) id() string     { return hex.EncodeToString(s.GetSpanId()) }
func (s span) parent() string { return hex.EncodeToString(s.GetParentSpanId()) }

// attribute returns an attribute's text, "" if it is missing.
func (s span) attribute(key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// spanCollector receives spans over OTLP.
type spanCollector struct {
	t      testing.TB
	server *httptest.Server

	mu    sync.Mutex
	spans []span
	// text is everything that was sent, to search it for private data.
	text strings.Builder
}

func newSpanCollector(t testing.TB) *spanCollector {
	c := &spanCollector{t: t}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// settings adds the settings that make the processes send every span here without
// delay.
func (c *spanCollector) settings(own settings) settings {
	own["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.server.URL
	own["OTEL_BSP_SCHEDULE_DELAY"] = "50"
	return own
}

func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its process was killed at the end of the test
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil || r.URL.Path != "/v1/traces" {
		c.t.Errorf("the collector was sent %s %s: %v", r.Method, r.URL.Path, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(body)
	for _, resource := range sent.GetResourceSpans() {
		service := ""
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, span{s, service})
			}
		}
	}
}

// sent returns everything that was sent.
func (c *spanCollector) sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// of returns the spans of a trace so far.
func (c *spanCollector) of(trace string) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []span
	for _, s := range c.spans {
		if s.trace() == trace {
			found = append(found, s)
		}
	}
	return found
}

// await returns the trace's spans with the name, once there are n of them.
func (c *spanCollector) await(trace, name string, n int) []span {
	c.t.Helper()
	var found []span
	eventually(c.t, deliveryLimit, name+" is in the trace", func() bool {
		found = nil
		for _, s := range c.of(trace) {
			if s.GetName() == name {
				found = append(found, s)
			}
		}
		return len(found) >= n
	})
	return found
}

// traced makes a call within the client's trace.
func (i *integrator) traced(traceparent, method, path string, body any) apiResponse {
	i.t.Helper()
	within := *i
	within.http = &http.Client{Transport: header{i.http.Transport, "Traceparent", traceparent}}
	response, err := within.call(method, path, "", body)
	if err != nil || response.status >= 300 {
		i.t.Fatalf("%s %s: status %d, error %v, body %s", method, path, response.status, err, response.body)
	}
	return response
}

// header adds a header to every request.
type header struct {
	http.RoundTripper
	name, value string
}

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return h.RoundTripper.RoundTrip(r)
}

func TestATraceLeadsFromACallToItsDeliveries(t *testing.T) {
	t.Parallel()
	const (
		trace, client = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
		untraced      = "5bf92f3577b34da6a3ce929d0e0e4737"
		title         = "Mrs Quarrington's radiator leaks"
	)
	taking, failing := newReceiver(t), newReceiver(t)
	// The second attempt is accepted.
	var once sync.Once
	failing.respondWith(func(_ context.Context, d delivery) int {
		status := http.StatusNoContent
		if strings.Contains(string(d.body), title) {
			once.Do(func() { status = http.StatusInternalServerError })
		}
		return status
	})
	spans := newSpanCollector(t)
	h := newHarness(t, spans.settings(settings{"WEBHOOK_RETRY_SCHEDULE": "100ms"}), taking, failing)
	api := h.startAPI(nil)
	i := h.integrator()

	order := map[string]string{"inventory_id": i.node, "title": title}
	id := idOf(t, i.traced("00-"+trace+"-"+client+"-01", http.MethodPost, "/work-orders", order).body)
	// A sweep, with which a worker starts, might start the workflow first, in no trace.
	h.awaitWorkflow(workflows.WorkOrderID(id), enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	worker := h.startWorker()
	first, second := h.deliveryTo(1, id), h.deliveryTo(2, id)
	h.awaitAttempts(second, "delivered", 500, 204)

	call := spans.await(trace, "POST /v1/work-orders", 1)[0]
	if call.parent() != client || call.service != "millwright-api" || call.attribute("http.route") != "/v1/work-orders" {
		t.Errorf("the call's span is %v of %s", call, call.service)
	}
	// The deliveries: three attempts, linked to the spans that caused them.
	attempts := spans.await(trace, "deliver work_order.created", 3)
	seen := map[string]int{}
	for _, a := range attempts {
		seen[a.attribute("millwright.delivery_id")+" "+a.attribute("millwright.outcome")]++
		if a.service != "millwright-worker" || len(a.GetLinks()) != 1 {
			t.Errorf("an attempt's span is %v of %s", a, a.service)
		}
		if !spans.within(a, call) {
			t.Errorf("attempt %v does not descend from the call", a)
		}
	}
	if len(attempts) != 3 || seen[first+" 2xx"] != 1 || seen[second+" 5xx"] != 1 || seen[second+" 2xx"] != 1 {
		t.Errorf("the attempts in the trace are %v", seen)
	}

	// The workflows: the record's and the failing delivery's.
	look := spans.await(trace, "RunActivity:LoadWorkOrder", 1)[0]
	retry := spans.await(trace, "RunActivity:Attempt", 1)[0]
	if look.attribute("temporalWorkflowID") != workflows.WorkOrderID(id) || retry.attribute("temporalWorkflowID") != workflows.DeliveryID(second) {
		t.Errorf("activities are %v and %v", look, retry)
	}
	spans.await(trace, "RunWorkflow:"+workflows.DeliveryName, 1)
	i.traced("00-"+untraced+"-"+client+"-00", http.MethodPost, "/work-orders/"+id+"/cancel", map[string]string{"reason": "Not needed"})
	spans.await(trace, "RunWorkflow:"+workflows.WorkOrderName, 1)

	// A client that does not want its calls traced gets no spans.
	quiet := idOf(t, i.traced("00-"+untraced+"-"+client+"-00", http.MethodPost, "/work-orders", order).body)
	awaitDelivery(t, taking, quiet)
	if n := h.count(`SELECT count(*) FROM events WHERE trace_parent IS NOT NULL`); n != 1 {
		t.Errorf("%d events have a span, want only the traced call's", n)
	}
	if n := len(spans.of(untraced)); n != 0 {
		t.Errorf("%d spans of untraced calls were sent", n)
	}

	for what, p := range map[string]*process{"api": api, "worker": worker} {
		if !p.log.has(`"trace_id":"` + trace + `"`) {
			t.Errorf("no line of the %s has the trace's id", what)
		}
	}
	for _, d := range slices.Concat(taking.got(), failing.got()) {
		if d.header.Get("Traceparent") != "" {
			t.Error("a receiver got the trace's id")
		}
	}
	places := map[string]string{"the spans": spans.sent()}
	for _, leak := range leaks(places, map[string]string{
		"a name": managerName, "a part of it": "Quarrington", "an e-mail address": managerEmail, "the access token": i.token(),
		"a secret": h.org.clientSecret, "a signing secret": taking.secret, "a webhook's path": taking.path, "another": failing.path,
		"a reason": "Not needed",
	}) {
		t.Error(leak)
	}
}

// within reports whether the span descends from the other.
func (c *spanCollector) within(s, ancestor span) bool {
	all := map[string]span{}
	for _, other := range c.of(s.trace()) {
		all[other.id()] = other
	}
	for range len(all) {
		if s.id() == ancestor.id() {
			return true
		}
		parent, known := all[s.parent()]
		if !known {
			return false
		}
		s = parent
	}
	return false
}
