package store

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

// tracerName is the instrumentation scope of the package's spans.
const tracerName = "millwright/service"

// traceParentKey is the header of W3C Trace Context.
const traceParentKey = "traceparent"

// TraceParent returns the context's span as a W3C traceparent, or nil if it has no
// span or an unsampled one. Events store it, so that deliveries join the trace of the
// call that caused them.
func TraceParent(ctx context.Context) *string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	parent := carrier[traceParentKey]
	return &parent
}

// WithTraceParent returns the context with the span of a W3C traceparent, or as it is
// if parent is "".
func WithTraceParent(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParentKey: parent})
}

// startSpan starts a child of the context's span if that is recorded; otherwise it
// costs almost nothing.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer(tracerName).Start(ctx, name) //nolint:spancheck // the caller ends it
}

// endSpan ends the span. It records only the code of an error, since the text may
// quote what was written.
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

// queryTracer records each round trip to the database as a span, if its trace is
// recorded. The span shows the statements, which contain no values.
type queryTracer struct{}

var (
	_ pgx.QueryTracer = queryTracer{}
	_ pgx.BatchTracer = queryTracer{}
)

// maxStatements bounds the SQL that a span shows, in bytes.
const maxStatements = 8 << 10

// TraceQueryStart starts the span of a query.
func (queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	return startRoundTrip(ctx, data.SQL, 1)
}

// TraceQueryEnd ends the span.
func (queryTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	endRoundTrip(ctx, data.Err)
}

// TraceBatchStart starts the span of a pipeline.
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

// TraceBatchQuery is empty: the pipeline's span shows every statement.
func (queryTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends the span.
func (queryTracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	endRoundTrip(ctx, data.Err)
}

func startRoundTrip(ctx context.Context, statements string, count int) context.Context {
	//nolint:spancheck // endRoundTrip ends it
	ctx, _ = trace.SpanFromContext(ctx).TracerProvider().Tracer(tracerName).Start(ctx, "postgresql",
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("db.system.name", "postgresql"),
			attribute.Int("db.operation.batch.size", count),
			attribute.String("db.query.text", statements)))
	return ctx
}

// endRoundTrip ends the context's span. If it is recorded, startRoundTrip started it.
func endRoundTrip(ctx context.Context, err error) { endSpan(trace.SpanFromContext(ctx), err) }
