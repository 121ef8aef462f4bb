package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	"millwright/models"
	"millwright/service"
	"millwright/worker"
	"millwright/workflows"
)

// identity replaces the process and host in a recorded history.
const identity = "recorder"

// retryWait is every wait of the recordings' retry schedules.
const retryWait = 300 * time.Millisecond

// recorder runs the real workflows on a real Temporal, with fake activities.
type recorder struct {
	client client.Client

	mu         sync.Mutex
	rows       map[string]*row
	dispatches map[string][]dispatch      // by address, in order
	records    map[string]*recordedRecord // by work order or feedback
}

// dispatch is what one DispatchPending does.
type dispatch func(context.Context) (activities.DispatchResult, error)

// row is a delivery whose first attempt failed.
type row struct {
	state service.DeliveryState
	// acceptedAt is the attempt that the receiver accepts, lastAttempt the last of
	// the schedule.
	acceptedAt, lastAttempt int
	addressOff              bool
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
		if r.play == nil {
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
		id, run, _ := strings.Cut(id, " ")
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
	rec := &recorder{client: c, rows: map[string]*row{}, dispatches: map[string][]dispatch{}, records: map[string]*recordedRecord{}}
	for _, queue := range []string{workflows.TaskQueue, workflows.TaskQueueRetries, workflows.TaskQueueRecords} {
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

// The recordings, one function each.

func playDeliveredAtTheSecondAttempt(ctx context.Context, r *recorder) (string, error) {
	return r.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3ta", row{acceptedAt: 2, lastAttempt: 8}, retryWait)
}

func playFailedThenRedelivered(ctx context.Context, r *recorder) (string, error) {
	id, err := r.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3tb", row{acceptedAt: 4, lastAttempt: 3}, retryWait)
	return id, errors.Join(err,
		r.signalAfter(ctx, id, "AttemptDelivery timer AttemptDelivery timer", workflows.SignalRedeliver),
	)
}

func playWokenStoppedRedelivered(ctx context.Context, r *recorder) (string, error) {
	id, err := r.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3tc", row{acceptedAt: 2, lastAttempt: 8}, time.Hour)
	return id, errors.Join(err,
		r.signalAfter(ctx, id, "!wake LoadDelivery timer", workflows.SignalWake),
		r.signalAfter(ctx, id, "!wake LoadDelivery timer !wake LoadDelivery timer", workflows.SignalStop),
		r.signalAfter(ctx, id, "StopDelivery timer", workflows.SignalRedeliver),
	)
}

func playHeld(ctx context.Context, r *recorder) (string, error) {
	return r.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3td", row{lastAttempt: 8, addressOff: true}, retryWait)
}

func playWakeDuringADispatch(ctx context.Context, r *recorder) (string, error) {
	const webhookID = "whk_01jd8q4v6cf5e8hbbfwj0zq3te"
	return r.receive(ctx, webhookID,
		func(ctx context.Context) (activities.DispatchResult, error) {
			err := r.client.SignalWorkflow(ctx, workflows.WebhookAddressID(webhookID), "", workflows.SignalWake, nil)
			return activities.DispatchResult{Delivered: 2}, err
		},
		func(context.Context) (activities.DispatchResult, error) {
			return activities.DispatchResult{Delivered: 1}, nil
		},
	)
}

func playMoreAfterADispatch(ctx context.Context, r *recorder) (string, error) {
	return r.receive(ctx, "whk_01jd8q4v6cf5e8hbbfwj0zq3tf",
		func(context.Context) (activities.DispatchResult, error) {
			return activities.DispatchResult{Delivered: 100, More: true}, nil
		},
		func(context.Context) (activities.DispatchResult, error) {
			return activities.DispatchResult{Delivered: 7, Failed: 1}, nil
		},
	)
}

func playSweep(ctx context.Context, r *recorder) (string, error) {
	const id = "sweep"
	_, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.SweepName)
	return id, err
}

// deliver adds a delivery that failed its first attempt, and wakes its workflow.
func (r *recorder) deliver(ctx context.Context, id string, d row, wait time.Duration) (workflowID string, err error) {
	now := time.Now()
	next, code := models.TimeOf(now.Add(wait)), 503
	d.state = service.DeliveryState{
		DeliveryID: id, WebhookID: "whk_01jd8q4v6cf5e8hbbfwj0zq3tm",
		IntegrationID: "idn_01jd8q4v6cf5e8hbbfwj0zq3tn", OrganizationID: "idn_01jd8q4v6cf5e8hbbfwj0zq3tp",
		RecordID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tq", EventID: "evt_01jd8q4v6cf5e8hbbfwj0zq3tr",
		EventType: models.EventWorkOrderCreated, Status: models.DeliveryRetrying, Attempts: 1,
		NextAttemptAt: &next, LastStatus: &code, CreatedAt: models.TimeOf(now), KeptUntil: models.TimeOf(now.Add(models.EventRetention)),
	}
	r.mu.Lock()
	r.rows[id] = &d
	r.mu.Unlock()
	return workflows.DeliveryID(id), r.wake(ctx, service.WakeTarget{Kind: service.TargetDelivery, ID: id})
}

// receive adds the dispatches of an address, and wakes its workflow.
func (r *recorder) receive(ctx context.Context, webhookID string, dispatches ...dispatch) (workflowID string, err error) {
	r.mu.Lock()
	r.dispatches[webhookID] = dispatches
	r.mu.Unlock()
	return workflows.WebhookAddressID(webhookID), r.wake(ctx, service.WakeTarget{Kind: service.TargetWebhook, ID: webhookID})
}

// wake wakes a workflow as a process that wrote something does.
func (r *recorder) wake(ctx context.Context, target service.WakeTarget) error {
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

type fakeActivities struct{ *recorder }

func (a *fakeActivities) register(r sdkworker.ActivityRegistry) {
	for name, fake := range map[string]any{
		activities.NameDispatchPending: a.DispatchPending,
		activities.NameLoadDelivery:    a.LoadDelivery, activities.NameAttemptDelivery: a.AttemptDelivery,
		activities.NameRedeliverDelivery: a.RedeliverDelivery, activities.NameStopDelivery: a.StopDelivery,
		activities.NameLoadWorkOrder: a.LoadWorkOrder, activities.NameRemindWorkOrder: a.RemindWorkOrder,
		activities.NameLoadFeedback: a.LoadFeedback, activities.NameMailNotices: a.MailNotices,
		activities.NameReviewWorkOrder: a.ReviewWorkOrder, activities.NameHoldWorkOrder: a.act,
		activities.NameResumeWorkOrder: a.act, activities.NameCancelWorkOrder: a.act, activities.NameResolveFeedback: a.act,
		activities.NameWakeUnclaimed: a.WakeUnclaimed, activities.NameRemoveExpired: a.RemoveExpired,
	} {
		r.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
}

func (a *fakeActivities) LoadDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[id].state, nil
}

func (a *fakeActivities) AttemptDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[id].attempt(time.Now()), nil
}

func (a *fakeActivities) RedeliverDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	return a.AttemptDelivery(ctx, id)
}

func (a *fakeActivities) StopDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.rows[id]
	r.state.Status, r.state.NextAttemptAt = models.DeliveryFailed, nil
	return r.state, nil
}

func (a *fakeActivities) DispatchPending(ctx context.Context, webhookID string) (activities.DispatchResult, error) {
	a.mu.Lock()
	next := a.dispatches[webhookID][0]
	a.dispatches[webhookID] = a.dispatches[webhookID][1:]
	a.mu.Unlock()
	return next(ctx)
}

func (a *fakeActivities) WakeUnclaimed(context.Context) (int, error) { return 3, nil }

func (r *row) attempt(now time.Time) service.DeliveryState {
	if r.addressOff {
		r.state.Status, r.state.NextAttemptAt = models.DeliveryHeld, nil
		return r.state
	}
	made := service.Attempt{Number: r.state.Attempts + 1, Status: 503}
	if made.Number == r.acceptedAt {
		made.Status = 204
	}
	schedule := slices.Repeat(models.RetrySchedule{retryWait}, r.lastAttempt-1)
	next := made.NextStatus(schedule, models.TimeOf(now))
	r.state.Attempts, r.state.LastStatus = made.Number, &made.Status
	r.state.Status, r.state.NextAttemptAt = next.Status, next.Next
	return r.state
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
