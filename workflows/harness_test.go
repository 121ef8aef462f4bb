package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	deliveryID     = "dlv_01jd8q4v6cf5e8hbbfwj0zq3tk"
	webhookID      = "whk_01jd8q4v6cf5e8hbbfwj0zq3tm"
	integrationID  = "idn_01jd8q4v6cf5e8hbbfwj0zq3tn"
	organizationID = "idn_01jd8q4v6cf5e8hbbfwj0zq3tp"
	recordID       = "wo_01jd8q4v6cf5e8hbbfwj0zq3tq"
	feedbackID     = "iss_01jd8q4v6cf5e8hbbfwj0zq3tu"
	eventID        = "evt_01jd8q4v6cf5e8hbbfwj0zq3tr"
	personID       = "idn_01jd8q4v6cf5e8hbbfwj0zq3ts"
)

// asPerson is the input of an update as the person.
const asPerson = `{"person": "` + personID + `"}`

// consolePage is the page that the details link to.
const consolePage = "https://millwright.test/console/page"

// began is when the clock of every test starts.
var began = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// maxCalls ends a workflow that loops.
const maxCalls = 1000

// harness runs one workflow in Temporal's test environment on a simulated clock,
// with actions planned at times after its beginning. deliveryHarness, recordHarness
// and addressHarness add the activities' fakes.
type harness struct {
	t        reporter
	observer *observer
	env      *testsuite.TestWorkflowEnvironment
	planned  []plannedAction
	// historyLength is the length of the history that the workflow sees.
	historyLength int
	// updatedAt is when the last update returned.
	updatedAt time.Duration
	// alwaysContinueAsNew makes Temporal suggest to continue as new after every step.
	alwaysContinueAsNew bool

	runs  int           // including those continued as new
	ended time.Duration // after the beginning
	err   error         // of the workflow

	mu sync.Mutex // guards the fakes' data
}

type plannedAction struct {
	at   time.Duration
	do   func()
	done bool
}

func newHarness(t reporter) harness {
	return harness{t: t, observer: &observer{startWithWake: true}}
}

// at plans an action.
func (h *harness) at(when string, do func()) {
	h.planned = append(h.planned, plannedAction{at: durations(when)[0], do: do})
}

// change plans a change of the fakes' data.
func (h *harness) change(when string, do func()) {
	h.at(when, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		do()
	})
}

// signal plans a signal at each of the times.
func (h *harness) signal(name, times string) {
	for at := range strings.FieldsSeq(times) {
		h.at(at, func() { h.env.SignalWorkflow(name, nil) })
	}
}

// now is the time since the beginning.
func (h *harness) now() time.Duration {
	if h.env == nil {
		return 0
	}
	return h.env.Now().Sub(began)
}

// runOnce executes the workflow in a new environment that starts at the time and
// performs the actions planned from then on.
func (h *harness) runOnce(start time.Time, register, execute func(*testsuite.TestWorkflowEnvironment)) {
	h.runs++
	h.env = newEnvironment(start, h.observer)
	h.env.SetContinueAsNewSuggested(h.alwaysContinueAsNew)
	h.env.SetCurrentHistoryLength(h.historyLength)
	register(h.env)
	for i := range h.planned {
		if p := &h.planned[i]; !p.done {
			h.env.RegisterDelayedCallback(func() { p.done = true; p.do() }, max(1, p.at-start.Sub(began)))
		}
	}
	execute(h.env)
	h.mu.Lock() // a local activity that timed out may still run
	defer h.mu.Unlock()
	h.ended, h.err = h.now(), h.env.GetWorkflowError()
}

// wantEnd checks that the workflow ended at the time without an error.
func (h *harness) wantEnd(when string) {
	h.t.Helper()
	if h.err != nil {
		h.t.Errorf("the workflow ended with the error %v", h.err)
	}
	if want := durations(when)[0]; h.ended.Truncate(time.Millisecond) != want {
		h.t.Errorf("the workflow ended at %v, want %v", h.ended, want)
	}
}

// newEnvironment returns a test environment whose clock starts at the time.
func newEnvironment(start time.Time, o *observer) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(start)
	env.SetTestTimeout(time.Minute) // of real time, for a busy machine
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{o}})
	return env
}

// register registers the fake of an activity, which has the type of the actual one.
func register[F any](r sdkworker.ActivityRegistry, name string, _ /* actual */, fake F) {
	r.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
}

// observer records what the Temporal UI shows of a workflow: the summaries of its
// activities and timers, its details and its search attributes.
type observer struct {
	interceptor.WorkerInterceptorBase
	// startWithWake starts the workflow with a waiting wake, as SignalWithStart does.
	startWithWake bool

	steps   []step
	timers  []timer
	markers []string
	shown   []shown
}

// step is a scheduled activity.
type step struct {
	at      time.Duration
	name    string
	options workflow.ActivityOptions
}

type timer struct {
	at, wait time.Duration
	summary  string
}

// shown is the search attributes and details after a change.
type shown struct {
	at         time.Duration
	attributes map[string]string
	details    string
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
	if i.o.startWithWake {
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
		policy.MaximumAttempts = math.MaxInt32 // what 0 means to the server; to the test environment it means 10
		ctx = workflow.WithRetryPolicy(ctx, policy)
	}
	return i.Next.ExecuteActivity(ctx, name, args...)
}

