package service

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"millwright/models"
)

// instrumentation names who makes the spans of this package.
const instrumentation = "millwright/service"

// traceParentKey is the header of W3C Trace Context, and the carrier's key.
const traceParentKey = "traceparent"

// TraceParent returns the context's span as a W3C traceparent, nil when there is
// none or its trace is not kept. It is what an event keeps of its call.
func TraceParent(ctx context.Context) *string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	parent := carrier[traceParentKey]
	return &parent
}

// WithTraceParent returns the context with the span of a W3C traceparent in place
// of its own; with its own when there is none.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParentKey: parent})
}

// TracingWaker is a Poker that can begin workflows in the trace of a context.
type TracingWaker interface {
	WakeIn(ctx context.Context, work ...WakeTarget)
}

// WakeIn pokes the work. Workflows that it begins are found in the context's
// trace, where that is kept and the poker can.
func WakeIn(ctx context.Context, poker Waker, work ...WakeTarget) {
	if tracing, can := poker.(TracingWaker); can && trace.SpanContextFromContext(ctx).IsSampled() {
		tracing.WakeIn(ctx, work...)
		return
	}
	poker.Wake(work...)
}

// startSpan begins a child of the context's span, where that is recorded. It
// costs next to nothing elsewhere.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer(instrumentation).Start(ctx, name) //nolint:spancheck // the caller ends it
}

// endSpan ends the span; of an error it keeps the code alone, since the text may
// hold what was written.
func endSpan(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		code := string(models.CodeOf(err))
		span.SetAttributes(attribute.String("error.type", code))
		span.SetStatus(codes.Error, code)
	}
	span.End()
}

// queryTracer makes a span of each round trip to the database that belongs to a
// trace that is kept. It shows the statements, which hold no values.
type queryTracer struct{}

var (
	_ pgx.QueryTracer = queryTracer{}
	_ pgx.BatchTracer = queryTracer{}
)

// maxStatements bounds the text of the statements that a span shows.
const maxStatements = 8 << 10

// TraceQueryStart begins the span of a query.
func (queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	return startRoundTrip(ctx, data.SQL, 1)
}

// TraceQueryEnd ends it.
func (queryTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	endRoundTrip(ctx, data.Err)
}

// TraceBatchStart begins the span of a batch.
func (queryTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	var text strings.Builder
	for _, q := range data.Batch.QueuedQueries {
		if text.Len()+len(q.SQL) > maxStatements {
			text.WriteString("…")
			break
		}
		text.WriteString(strings.TrimSpace(q.SQL))
		text.WriteString(";\n")
	}
	return startRoundTrip(ctx, text.String(), len(data.Batch.QueuedQueries))
}

// TraceBatchQuery has nothing to add: the batch's span shows every statement.
func (queryTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends it.
func (queryTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	endRoundTrip(ctx, data.Err)
}

func startRoundTrip(ctx context.Context, statements string, count int) context.Context {
	//nolint:spancheck // endRoundTrip ends it
	ctx, _ = trace.SpanFromContext(ctx).TracerProvider().Tracer(instrumentation).Start(ctx, "postgresql",
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("db.system.name", "postgresql"),
			attribute.Int("db.operation.batch.size", count),
			attribute.String("db.query.text", statements)))
	return ctx
}

// endRoundTrip ends the context's span: where that is recorded, startRoundTrip began it.
func endRoundTrip(ctx context.Context, err error) { endSpan(trace.SpanFromContext(ctx), err) }
