package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"millwright/service"
	"millwright/service/store"
	"millwright/workflows"
)

// pollTime is the time after which Temporal responds to a poll without a task.
const pollTime = time.Minute

// polledTemporal is a Temporal without tasks, whose polls of a queue fail with the error of that queue.
type polledTemporal struct {
	errors map[string]error
	from   time.Time
}

// dialOption responds to every call without a connection.
func (p *polledTemporal) dialOption() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		poll, polls := request.(interface{ GetTaskQueue() *taskqueue.TaskQueue })
		if !polls || !strings.Contains(method, "/Poll") {
			return nil
		}
		if err := p.errors[queueOf(poll.GetTaskQueue())]; err != nil && !time.Now().Before(p.from) {
			return err
		}
		select {
		case <-time.After(pollTime):
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	})
}

// startPolling starts a worker on the Temporal, in a bubble.
func startPolling(t *testing.T, temporal *polledTemporal, polls *Polls) *Worker {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{
		HostPort: "passthrough:///none", Namespace: "test", WorkerHeartbeatInterval: -1, Logger: slog.New(slog.DiscardHandler),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{polls.DialOption(), temporal.dialOption()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := New(Options{
		Client: c, Namespace: "test", Service: &service.Service{Store: &store.Store{Options: store.Options{Now: time.Now}}}, Log: quiet,
		StopTimeout: 15 * time.Second,
	})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// Temporal rejects the polls of one queue for good, and the SDK stops polling it: the worker
// ends, with the reason, whatever queue it is.
func TestAWorkerThatStopsPollingEnds(t *testing.T) {
	for _, rejection := range []error{
		serviceerror.NewNamespaceNotFound("test"),
		serviceerror.NewInvalidArgument("no such thing"),
		serviceerror.NewClientVersionNotSupported("1", "sdk", "2"),
	} {
		for _, queue := range workflows.TaskQueues {
			t.Run(queue, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					temporal := &polledTemporal{map[string]error{queue: serviceerror.ToStatus(rejection).Err()}, time.Now().Add(10 * time.Minute)}
					w := startPolling(t, temporal, NewPolls(time.Now))
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					err := w.Wait(ctx)
					if err == nil || !strings.Contains(err.Error(), "task queue "+queue+":") || !strings.Contains(err.Error(), rejection.Error()) {
						t.Errorf("the worker ended with %v, want the queue and %q", err, rejection)
					}
					w.Stop()
				})
			})
		}
	}
}

// What may pass does not end the worker: polls that fail for a while, and a Temporal that is
// away or rejects the credentials.
func TestAWorkerOutlastsOutages(t *testing.T) {
	for name, rejection := range map[string]error{
		"no outage":            nil,
		"Temporal is away":     status.Error(codes.Unavailable, "connection refused"),
		"it rejects the key":   status.Error(codes.Unauthenticated, "expired"),
		"it forbids the calls": status.Error(codes.PermissionDenied, "no"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				temporal := &polledTemporal{map[string]error{}, time.Now()}
				for _, queue := range workflows.TaskQueues {
					temporal.errors[queue] = rejection
				}
				w := startPolling(t, temporal, NewPolls(time.Now))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				if err := w.Wait(ctx); err != nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("the worker ended with %v", err)
				}
				w.Stop()
			})
		})
	}
}

// The metric of a queue shows when Temporal last responded to a poll. An alert on it sees a worker
// that does not poll, even if it has not polled since its start.
func TestPollsAreExported(t *testing.T) {
	metric := func(queue string) string { return "worker_last_poll_timestamp_seconds " + queue }
	synctest.Test(t, func(t *testing.T) {
		polls := NewPolls(time.Now)
		started := time.Now()
		rejected := status.Error(codes.PermissionDenied, "no")
		temporal := &polledTemporal{map[string]error{workflows.TaskQueueRecords: rejected}, started.Add(10 * time.Minute)}
		for _, queue := range workflows.TaskQueues {
			wantMetrics(t, "before the start", gather(t, polls), map[string]float64{metric(queue): float64(started.Unix())})
		}
		w := startPolling(t, temporal, polls)
		defer w.Stop()
		for range 3 {
			<-time.After(10 * time.Minute) // on the bubble's clock
			for queue, at := range gather(t, polls) {
				age := float64(time.Now().UnixMilli())/1000 - at
				if stuck := queue == metric(workflows.TaskQueueRecords) && time.Since(started) > 11*time.Minute; stuck != (age > (pollTime + time.Second).Seconds()) {
					t.Errorf("after %s %s is %.1f s ago", time.Since(started), queue, age)
				}
			}
		}
	})
}
