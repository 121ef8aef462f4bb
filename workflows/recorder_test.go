package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/activities"
	"millwright/service/store"
	"millwright/worker"
	"millwright/workflows"
)

// identity replaces the process and host in a recorded history.
const identity = "recorder"

// recordOnly restricts the recordings to files whose names contain it.
var recordOnly = flag.String("only", "", "with -record, only the files whose names contain this")

// recorder runs the real workflows on a real Temporal, with fake activities.
type recorder struct {
	client client.Client

	mu        sync.Mutex
	rows      map[string]*recordedRow
	addresses map[string]*recordedAddress
	records   map[string]*recordedRecord // by work order or feedback
	mailRuns  int
}

// recordAll plays every recording and writes its history.
func recordAll(t *testing.T) {
	t.Helper()
	address := os.Getenv("TEMPORAL_ADDRESS")
	if address == "" {
		t.Fatal("recording needs a Temporal server: set TEMPORAL_ADDRESS, or run it under bin/devstack exec")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	recorders := map[string]*recorder{}
	for _, namespace := range []string{client.DefaultNamespace, shortHistories} {
		recorders[namespace] = newRecorder(ctx, t, address, namespace)
	}
	for _, r := range recordings {
		if r.play == nil || *recordOnly != "" && !strings.Contains(r.file, *recordOnly) {
			continue
		}
		rec := recorders[client.DefaultNamespace]
		if strings.Contains(r.file, "_as_new") {
			rec = recorders[shortHistories]
		}
		id, err := r.play(ctx, rec)
		if err != nil {
			t.Fatalf("%s: %v", r.file, err)
		}
		// The run is given: a workflow that continues as new has several.
		id, run, given := strings.Cut(id, " ")
		if !given {
			run = rec.firstRun(ctx, id)
		}
		if err := rec.client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			t.Fatalf("%s: the workflow ended with %v", r.file, err)
		}
		if err := rec.write(ctx, id, run, r.file); err != nil {
			t.Fatalf("%s: %v", r.file, err)
		}
	}
}

// shortHistories is the namespace of bin/devstack's Temporal in which workflows are to
// continue as new after a few events. Other servers suggest it after 4,096.
const shortHistories = "short-histories"

