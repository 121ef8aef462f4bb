package workflows

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// began is when the clock of every test starts.
var began = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// observer sees of a workflow what the Temporal UI shows: the summaries of its
// activities and timers, its details and its search attributes.
type observer struct {
	interceptor.WorkerInterceptorBase
	// poked starts the workflow with a waiting poke, as SignalWithStart does.
	poked bool

	steps []step
	rests []rest
	shown []shown
}

// step is an activity as it was asked for.
type step struct {
	at      time.Duration
	name    string
	options workflow.ActivityOptions
}

// rest is a timer.
type rest struct {
	at, wait time.Duration
	summary  string
}

// shown is one state of the search attributes and details.
type shown struct {
	at         time.Duration
	attributes map[string]string
	details    string
}

// newEnvironment returns a test environment whose clock starts at the given time.
func newEnvironment(start time.Time, seen *observer) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(start)
	env.SetTestTimeout(time.Minute) // of real time, for a machine with other things to do
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{seen}})
	return env
}

func (o *observer) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &observedInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, o}
}

type observedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	o *observer
}

func (i *observedInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&observedOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.o})
}

func (i *observedInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if i.o.poked {
		if err := i.HandleSignal(ctx, &interceptor.HandleSignalInput{SignalName: SignalWake}); err != nil {
			return nil, err
		}
	}
	return i.Next.ExecuteWorkflow(ctx, in)
}

type observedOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	o *observer
}

func (i *observedOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	i.o.steps = append(i.o.steps, step{sinceBeginning(ctx), name, options})
	if policy := *options.RetryPolicy; policy.MaximumAttempts == 0 {
		policy.MaximumAttempts = math.MaxInt32 // the server's meaning of 0; the test environment's is 10
		ctx = workflow.WithRetryPolicy(ctx, policy)
	}
	return i.Next.ExecuteActivity(ctx, name, args...)
}

func (i *observedOutbound) NewTimerWithOptions(ctx workflow.Context, wait time.Duration, options workflow.TimerOptions) workflow.Future {
	i.o.rests = append(i.o.rests, rest{sinceBeginning(ctx), wait, options.Summary})
	return i.Next.NewTimerWithOptions(ctx, wait, options)
}

func (i *observedOutbound) UpsertTypedSearchAttributes(ctx workflow.Context, attributes ...temporal.SearchAttributeUpdate) error {
	err := i.Next.UpsertTypedSearchAttributes(ctx, attributes...)
	now := map[string]string{}
	for _, key := range Attributes {
		if value, ok := i.GetTypedSearchAttributes(ctx).GetKeyword(key); ok {
			now[key.GetName()] = value
		}
	}
	i.o.shown = append(i.o.shown, shown{sinceBeginning(ctx), now, workflow.GetCurrentDetails(ctx)})
	return err
}

func sinceBeginning(ctx workflow.Context) time.Duration { return workflow.Now(ctx).Sub(began) }

// durations reads "1m 2h36m" as times after the beginning.
func durations(text string) []time.Duration {
	var all []time.Duration
	for word := range strings.FieldsSeq(text) {
		d, err := time.ParseDuration(word)
		if err != nil {
			panic(err)
		}
		all = append(all, d)
	}
	return all
}

// reporter is a *testing.T or one of package rapid's.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

var _ reporter = (*testing.T)(nil)
