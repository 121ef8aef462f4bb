package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// LogHandler returns a handler that adds the trace id to lines written in the
// context of a span, so that a trace leads to its log and back.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle adds the trace id and hands the line on.
func (h logHandler) Handle(ctx context.Context, line slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		line.AddAttrs(slog.String("trace_id", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs returns a handler whose lines have the attributes too.
func (h logHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attributes)}
}

// WithGroup returns a handler whose lines' attributes are in a group.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
