package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
	"millwright/worker"
	"millwright/workflows"
)

// identity stands in a recorded history for the process and host that made it.
const identity = "recorder"

// soon is the recordings' wait between two attempts.
const soon = 300 * time.Millisecond

// stage runs the real workflows on a real Temporal, with activities that only pretend.
type stage struct {
	client client.Client

	mu     sync.Mutex
	rows   map[string]*row
	rounds map[string][]round // of each mailbox, first to last
	sheets map[string]*sheet  // of each work order and feedback
}

// round is one round of a mailbox.
type round func(context.Context) (activities.DispatchResult, error)

// row is a delivery whose first attempt failed.
type row struct {
	state service.DeliveryState
	// acceptedAt is the attempt the receiver takes, givenUpAt the last of the schedule.
	acceptedAt, givenUpAt int
	addressOff            bool
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
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Identity: identity, Logger: log.NewStructuredLogger(quiet)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := worker.Prepare(ctx, worker.Options{Client: c, Namespace: client.DefaultNamespace, SweepEvery: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	s := &stage{client: c, rows: map[string]*row{}, rounds: map[string][]round{}, sheets: map[string]*sheet{}}
	for _, queue := range []string{workflows.TaskQueue, workflows.TaskQueueRetries, workflows.TaskQueueRecords} {
		w := sdkworker.New(c, queue, sdkworker.Options{Identity: identity})
		worker.Register(w)
		w.RegisterActivity(&actors{s})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	for _, r := range recordings {
		id, err := r.play(ctx, s)
		if err != nil {
			t.Fatalf("%s: %v", r.file, err)
		}
		if err := c.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			t.Fatalf("%s: the workflow ended with %v", r.file, err)
		}
		if err := s.write(ctx, id, r.file); err != nil {
			t.Fatalf("%s: %v", r.file, err)
		}
	}
}

// The recordings, one function each.

func playDeliveredAtTheSecondAttempt(ctx context.Context, s *stage) (string, error) {
	return s.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3ta", row{acceptedAt: 2, givenUpAt: 8}, soon)
}

func playFailedThenRedelivered(ctx context.Context, s *stage) (string, error) {
	id, err := s.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3tb", row{acceptedAt: 4, givenUpAt: 3}, soon)
	return id, errors.Join(err,
		s.signalAfter(ctx, id, "AttemptDelivery timer AttemptDelivery timer", workflows.SignalRedeliver),
	)
}

func playPokedStoppedRedelivered(ctx context.Context, s *stage) (string, error) {
	id, err := s.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3tc", row{acceptedAt: 2, givenUpAt: 8}, time.Hour)
	return id, errors.Join(err,
		s.signalAfter(ctx, id, "!poke LoadDelivery timer", workflows.SignalWake),
		s.signalAfter(ctx, id, "!poke LoadDelivery timer !poke LoadDelivery timer", workflows.SignalStop),
		s.signalAfter(ctx, id, "StopDelivery timer", workflows.SignalRedeliver),
	)
}

func playHeld(ctx context.Context, s *stage) (string, error) {
	return s.deliver(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3td", row{givenUpAt: 8, addressOff: true}, soon)
}

func playMailboxPokedBetweenRounds(ctx context.Context, s *stage) (string, error) {
	const webhook = "whk_01jd8q4v6cf5e8hbbfwj0zq3te"
	return s.receive(ctx, webhook,
		func(ctx context.Context) (activities.DispatchResult, error) {
			err := s.client.SignalWorkflow(ctx, workflows.WebhookAddressID(webhook), "", workflows.SignalWake, nil)
			return activities.DispatchResult{Delivered: 2}, err
		},
		func(context.Context) (activities.DispatchResult, error) {
			return activities.DispatchResult{Delivered: 1}, nil
		},
	)
}

func playMailboxWithMore(ctx context.Context, s *stage) (string, error) {
	return s.receive(ctx, "whk_01jd8q4v6cf5e8hbbfwj0zq3tf",
		func(context.Context) (activities.DispatchResult, error) {
			return activities.DispatchResult{Delivered: 100, More: true}, nil
		},
		func(context.Context) (activities.DispatchResult, error) {
			return activities.DispatchResult{Delivered: 7, Failed: 1}, nil
		},
	)
}

func playSweep(ctx context.Context, s *stage) (string, error) {
	const id = "sweep"
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.SweepName)
	return id, err
}

// deliver has a delivery fail its first attempt, and pokes.
func (s *stage) deliver(ctx context.Context, id string, r row, wait time.Duration) (workflowID string, err error) {
	now := time.Now()
	next, code := models.TimeOf(now.Add(wait)), 503
	r.state = service.DeliveryState{
		DeliveryID: id, WebhookID: "whk_01jd8q4v6cf5e8hbbfwj0zq3tm",
		IntegrationID: "idn_01jd8q4v6cf5e8hbbfwj0zq3tn", OrganizationID: "idn_01jd8q4v6cf5e8hbbfwj0zq3tp",
		RecordID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tq", EventID: "evt_01jd8q4v6cf5e8hbbfwj0zq3tr",
		EventType: models.EventWorkOrderCreated, Status: models.DeliveryRetrying, Attempts: 1,
		NextAttemptAt: &next, LastStatus: &code, CreatedAt: models.TimeOf(now), KeptUntil: models.TimeOf(now.Add(models.EventRetention)),
	}
	s.mu.Lock()
	s.rows[id] = &r
	s.mu.Unlock()
	return workflows.DeliveryID(id), s.wake(ctx, service.WakeTarget{Kind: service.TargetDelivery, ID: id})
}

// receive has deliveries pending for an address, and pokes.
func (s *stage) receive(ctx context.Context, webhookID string, rounds ...round) (workflowID string, err error) {
	s.mu.Lock()
	s.rounds[webhookID] = rounds
	s.mu.Unlock()
	return workflows.WebhookAddressID(webhookID), s.wake(ctx, service.WakeTarget{Kind: service.TargetWebhook, ID: webhookID})
}

// wake starts a workflow the way a process that wrote something does.
func (s *stage) wake(ctx context.Context, work service.WakeTarget) error {
	poker := worker.NewWaker(ctx, s.client, slog.New(slog.DiscardHandler))
	poker.Wake(work)
	poker.Stop(ctx)
	return ctx.Err()
}

// signalAfter sends a signal when the workflow's history shows the words, in their order.
func (s *stage) signalAfter(ctx context.Context, workflowID, words, signal string) error {
	left := strings.Fields(words)
	events := s.client.GetWorkflowHistory(ctx, workflowID, "", true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for len(left) > 0 && events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		if left[0] == wordFor(event) {
			left = left[1:]
		}
	}
	return s.client.SignalWorkflow(ctx, workflowID, "", signal, nil)
}

// actors are the activities.
type actors struct{ *stage }

func (a *actors) LoadDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[id].state, nil
}

func (a *actors) AttemptDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[id].attempt(time.Now()), nil
}