// newRecorder starts workers in the namespace.
func newRecorder(ctx context.Context, t *testing.T, address, namespace string) *recorder {
	t.Helper()
	options := client.Options{
		HostPort: address, Namespace: namespace, Identity: identity, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	}
	namespaces, err := client.NewNamespaceClient(options)
	if err != nil {
		t.Fatal(err)
	}
	defer namespaces.Close()
	err = namespaces.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if _, exists := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); err != nil && !exists {
		t.Fatal(err)
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := worker.Prepare(ctx, worker.Options{Client: c, Namespace: namespace, SweepEvery: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	rec := &recorder{client: c, rows: map[string]*recordedRow{}, addresses: map[string]*recordedAddress{}, records: map[string]*recordedRecord{}}
	for _, queue := range workflows.TaskQueues {
		w := sdkworker.New(c, queue, sdkworker.Options{Identity: identity})
		worker.Register(w)
		(&fakeActivities{rec}).register(w)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	return rec
}

// wake wakes a workflow as a process that wrote something does.
func (r *recorder) wake(ctx context.Context, target store.WakeTarget) error {
	waker := worker.NewWaker(ctx, r.client, slog.New(slog.DiscardHandler))
	waker.Wake(target)
	waker.Stop(ctx)
	return ctx.Err()
}

// signalAfter sends a signal once the workflow's history shows the words in order.
func (r *recorder) signalAfter(ctx context.Context, workflowID, words, signal string) error {
	if err := r.await(ctx, workflowID, words); err != nil {
		return err
	}
	return r.client.SignalWorkflow(ctx, workflowID, "", signal, nil)
}

// await waits until the history of the workflow's run shows the words in order.
func (r *recorder) await(ctx context.Context, workflowID, words string) error {
	left := strings.Fields(words)
	events := r.client.GetWorkflowHistory(ctx, workflowID, "", true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for len(left) > 0 && events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		if left[0] == wordFor(event) {
			left = left[1:]
		}
	}
	return nil
}

// firstRun returns the id of the first run of a workflow that may have continued as new.
func (r *recorder) firstRun(ctx context.Context, workflowID string) string {
	events := r.client.GetWorkflowHistory(ctx, workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return ""
	}
	event, err := events.Next()
	if err != nil {
		return ""
	}
	return event.GetWorkflowExecutionStartedEventAttributes().GetFirstExecutionRunId()
}

// start starts a workflow that a schedule starts.
func (r *recorder) start(ctx context.Context, id, name string, run any) (string, error) {
	_, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, name, run)
	return id, err
}

// cancelAfter requests the cancellation of the workflow once its history shows the words.
func (r *recorder) cancelAfter(ctx context.Context, workflowID, words string) error {
	return errors.Join(r.await(ctx, workflowID, words), r.client.CancelWorkflow(ctx, workflowID, ""))
}

// members are the input of an update.
type members = map[string]string

// update sends an update once the history shows the words, and checks whether it
// succeeds.
func (r *recorder) update(ctx context.Context, workflowID, words, name string, input members, succeeds bool) error {
	if err := r.await(ctx, workflowID, words); err != nil {
		return err
	}
	handle, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateID: "update-" + name, UpdateName: name, Args: []any{input},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	if err := handle.Get(ctx, nil); (err == nil) != succeeds {
		return fmt.Errorf("the update %s ended with %w", name, err)
	}
	return nil
}

type fakeActivities struct{ *recorder }

func (a *fakeActivities) register(r sdkworker.ActivityRegistry) {
	for name, fake := range map[string]any{
		activities.NameDispatchPending: a.DispatchPending, activities.NameLoadAddress: a.LoadAddress,
		activities.NameDisableAddress: a.DisableAddress, activities.NameEnableAddress: a.EnableAddress,
		activities.NameTurnOffAddress: a.TurnOffIfUnsuccessful, activities.NameTestAddress: a.TestAddress, activities.NameSendExample: a.SendExample,
		activities.NameAttempt: a.Attempt, activities.NameLoadDelivery: a.LoadDelivery, activities.NameRedeliverDelivery: a.RedeliverDelivery, activities.NameStopDelivery: a.StopDelivery,
		activities.NameLoadWorkOrder: a.LoadWorkOrder, activities.NameRemindWorkOrder: a.RemindWorkOrder,
		activities.NameLoadFeedback: a.LoadFeedback, activities.NameSendMail: a.SendMail,
		activities.NameReviewWorkOrder: a.ReviewWorkOrder, activities.NameHoldWorkOrder: a.actOnWorkOrder,
		activities.NameResumeWorkOrder: a.actOnWorkOrder, activities.NameCancelWorkOrder: a.actOnWorkOrder,
		activities.NameResolveFeedback: a.ResolveFeedback,
		activities.NameSweepForAWhile:  a.SweepForAWhile, activities.NameWakeMissing: a.WakeMissing,
		activities.NameHousekeep: a.HousekeepForAWhile,
	} {
		r.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
}

// write writes the workflow's history, one event per line, without the machine's names.
func (r *recorder) write(ctx context.Context, workflowID, runID, file string) error {
	var lines []string
	events := r.client.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		line, err := eventJSON(event)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
	}
	text := "{\"events\": [\n" + strings.Join(lines, ",\n") + "\n]}\n"
	return os.WriteFile(filepath.Join("testdata", file), []byte(text), 0o644)
}

// eventJSON encodes the event without the machine's names.
func eventJSON(event *history.HistoryEvent) ([]byte, error) {
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(event)
	if err != nil {
		return nil, err
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	anonymize(value)
	return json.Marshal(value)
}

// anonymize replaces the names of the process, its host and its binary.
func anonymize(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			anonymize(element)
		}
	case map[string]any:
		if value["kind"] == "TASK_QUEUE_KIND_STICKY" {
			value["name"] = identity
		}
		for name, element := range value {
			switch name {
			case "identity", "binaryChecksum", "buildId":
				value[name] = identity
			default:
				anonymize(element)
			}
		}
	}
}
