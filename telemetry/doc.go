// Package telemetry connects the product to its operators' tools: traces to an
// OpenTelemetry collector, metrics of Temporal's SDK and of the database pool to
// Prometheus, and trace ids to the log.
//
// Inputs: a few settings, and the standard OTEL_* variables, which the OpenTelemetry SDK
// reads itself. Outputs: a tracer for the packages that create spans, an interceptor and
// a metrics handler for Temporal's client, collectors for a Prometheus registry and a
// log handler.
//
// It imports no other package of the product, which decides what is counted and traced
// in api, service, activities and worker.
package telemetry