func (a *actors) RedeliverDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	return a.AttemptDelivery(ctx, id)
}

func (a *actors) StopDelivery(_ context.Context, id string) (service.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.rows[id]
	r.state.Status, r.state.NextAttemptAt = models.DeliveryFailed, nil
	return r.state, nil
}

func (a *actors) DrainMailbox(ctx context.Context, webhookID string) (activities.DispatchResult, error) {
	a.mu.Lock()
	next := a.rounds[webhookID][0]
	a.rounds[webhookID] = a.rounds[webhookID][1:]
	a.mu.Unlock()
	return next(ctx)
}

func (a *actors) PokeOwed(context.Context) (int, error) { return 3, nil }

func (r *row) attempt(now time.Time) service.DeliveryState {
	if r.addressOff {
		r.state.Status, r.state.NextAttemptAt = models.DeliveryHeld, nil
		return r.state
	}
	r.state.Attempts++
	code := 503
	r.state.Status, r.state.NextAttemptAt = models.DeliveryFailed, nil
	switch {
	case r.state.Attempts == r.acceptedAt:
		code = 204
		r.state.Status = models.DeliveryDelivered
	case r.state.Attempts < r.givenUpAt:
		next := models.TimeOf(now.Add(soon))
		r.state.Status, r.state.NextAttemptAt = models.DeliveryRetrying, &next
	}
	r.state.LastStatus = &code
	return r.state
}

// write keeps the workflow's history, an event a line, without traces of this machine.
func (s *stage) write(ctx context.Context, workflowID, file string) error {
	var lines []string
	events := s.client.GetWorkflowHistory(ctx, workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		line, err := plain(event)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
	}
	text := "{\"events\": [\n" + strings.Join(lines, ",\n") + "\n]}\n"
	return os.WriteFile(filepath.Join("testdata", file), []byte(text), 0o644)
}

// plain is the event in JSON.
func plain(event *history.HistoryEvent) ([]byte, error) {
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

// anonymize replaces what names the process, its host or its binary.
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
