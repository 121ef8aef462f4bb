package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
)

// Tracing creates spans and exports them. A nil Tracing creates none.
type Tracing struct {
	provider *sdktrace.TracerProvider
}

// Process identifies the process in its traces.
type Process struct {
	// Service is its name, unless OTEL_SERVICE_NAME is set.
	Service string
	Version string
}

// StartTracing returns a Tracing that exports spans to an OpenTelemetry collector over
// HTTP, configured by the OTEL_EXPORTER_OTLP_*, OTEL_TRACES_SAMPLER, OTEL_BSP_* and
// OTEL_RESOURCE_ATTRIBUTES variables. It fails if they are malformed. If the collector
// does not respond, spans are lost and the failure is logged.
func StartTracing(ctx context.Context, process Process, log *slog.Logger) (*Tracing, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the trace exporter: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("cannot send traces", "error", err.Error())
	}))
	return NewTracing(ctx, process, exporter)
}

// NewTracing returns a Tracing with the exporter.
func NewTracing(ctx context.Context, process Process, exporter sdktrace.SpanExporter) (*Tracing, error) {
	// Later sources win, so the OTEL_* variables override the others.
	attributes, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", process.Service), attribute.String("service.version", process.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	return &Tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(attributes))}, nil
}

// Stop exports the queued spans and ends, at the latest with the context.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Tracer returns the tracer for the product's spans, nil without tracing.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("millwright")
}

// Interceptors returns the interceptors that create spans of Temporal's calls, workflows
// and activities, for a client's options; none without tracing.
func (t *Tracing) Interceptors() ([]interceptor.ClientInterceptor, error) {
	if t == nil {
		return nil, nil
	}
	traced, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer:            t.provider.Tracer("millwright/temporal"),
		TextMapPropagator: propagation.TraceContext{},
		DisableBaggage:    true,
		// An unreadable header must not fail a workflow.
		AllowInvalidParentSpans: true,
		SpanStarter:             startWithin,
	})
	if err != nil {
		return nil, fmt.Errorf("trace Temporal: %w", err)
	}
	return []interceptor.ClientInterceptor{traced}, nil
}

// startWithin starts Temporal's spans within a sampled trace. Only activities start new
// traces: workflows sleep for days, and wakes come from the background.
func startWithin(ctx context.Context, tracer trace.Tracer, name string, options ...trace.SpanStartOption) trace.Span {
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsSampled() && (parent.IsValid() || !strings.HasPrefix(name, "RunActivity:")) {
		return noop.Span{}
	}
	ctx, _ = tracer.Start(ctx, name, options...) //nolint:spancheck // the interceptor ends it
	return trace.SpanFromContext(ctx)
}
