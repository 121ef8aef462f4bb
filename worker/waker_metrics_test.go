package worker

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"

	"millwright/service/store"
)

// tracedTemporal records the trace of each wake.
type tracedTemporal struct {
	client.Client
	mu     sync.Mutex
	traces map[string][]string
}

func (c *tracedTemporal) SignalWithStartWorkflow(
	ctx context.Context, id, _ string, _ any, _ client.StartWorkflowOptions, _ any, _ ...any,
) (client.WorkflowRun, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.traces[id] = append(c.traces[id], trace.SpanContextFromContext(ctx).TraceID().String()[:4])
	return nil, nil
}

func (c *tracedTemporal) SignalWorkflow(context.Context, string, string, string, any) error {
	return nil
}

func TestWakesCarryTheTraceOfTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(trace string) context.Context {
			return store.WithTraceParent(t.Context(), "00-"+trace+"2f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		}
		c := &tracedTemporal{traces: map[string][]string{}}
		w := NewWaker(t.Context(), c, quiet)
		w.WakeIn(in("aaaa"), workOrder(1), webhook(1))
		synctest.Wait()
		// The workflow is cooling down; of the merged wakes the first trace is kept.
		w.Wake(workOrder(1))
		w.WakeIn(in("bbbb"), workOrder(1))
		w.WakeIn(in("cccc"), workOrder(1))
		<-time.After(wakeCooldown) // on the bubble's clock
		synctest.Wait()
		w.Wake(workOrder(1))
		w.WakeFailing(store.FailingDelivery{DeliveryID: "dlv_1", TraceParent: *store.TraceParent(in("dddd"))})
		w.Stop(t.Context())
		if got := strings.Join(c.traces["work-order/wo_1"], " "); got != "aaaa bbbb 0000" {
			t.Errorf("the work order was woken in the traces %s", got)
		}
		if got := strings.Join(c.traces["webhook-address/whk_1"], " "); got != "0000" {
			t.Errorf("the address was woken in the traces %s", got)
		}
		if got := strings.Join(c.traces["delivery/dlv_1"], " "); got != "dddd" {
			t.Errorf("the delivery was woken in the traces %s", got)
		}
	})
}