func (i *observedOutbound) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	options := workflow.GetLocalActivityOptions(ctx)
	i.o.steps = append(i.o.steps, step{sinceBeginning(ctx), name, workflow.ActivityOptions{
		Summary: options.Summary, RetryPolicy: options.RetryPolicy,
		StartToCloseTimeout: options.StartToCloseTimeout, ScheduleToCloseTimeout: options.ScheduleToCloseTimeout,
	}})
	return i.Next.ExecuteLocalActivity(ctx, name, args...)
}

func (i *observedOutbound) NewTimerWithOptions(ctx workflow.Context, wait time.Duration, options workflow.TimerOptions) workflow.Future {
	i.o.timers = append(i.o.timers, timer{sinceBeginning(ctx), wait, options.Summary})
	return i.Next.NewTimerWithOptions(ctx, wait, options)
}

func (i *observedOutbound) SideEffectWithOptions(
	ctx workflow.Context, options workflow.SideEffectOptions, f func(workflow.Context) any,
) converter.EncodedValue {
	i.o.markers = append(i.o.markers, sinceBeginning(ctx).String()+" "+options.Summary)
	return i.Next.SideEffectWithOptions(ctx, options, f)
}

func (i *observedOutbound) UpsertTypedSearchAttributes(ctx workflow.Context, attributes ...temporal.SearchAttributeUpdate) error {
	err := i.Next.UpsertTypedSearchAttributes(ctx, attributes...)
	now := map[string]string{}
	set := i.GetTypedSearchAttributes(ctx)
	for _, key := range Attributes {
		switch key := key.(type) {
		case temporal.SearchAttributeKeyKeyword:
			if value, ok := set.GetKeyword(key); ok {
				now[key.GetName()] = value
			}
		case temporal.SearchAttributeKeyInt64:
			if value, ok := set.GetInt64(key); ok {
				now[key.GetName()] = fmt.Sprint(value)
			}
		case temporal.SearchAttributeKeyTime:
			if value, ok := set.GetTime(key); ok {
				now[key.GetName()] = value.Sub(began).String()
			}
		}
	}
	i.o.shown = append(i.o.shown, shown{sinceBeginning(ctx), now, workflow.GetCurrentDetails(ctx)})
	return err
}

func sinceBeginning(ctx workflow.Context) time.Duration { return workflow.Now(ctx).Sub(began) }

// durations parses "1m 2h36m" as times after the beginning.
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

// continuesAs checks that a run ended by continuing as the workflow with the id, and decodes
// the other arguments of the next run.
func continuesAs(t reporter, err error, workflowName, id string, passed ...any) {
	t.Helper()
	next, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok {
		t.Fatalf("the run ended with %v, want it to continue as new", err)
	}
	var argument string
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, append([]any{&argument}, passed...)...); err != nil {
		t.Fatalf("it continues with %v", err)
	}
	if next.WorkflowType.Name != workflowName || argument != id {
		t.Errorf("it continues as %s(%q), want %s(%q)", next.WorkflowType.Name, argument, workflowName, id)
	}
}

// updateResult is what an update's caller gets: its result as JSON, or "rejected: " by the
// validator or "failed: " in the handler, and the sentence of the error, whose type is kind.
type updateResult struct {
	at            time.Duration
	outcome, kind string
}

// update plans an update with the input, which is JSON or "". It returns where its
// outcome will be.
func (h *harness) update(when, name, input string) *updateResult {
	result := &updateResult{at: -1}
	h.at(when, func() { h.send(name, name+when, input, result) })
	return result
}

// send sends an update with the id.
func (h *harness) send(name, id, input string, result *updateResult) {
	var arguments []any
	if input != "" {
		arguments = append(arguments, json.RawMessage(input))
	}
	h.env.UpdateWorkflow(name, id, &callbacks{h, result}, arguments...)
}

type callbacks struct {
	h      *harness
	result *updateResult
}

func (*callbacks) Accept() {}

func (c *callbacks) Reject(err error) { c.failed("rejected: ", err) }

func (c *callbacks) failed(how string, err error) {
	c.result.at, c.result.outcome = c.h.now(), how+err.Error()
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		c.result.outcome, c.result.kind = how+failed.Message(), failed.Type()
	}
}

func (c *callbacks) Complete(value any, err error) {
	c.h.updatedAt = c.h.now()
	if err != nil {
		c.failed("failed: ", err)
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	c.result.at, c.result.outcome = c.h.now(), string(text)
}

// metadata returns what the Temporal UI queries: the current details, and the signals,
// queries and updates with their descriptions.
func (h *harness) metadata() *sdk.WorkflowMetadata {
	h.t.Helper()
	var metadata sdk.WorkflowMetadata
	value, err := h.env.QueryWorkflow("__temporal_workflow_metadata")
	if err == nil {
		err = value.Get(&metadata)
	}
	if err != nil {
		h.t.Fatalf("query the metadata: %v", err)
	}
	return &metadata
}

func (h *harness) details() string { return h.metadata().GetCurrentDetails() }

func checkAttributes(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("search attributes %v, want %v", got, want)
	}
}

// reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

var _ reporter = (*testing.T)(nil)
