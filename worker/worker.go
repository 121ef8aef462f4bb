package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/service"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/workflows"
)

// Options configure a Worker.
type Options struct {
	Client    client.Client
	Namespace string
	Service   *service.Service
	Waker     store.Waker
	Sender    activities.Sender
	// Mailer sends notices and sign-in links by e-mail. Without one notices stay in the console's inbox.
	Mailer activities.Mailer
	// OperatorActions is true if operators may act on records in Temporal.
	OperatorActions bool
	// IdleTimeout is the time for which a dispatch waits for more after its last delivery.
	IdleTimeout time.Duration
	// SweepEvery is the sweep's interval.
	SweepEvery time.Duration
	// StopTimeout bounds how long Stop waits for running activities; longer than
	// the time limit for receivers.
	StopTimeout time.Duration
	Limits      Limits
	// Deployment is the version as which the worker runs; the zero value if it is not versioned.
	Deployment Version
	// Instrumentation counts, logs and traces what activities do; it may be nil.
	Instrumentation *activities.Instrumentation
	Log             *slog.Logger
}

// Version is a version of a worker deployment in Temporal. Its workers run nothing until
// the deployment makes it the current version.
type Version struct{ Deployment, BuildID string }

// options returns the SDK's options. Workflows move to the current version with their next
// task, since they are open for as long as a record or an address.
func (v Version) options() sdkworker.DeploymentOptions {
	if v == (Version{}) {
		return sdkworker.DeploymentOptions{}
	}
	return sdkworker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   sdkworker.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: v.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

// Limits are what a worker process does at a time.
type Limits struct {
	// Pollers are the polls of each task queue for workflows and as many for activities. With 0 the SDK adds and removes
	// them as Temporal advises. Each that a worker cut off from Temporal leaves behind delays a takeover.
	Pollers int
	// RecordTasks bounds the workflow tasks of records. It is low, so that a burst of new work orders leaves the database
	// and the CPUs to deliveries.
	RecordTasks int
	// Retries bounds the attempts of failing deliveries, of all addresses; half as many begin in a second.
	Retries int
	// CachedWorkflows bounds the workflows in memory. An open work order takes
	// 35 KiB and sleeps for days; one not in the cache is replayed from its short
	// history. The SDK's default would take 400 MB.
	CachedWorkflows int
}

// The limits that are no settings.
const (
	// sharedRequests bounds requests to receivers in flight, in addition to those
	// reserved for each address.
	sharedRequests = 2000
	// concurrentMails bounds the organizations whose mail is sent at a time, each over one connection.
	concurrentMails = 100
	// A dispatch that waits for more deliveries holds an activity slot and costs
	// nothing else.
	concurrentDispatches = 10_000
)

// Worker runs the workflows and activities of every task queue.
type Worker struct {
	queues []sdkworker.Worker
	// failed receives why the first queue ended by itself.
	failed chan error
}

// New returns a worker with everything registered.
func New(o Options) *Worker {
	sdkworker.SetStickyWorkflowCacheSize(o.Limits.CachedWorkflows)
	failed := make(chan error, len(workflows.TaskQueues))
	queue := func(name string, options sdkworker.Options) sdkworker.Worker {
		options.WorkerStopTimeout = o.StopTimeout
		options.OnFatalError = func(err error) { failed <- fmt.Errorf("task queue %s: %w", name, err) }
		options.DeploymentOptions = o.Deployment.options()
		polls := sdkworker.NewPollerBehaviorAutoscaling(sdkworker.PollerBehaviorAutoscalingOptions{})
		if o.Limits.Pollers > 0 {
			polls = sdkworker.NewPollerBehaviorSimpleMaximum(sdkworker.PollerBehaviorSimpleMaximumOptions{MaximumNumberOfPollers: o.Limits.Pollers})
		}
		options.WorkflowTaskPollerBehavior, options.ActivityTaskPollerBehavior = polls, polls
		w := sdkworker.New(o.Client, name, options)
		if !options.DisableWorkflowWorker {
			Register(w)
		}
		return w
	}
	main := queue(workflows.TaskQueue, sdkworker.Options{MaxHeartbeatThrottleInterval: activities.MaxHeartbeatThrottle})
	webhooks := queue(workflows.TaskQueueWebhooks, sdkworker.Options{
		MaxConcurrentActivityExecutionSize: concurrentDispatches,
		MaxHeartbeatThrottleInterval:       activities.MaxHeartbeatThrottle,
	})
	deliveries := queue(workflows.TaskQueueDeliveries, sdkworker.Options{})
	retries := queue(workflows.TaskQueueRetries, sdkworker.Options{
		DisableWorkflowWorker: true, MaxConcurrentActivityExecutionSize: o.Limits.Retries, WorkerActivitiesPerSecond: float64(o.Limits.Retries) / 2,
	})
	records := queue(workflows.TaskQueueRecords, sdkworker.Options{
		MaxConcurrentWorkflowTaskExecutionSize:  o.Limits.RecordTasks,
		MaxConcurrentLocalActivityExecutionSize: max(1, o.Limits.RecordTasks/4),
	})
	mail := queue(workflows.TaskQueueMail, sdkworker.Options{MaxConcurrentActivityExecutionSize: concurrentMails})
	registerActivities(o, main, webhooks, deliveries, retries, records)
	(&activities.Mails{Service: o.Service, Mailer: o.Mailer, Now: o.Service.Store.Now, Instrumentation: o.Instrumentation}).Register(mail)
	return &Worker{[]sdkworker.Worker{main, webhooks, deliveries, retries, records, mail}, failed}
}

// registerActivities registers the activities of each queue's workflows.
func registerActivities(o Options, main, webhooks, deliveries, retries, records sdkworker.Worker) {
	now, instrumentation := o.Service.Store.Now, o.Instrumentation
	dispatcher := &activities.Dispatcher{
		Service: o.Service, Sender: o.Sender, Waker: o.Waker, Now: now, IdleTimeout: o.IdleTimeout, Log: o.Log,
		Arrivals: activities.NewArrivals(o.Service, o.Log), SharedSlots: make(chan struct{}, sharedRequests),
		Instrumentation: instrumentation,
	}
	sweeper := &activities.Sweeper{Service: o.Service, Waker: o.Waker, Grace: o.SweepEvery, Open: openWorkflows{o.Client}, Instrumentation: instrumentation}
	housekeeper := &activities.Housekeeper{
		Service: o.Service, Now: now, BatchSize: upkeep.RemovalBatch, Interval: activities.HousekeepingInterval, Instrumentation: instrumentation,
	}
	sweeper.Register(main)
	housekeeper.Register(main)
	dispatcher.Register(webhooks)
	(&activities.Addresses{Service: o.Service, Sender: o.Sender, Instrumentation: instrumentation}).Register(webhooks)
	failing := &activities.Deliveries{Service: o.Service, Sender: o.Sender, Waker: o.Waker, Now: now, Instrumentation: instrumentation}
	failing.Register(deliveries)
	failing.RegisterAttempt(retries)
	(&activities.Records{Service: o.Service, OperatorActions: o.OperatorActions}).Register(records)
}

// Register registers every workflow under its name. Replay tests use it too.
func Register(r sdkworker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(workflows.WebhookAddress, workflow.RegisterOptions{Name: workflows.WebhookAddressName})
	r.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryName})
	r.RegisterWorkflowWithOptions(workflows.WorkOrder, workflow.RegisterOptions{Name: workflows.WorkOrderName})
	r.RegisterWorkflowWithOptions(workflows.Feedback, workflow.RegisterOptions{Name: workflows.FeedbackName})
	r.RegisterWorkflowWithOptions(workflows.Mail, workflow.RegisterOptions{Name: workflows.MailName})
	r.RegisterWorkflowWithOptions(workflows.Sweep, workflow.RegisterOptions{Name: workflows.SweepName})
	r.RegisterWorkflowWithOptions(workflows.Housekeeping, workflow.RegisterOptions{Name: workflows.HousekeepingName})
}

