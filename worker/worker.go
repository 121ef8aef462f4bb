package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/service"
	"millwright/workflows"
)

// Options are what a Worker is made of.
type Options struct {
	Client    client.Client
	Namespace string
	Service   *service.Service
	Poker     service.Poker
	Sender    activities.Sender
	// Linger is how long a mailbox waits for more after its last delivery.
	Linger time.Duration
	// SweepEvery is how often what is owed is looked for.
	SweepEvery time.Duration
	// StopTimeout is how long running activities may take when the worker
	// stops; above the receivers' time limit.
	StopTimeout time.Duration
	Log         *slog.Logger
}

// The defaults of Options.
const (
	DefaultLinger      = 5 * time.Second
	DefaultSweepEvery  = 10 * time.Second
	DefaultStopTimeout = 15 * time.Second
)

// requestsAtOnce bounds the requests to receivers in flight of one worker.
const requestsAtOnce = 2000

// mailboxesAtOnce bounds the mailboxes of one worker: a lingering one holds an
// activity slot and costs nothing else. retriesAtOnce bounds its retries.
const (
	mailboxesAtOnce = 10_000
	retriesAtOnce   = 1000
)

// Worker runs workflows and activities of every task queue.
type Worker struct{ queues []sdkworker.Worker }

// Start begins to work, after Prepare. It fails when Temporal refuses.
func (w *Worker) Start() error {
	for i, queue := range w.queues {
		if err := queue.Start(); err != nil {
			(&Worker{w.queues[:i]}).Stop()
			return err
		}
	}
	return nil
}

// Stop takes no more work and waits for what is running, up to Options.StopTimeout.
func (w *Worker) Stop() {
	var stopped sync.WaitGroup
	for _, queue := range w.queues {
		stopped.Go(queue.Stop)
	}
	stopped.Wait()
}

// New returns a worker with everything registered.
func New(o Options) *Worker {
	queue := func(name string, activitiesAtOnce int) sdkworker.Worker {
		w := sdkworker.New(o.Client, name, sdkworker.Options{
			MaxConcurrentWorkflowTaskPollers:   8,
			MaxConcurrentActivityTaskPollers:   8,
			MaxConcurrentActivityExecutionSize: activitiesAtOnce,
			WorkerStopTimeout:                  o.StopTimeout,
		})
		Register(w)
		return w
	}
	w, retries := queue(workflows.TaskQueue, mailboxesAtOnce), queue(workflows.TaskQueueRetries, retriesAtOnce)
	now := o.Service.Now
	w.RegisterActivity(&activities.Mailbox{
		Service: o.Service, Sender: o.Sender, Poker: o.Poker, Now: now, Linger: o.Linger,
		Watch: activities.NewWatch(o.Service, o.Log), Shared: make(chan struct{}, requestsAtOnce),
	})
	retries.RegisterActivity(&activities.Deliveries{Service: o.Service, Sender: o.Sender, Now: now})
	w.RegisterActivity(&activities.Sweeper{Service: o.Service, Poker: o.Poker, Grace: o.SweepEvery})
	return &Worker{[]sdkworker.Worker{w, retries}}
}

// Register registers every workflow under its name; replay tests use it too.
func Register(r sdkworker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(workflows.WebhookAddress, workflow.RegisterOptions{Name: workflows.WebhookAddressName})
	r.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryName})
	r.RegisterWorkflowWithOptions(workflows.Sweep, workflow.RegisterOptions{Name: workflows.SweepName})
}

// Prepare makes the cluster ready for the worker: search attributes and
// schedules. It may run any number of times.
func Prepare(ctx context.Context, o Options) error {
	if err := addSearchAttributes(ctx, o); err != nil {
		return err
	}
	return keepSweepSchedule(ctx, o)
}

func addSearchAttributes(ctx context.Context, o Options) error {
	operator := o.Client.OperatorService()
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: o.Namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of namespace %q: %w", o.Namespace, err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, key := range workflows.Attributes {
		if _, there := known.GetCustomAttributes()[key.GetName()]; !there {
			missing[key.GetName()] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: o.Namespace, SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("add search attributes to namespace %q: %w", o.Namespace, err)
	}
	return nil
}

// sweepSchedule is the schedule's id.
const sweepSchedule = "sweep"

func keepSweepSchedule(ctx context.Context, o Options) error {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: o.SweepEvery}}}
	action := &client.ScheduleWorkflowAction{ID: sweepSchedule, Workflow: workflows.SweepName, TaskQueue: workflows.TaskQueue}
	_, err := o.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: sweepSchedule, Spec: spec, Action: action, CatchupWindow: o.SweepEvery,
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		if err != nil {
			return fmt.Errorf("create the schedule %q: %w", sweepSchedule, err)
		}
		return nil
	}
	err = o.Client.ScheduleClient().GetHandle(ctx, sweepSchedule).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := in.Description.Schedule
			schedule.Spec, schedule.Action = &spec, action
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update the schedule %q: %w", sweepSchedule, err)
	}
	return nil
}
