package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/telemetry"
)

func TestNilTracing(t *testing.T) {
	var none *telemetry.Tracing
	interceptors, err := none.Interceptors()
	if none.Tracer() != nil || interceptors != nil || err != nil || none.Stop(t.Context()) != nil {
		t.Error("a nil Tracing is not inert")
	}
}

func TestTracingNamesTheProcess(t *testing.T) {
	for name, c := range map[string]struct{ variable, want string }{
		"by default":      {"", "millwright-api"},
		"by the variable": {"erp-gateway", "erp-gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_SERVICE_NAME", c.variable)
			kept := tracetest.NewInMemoryExporter()
			tracing, err := telemetry.NewTracing(t.Context(), telemetry.Process{Service: "millwright-api", Version: "1.2.3"}, keep{kept})
			if err != nil {
				t.Fatal(err)
			}
			_, span := tracing.Tracer().Start(t.Context(), "call")
			span.End()
			if err := tracing.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			spans := kept.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans were exported, want 1", len(spans))
			}
			found := map[string]string{}
			for _, a := range spans[0].Resource.Attributes() {
				found[string(a.Key)] = a.Value.String()
			}
			if found["service.name"] != c.want || found["service.version"] != "1.2.3" {
				t.Errorf("the spans have the resource %v", found)
			}
		})
	}
}

// keep is an exporter that keeps its spans after Shutdown.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(ctx context.Context) error { return nil }

// A workflow that no traced call started has no span; its activity starts a trace.
func TestOnlyActivitiesStartTraces(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Process{Service: "test"}, keep{kept})
	if err != nil {
		t.Fatal(err)
	}
	interceptors, err := tracing.Interceptors()
	if err != nil || len(interceptors) != 1 {
		t.Fatalf("%d interceptors, error %v", len(interceptors), err)
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{interceptors[0].(interceptor.WorkerInterceptor)}})
	sampled := func(ctx context.Context) (bool, error) { return trace.SpanContextFromContext(ctx).IsSampled(), nil }
	env.RegisterActivityWithOptions(sampled, activity.RegisterOptions{Name: "Sampled"})
	env.ExecuteWorkflow(func(ctx workflow.Context) (traced bool, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 1e9})
		err = workflow.ExecuteActivity(ctx, "Sampled").Get(ctx, &traced)
		return traced, err
	})
	var traced bool
	if err := env.GetWorkflowResult(&traced); err != nil || !traced {
		t.Fatalf("sampled %v, error %v", traced, err)
	}
	if err := tracing.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range kept.GetSpans() {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"RunActivity:Sampled"}) {
		t.Errorf("spans %v, want only the activity's", names)
	}
}

func TestLogLinesInATraceHaveItsID(t *testing.T) {
	var written bytes.Buffer
	log := slog.New(telemetry.LogHandler(slog.NewJSONHandler(&written, nil))).With("a", 1).WithGroup("g")
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Process{}, keep{tracetest.NewInMemoryExporter()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tracing.Tracer().Start(t.Context(), "call")
	defer span.End()
	line := func(ctx context.Context) (fields struct {
		A int
		G struct {
			TraceID string `json:"trace_id"`
		}
	}) {
		written.Reset()
		log.InfoContext(ctx, "hello")
		if err := json.Unmarshal(written.Bytes(), &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	if fields := line(ctx); fields.A != 1 || fields.G.TraceID != span.SpanContext().TraceID().String() {
		t.Errorf("log line %s", written.String())
	}
	if fields := line(t.Context()); fields.G.TraceID != "" {
		t.Errorf("log line without a trace: %s", written.String())
	}
}
