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

// Tracing makes spans and sends them away. A nil Tracing makes none.
type Tracing struct {
	provider *sdktrace.TracerProvider
}

// Process says whose spans they are.
type Process struct {
	// Service is its name unless OTEL_SERVICE_NAME gives another.
	Service string
	Version string
}

// StartTracing returns a Tracing that sends spans to an OpenTelemetry collector
// over HTTP, as the OTEL_EXPORTER_OTLP_*, OTEL_TRACES_SAMPLER, OTEL_BSP_* and
// OTEL_RESOURCE_ATTRIBUTES variables say. It fails when they are malformed; a
// collector that does not answer loses spans and is logged, and nothing else.
func StartTracing(ctx context.Context, process Process, log *slog.Logger) (*Tracing, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces cannot be sent", "error", err.Error())
	}))
	return NewTracing(ctx, process, exporter)
}

// NewTracing returns a Tracing with an exporter of the caller's.
func NewTracing(ctx context.Context, process Process, exporter sdktrace.SpanExporter) (*Tracing, error) {
	// Later ones win: the variables have the last word.
	who, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", process.Service), attribute.String("service.version", process.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this process to the collector of traces: %w", err)
	}
	return &Tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(who))}, nil
}

// Stop sends what waits, for as long as the context allows.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Tracer returns a tracer for the product's own spans, nil when there is no tracing.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("millwright")
}

// Interceptors returns what makes spans of Temporal's calls, workflows and
// activities, for a client's options; none when there is no tracing.
func (t *Tracing) Interceptors() ([]interceptor.ClientInterceptor, error) {
	if t == nil {
		return nil, nil
	}
	traced, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer:            t.provider.Tracer("millwright/temporal"),
		TextMapPropagator: propagation.TraceContext{},
		DisableBaggage:    true,
		// A header that cannot be read costs a trace, never a workflow.
		AllowInvalidParentSpans: true,
		SpanStarter:             startWithin,
	})
	if err != nil {
		return nil, fmt.Errorf("trace Temporal: %w", err)
	}
	return []interceptor.ClientInterceptor{traced}, nil
}

// startWithin starts Temporal's spans within a trace that is kept. Of its own it
// begins one for an activity alone: workflows rest for days, and pokes come from
// the background.
func startWithin(ctx context.Context, tracer trace.Tracer, name string, options ...trace.SpanStartOption) trace.Span {
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsSampled() && (parent.IsValid() || !strings.HasPrefix(name, "RunActivity:")) {
		return noop.Span{}
	}
	ctx, _ = tracer.Start(ctx, name, options...) //nolint:spancheck // the interceptor ends it
	return trace.SpanFromContext(ctx)
}
