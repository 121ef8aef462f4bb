package webhooks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceParent(t *testing.T) {
	for name, c := range map[string]struct {
		sent, kept string
	}{
		"a sampled trace":        {traceParent, traceParent},
		"an unsampled trace":     {strings.TrimSuffix(traceParent, "1") + "0", ""},
		"no trace":               {"", ""},
		"an invalid traceparent": {"00-hello", ""},
	} {
		t.Run(name, func(t *testing.T) {
			kept := ""
			if own := store.TraceParent(store.WithTraceParent(t.Context(), c.sent)); own != nil {
				kept = *own
			}
			servicetest.Expect(t, "the trace parent", kept, c.kept)
		})
	}
}

// tracingWaker records the trace of each wake.
type tracingWaker struct{ servicetest.Wakes }

func (w *tracingWaker) WakeIn(ctx context.Context, targets ...store.WakeTarget) {
	for _, target := range targets {
		w.Wake(store.WakeTarget{Kind: target.Kind, ID: target.ID + " in " + *store.TraceParent(ctx)})
	}
}

func TestWakeIn(t *testing.T) {
	work := store.WakeTarget{Kind: store.TargetWorkOrder, ID: "wo_1"}
	traced := store.WithTraceParent(t.Context(), traceParent)
	tracing, plain := &tracingWaker{}, &servicetest.Wakes{}
	store.WakeIn(traced, tracing, work)
	store.WakeIn(t.Context(), tracing, work)
	store.WakeIn(traced, plain, work)
	if got := tracing.Take(); len(got) != 2 || got[0].ID != "wo_1" || got[1].ID != "wo_1 in "+traceParent {
		t.Errorf("the tracing waker got %v", got)
	}
	if got := plain.Take(); len(got) != 1 || got[0] != work {
		t.Errorf("the plain waker got %v", got)
	}
}

func TestRoundTripsAreSpansOfARecordedTrace(t *testing.T) {
	f := servicetest.New(t)
	kept := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)).Tracer("test")

	servicetest.Must(t, f.Store.Ping(t.Context()))
	_, unsampled := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test").Start(t.Context(), "call")
	servicetest.Must(t, servicetest.ErrorOf(f.Upkeep.Unclaimed(trace.ContextWithSpan(t.Context(), unsampled), 0)))
	if n := len(kept.GetSpans()); n != 0 {
		t.Fatalf("%d spans without a recorded trace", n)
	}

	ctx, call := tracer.Start(t.Context(), "call")
	servicetest.Must(t, servicetest.ErrorOf(f.Upkeep.Unclaimed(ctx, 0)))
	if _, err := f.Webhooks.LoadDelivery(ctx, "dlv_none"); err == nil {
		t.Fatal("an unknown delivery was found")
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Webhooks.LoadDelivery(ctx, "dlv_none"); !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled query: %v", err)
	}
	spans := kept.GetSpans()
	if len(spans) != 2 { // a cancelled query takes no connection
		t.Fatalf("there are %d spans, want one per round trip", len(spans))
	}
	batch, query := spans[0], spans[1]
	if batch.Name != "postgresql" || batch.Parent.SpanID() != call.SpanContext().SpanID() || query.Parent.SpanID() != call.SpanContext().SpanID() {
		t.Errorf("the spans are %v and %v", batch, query)
	}
	text := ""
	for _, a := range batch.Attributes {
		if a.Key == "db.query.text" {
			text = a.Value.AsString()
		}
	}
	for _, part := range []string{"FROM dirty_records", "FROM webhooks h", "$1"} {
		if !strings.Contains(text, part) {
			t.Errorf("the batch's text lacks %q: %s", part, text)
		}
	}
	if slices.ContainsFunc(query.Attributes, func(a attribute.KeyValue) bool { return strings.Contains(a.Value.AsString(), "dlv_none") }) {
		t.Error("a value is in the span")
	}
}

func TestClaimedDeliveriesHaveTheTraceParentOfTheirEvent(t *testing.T) {
	f := servicetest.New(t)
	first, second := servicetest.Create(t, f), servicetest.Create(t, f)
	f.Exec(`UPDATE events SET trace_parent = $1 WHERE record_id = $2`, traceParent, first)
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	if len(claimed) != 2 {
		t.Fatalf("%d deliveries were claimed, want 2", len(claimed))
	}
	for _, d := range claimed {
		if want := map[string]string{first: traceParent, second: ""}[d.RecordID]; d.TraceParent != want || !d.EventAt.Equal(f.Clock.Now().Truncate(1e6)) {
			t.Errorf("the delivery's trace parent is %q, want %q; its event was at %s", d.TraceParent, want, d.EventAt)
		}
	}
	id := servicetest.DeliveryOf(f, "erp_hook", first)
	f.Exec(`UPDATE open_deliveries SET status = 'retrying', next_attempt_at = $2 WHERE id = $1`, id, f.Clock.Now())
	if retry := servicetest.NextRetry(t, f, id); retry.TraceParent != traceParent {
		t.Errorf("the retry is %v", retry)
	}
}

// A page of the newest costs one round trip, unless what its reader may see has changed
// since the last page.
func TestAPageIsOneRoundTrip(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series(1, 4) n`,
		f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"))
	kept := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)).Tracer("test")
	reader := f.Actor("reader")
	next := ""
	list := func(what, cursor string, wantRecords, wantTrips int) {
		t.Helper()
		kept.Reset()
		ctx, span := tracer.Start(t.Context(), "call")
		body, err := f.Records.WorkOrders(ctx, reader, records.WorkOrderFilter{}, lists.ListRequest{Limit: 3, Cursor: cursor})
		span.End()
		servicetest.Must(t, err)
		got, trips := servicetest.Read[servicetest.Page](t, body), 0
		for _, span := range kept.GetSpans() {
			if span.Name == "postgresql" {
				trips++
			}
		}
		if len(got.Data) != wantRecords || trips != wantTrips {
			t.Errorf("%s: %d records in %d round trips, want %d in %d", what, len(got.Data), trips, wantRecords, wantTrips)
		}
		next = got.NextCursor
	}
	list("the first page", "", 3, 2)
	list("the same again", "", 3, 1)
	list("the next page", next, 1, 1)
	f.Exec(`DELETE FROM assignments WHERE identity_id = $1`, f.ID("reader"))
	list("after its assignment ended", "", 0, 2)
	list("the same again", "", 0, 1)
}
