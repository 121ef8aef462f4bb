package telemetry_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"

	"millwright/telemetry"
	"millwright/worker"
)

// Tracing can be turned on while workflows run: histories that were recorded without
// it replay with it.
func TestRecordedHistoriesReplayWithTracing(t *testing.T) {
	files, err := filepath.Glob("../workflows/testdata/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d recorded histories, error %v", len(files), err)
	}
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Process{Service: "test"}, tracetest.NewInMemoryExporter())
	if err != nil {
		t.Fatal(err)
	}
	interceptors, err := tracing.Interceptors()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			history, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{
				Interceptors: []interceptor.WorkerInterceptor{interceptors[0].(interceptor.WorkerInterceptor)},
			})
			if err != nil {
				t.Fatal(err)
			}
			worker.Register(replayer)
			if err := replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), history); err != nil {
				t.Errorf("replay: %v", err)
			}
		})
	}
}
