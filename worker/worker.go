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
	Poker     service.Waker
	Sender    activities.Sender
	// Mailer sends notices by e-mail; nil leaves them in the app's inbox.
	Mailer activities.Mailer
	// IdleTimeout is how long a mailbox waits for more after its last delivery.
	IdleTimeout time.Duration
	// SweepEvery is how often what is owed is looked for.
	SweepEvery time.Duration
	// StopTimeout is how long running activities may take when the worker
	// stops; above the receivers' time limit.
	StopTimeout time.Duration
	// Watched counts, logs and traces what the activities do; nil does not.
	Watched *activities.Instrumentation
	Log     *slog.Logger
}

// requestsAtOnce bounds the requests to receivers in flight of one worker, beside
// the few that each address has to itself; mailsAtOnce the e-mails.
const (
	requestsAtOnce = 2000
	mailsAtOnce    = 8
)

// mailboxesAtOnce bounds the mailboxes of one worker: a lingering one holds an
// activity slot and costs nothing else. retriesAtOnce bounds its retries.
const (
	mailboxesAtOnce = 10_000
	retriesAtOnce   = 1000
)

// workflowsInMemory bounds the workflows that a process keeps ready. An open
// work order takes 35 KiB and rests for days; one that was let go is built again
// from its short history. The SDK's own bound would be 400 MB of them.
const workflowsInMemory = 2000

// What the records' workflows do at once. It is little: a burst of new work
// orders takes neither the database nor the processors from the mailboxes. Their
// mail, an activity for each record, waits for its turn among mailsAtOnce.
const (
	recordTasksAtOnce = 32
	recordLooksAtOnce = 8
	recordMailsAtOnce = 1000
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
	sdkworker.SetStickyWorkflowCacheSize(workflowsInMemory)
	queue := func(name string, options sdkworker.Options) sdkworker.Worker {
		options.WorkerStopTimeout = o.StopTimeout
		w := sdkworker.New(o.Client, name, options)
		Register(w)
		return w
	}
	busy := func(activitiesAtOnce int) sdkworker.Options {
		return sdkworker.Options{
			MaxConcurrentWorkflowTaskPollers: 8, MaxConcurrentActivityTaskPollers: 8,
			MaxConcurrentActivityExecutionSize: activitiesAtOnce,
		}
	}
	w, retries := queue(workflows.TaskQueue, busy(mailboxesAtOnce)), queue(workflows.TaskQueueRetries, busy(retriesAtOnce))
	records := queue(workflows.TaskQueueRecords, sdkworker.Options{
		MaxConcurrentWorkflowTaskPollers: 2, MaxConcurrentActivityTaskPollers: 2,
		MaxConcurrentWorkflowTaskExecutionSize:  recordTasksAtOnce,
		MaxConcurrentLocalActivityExecutionSize: recordLooksAtOnce,
		MaxConcurrentActivityExecutionSize:      recordMailsAtOnce,
	})
	now := o.Service.Now
	w.RegisterActivity(&activities.Dispatcher{
		Service: o.Service, Sender: o.Sender, Waker: o.Poker, Now: now, IdleTimeout: o.IdleTimeout,
		Poller: activities.NewDeliveryPoller(o.Service, o.Log), Shared: make(chan struct{}, requestsAtOnce),
		Instrumentation: o.Watched,
	})
	retries.RegisterActivity(&activities.Deliveries{Service: o.Service, Sender: o.Sender, Now: now, Instrumentation: o.Watched})
	records.RegisterActivity(&activities.Records{Service: o.Service, Mails: o.Mailer != nil})
	notices := &activities.Notices{Service: o.Service, Mailer: o.Mailer, AtOnce: make(chan struct{}, mailsAtOnce), Instrumentation: o.Watched}
	w.RegisterActivity(notices)
	records.RegisterActivity(notices)
	w.RegisterActivity(&activities.Sweeper{Service: o.Service, Waker: o.Poker, Grace: o.SweepEvery, Instrumentation: o.Watched})
	w.RegisterActivity(&activities.Housekeeper{Service: o.Service, Now: now, Batch: service.RemovalBatch, Instrumentation: o.Watched})
	return &Worker{[]sdkworker.Worker{w, retries, records}}
}

// Register registers every workflow under its name; replay tests use it too.
func Register(r sdkworker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(workflows.WebhookAddress, workflow.RegisterOptions{Name: workflows.WebhookAddressName})
	r.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryName})
	r.RegisterWorkflowWithOptions(workflows.WorkOrder, workflow.RegisterOptions{Name: workflows.WorkOrderName})
	r.RegisterWorkflowWithOptions(workflows.Feedback, workflow.RegisterOptions{Name: workflows.FeedbackName})
	r.RegisterWorkflowWithOptions(workflows.Sweep, workflow.RegisterOptions{Name: workflows.SweepName})
	r.RegisterWorkflowWithOptions(workflows.Housekeeping, workflow.RegisterOptions{Name: workflows.HousekeepingName})
}

// Prepare makes the cluster ready for the worker: search attributes and
// schedules. It may run any number of times.
func Prepare(ctx context.Context, o Options) error {
	if err := addSearchAttributes(ctx, o); err != nil {
		return err
	}
	return keepSchedules(ctx, o)
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

// HousekeepingEvery is how often what is past its life is removed.
const HousekeepingEvery = time.Hour

// schedule starts a workflow again and again; one that still runs is left alone.
type schedule struct {
	id, workflow string
	every        time.Duration
}

// schedules are all there are. Never change an id: the old schedule would go on.
func schedules(o Options) []schedule {
	return []schedule{
		{"sweep", workflows.SweepName, o.SweepEvery},
		{"housekeeping", workflows.HousekeepingName, HousekeepingEvery},
	}
}

// keepSchedules makes the schedules that are missing and brings the others up to date.
func keepSchedules(ctx context.Context, o Options) error {
	for _, s := range schedules(o) {
		if err := s.keep(ctx, o.Client.ScheduleClient()); err != nil {
			return err
		}
	}
	return nil
}

func (s schedule) keep(ctx context.Context, all client.ScheduleClient) error {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: s.every}}}
	action := &client.ScheduleWorkflowAction{ID: s.id, Workflow: s.workflow, TaskQueue: workflows.TaskQueue}
	_, err := all.Create(ctx, client.ScheduleOptions{
		ID: s.id, Spec: spec, Action: action, CatchupWindow: s.every,
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		if err != nil {
			return fmt.Errorf("create the schedule %q: %w", s.id, err)
		}
		return nil
	}
	err = all.GetHandle(ctx, s.id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			kept := in.Description.Schedule
			kept.Spec, kept.Action = &spec, action
			return &client.ScheduleUpdate{Schedule: &kept}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update the schedule %q: %w", s.id, err)
	}
	return nil
}
