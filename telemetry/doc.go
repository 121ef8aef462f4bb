// Package telemetry makes what an operator looks at: the exporter of traces, the
// bridge from Temporal's SDK to Prometheus, the metrics of the database pool, and
// the log's trace ids.
//
// What flows in: a few settings, and the standard OTEL_* variables, which the
// OpenTelemetry SDK reads itself. What flows out: a tracer to hand to the parts
// that make spans, an interceptor and a metrics handler for Temporal's client,
// collectors for the registry. It knows nothing of the product: what is counted
// and traced is said where it happens, in api, service, activities and worker.
package telemetry
