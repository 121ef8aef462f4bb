package api

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// startSpan starts the span of a call, as part of the client's trace if it sent a
// traceparent. Tracestate and baggage are ignored: they are for the client's own
// systems.
func (a *API) startSpan(r *http.Request, route string) (context.Context, trace.Span) {
	ctx := r.Context()
	if a.options.Tracer == nil {
		return ctx, noop.Span{}
	}
	if sent := r.Header.Get("Traceparent"); sent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": sent})
	}
	name := knownMethod(r.Method)
	if route != "" {
		name += " " + route
	}
	return a.options.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer)) //nolint:spancheck // begin ends it
}

// endSpan records the call and its result in the span and ends it. Path and query
// are left out: they may contain personal data.
func endSpan(span trace.Span, state *call, route string, status int) {
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", knownMethod(state.method)),
			attribute.String("http.route", route),
			attribute.Int("http.response.status_code", status),
			attribute.String("millwright.request_id", state.requestID),
			attribute.String("millwright.integration_id", state.caller.IdentityID))
		if state.code != "" {
			span.SetAttributes(attribute.String("error.type", string(state.code)))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, string(state.code))
		}
	}
	span.End()
}