// Start starts the worker; call Prepare first. It fails if Temporal cannot be
// reached or rejects the worker.
func (w *Worker) Start() error {
	for i, queue := range w.queues {
		if err := queue.Start(); err != nil {
			(&Worker{queues: w.queues[:i]}).Stop()
			return err
		}
	}
	return nil
}

// Wait returns nil when the context ends, or an error as soon as Temporal rejects the polls
// of a queue for good, for example because the namespace has been missing for two minutes. The SDK
// does not poll that queue again: stop the worker then, and start a new process.
func (w *Worker) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.failed:
		return err
	}
}

// Stop accepts no new work and waits for running activities, at most Options.StopTimeout.
func (w *Worker) Stop() {
	var stopped sync.WaitGroup
	for _, queue := range w.queues {
		stopped.Go(queue.Stop)
	}
	stopped.Wait()
}

// Prepare creates the search attributes and schedules that the worker needs. It
// may run any number of times.
func Prepare(ctx context.Context, o Options) error {
	if err := addSearchAttributes(ctx, o); err != nil {
		return err
	}
	return ensureSchedules(ctx, o)
}

func addSearchAttributes(ctx context.Context, o Options) error {
	operator := o.Client.OperatorService()
	known, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: o.Namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of namespace %q: %w", o.Namespace, err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, key := range workflows.Attributes {
		if _, found := known.GetCustomAttributes()[key.GetName()]; !found {
			missing[key.GetName()] = key.GetValueType()
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
