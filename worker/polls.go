package worker

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"millwright/workflows"
)

// Polls exports when Temporal last responded to a poll of each task queue. No other metric
// shows that a worker process runs without polling.
type Polls struct {
	now func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
}

// NewPolls returns a Polls on which every queue was polled now, so that a worker that never
// polls is seen too.
func NewPolls(now func() time.Time) *Polls {
	p := &Polls{now: now, last: map[string]time.Time{}}
	for _, queue := range workflows.TaskQueues {
		p.last[queue] = now()
	}
	return p
}

// DialOption returns an option of Temporal's client that notes its polls.
func (p *Polls) DialOption() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		err := call(ctx, method, request, reply, conn, options...)
		if err == nil {
			switch poll := request.(type) {
			case *workflowservice.PollWorkflowTaskQueueRequest:
				p.polled(queueOf(poll.GetTaskQueue()))
			case *workflowservice.PollActivityTaskQueueRequest:
				p.polled(queueOf(poll.GetTaskQueue()))
			}
		}
		return err
	})
}

// queueOf returns the queue's name, for a poll of a worker's own sticky queue as well.
func queueOf(queue *taskqueue.TaskQueue) string {
	if name := queue.GetNormalName(); name != "" {
		return name
	}
	return queue.GetName()
}

func (p *Polls) polled(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ours := p.last[queue]; ours { // the SDK polls other queues too
		p.last[queue] = p.now()
	}
}

var lastPoll = prometheus.NewDesc("millwright_worker_last_poll_timestamp_seconds",
	"When Temporal last responded to a poll of the task queue by this worker, or when the worker started.", []string{"task_queue"}, nil)

// Describe implements prometheus.Collector.
func (*Polls) Describe(descs chan<- *prometheus.Desc) { descs <- lastPoll }

// Collect implements prometheus.Collector.
func (p *Polls) Collect(metrics chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for queue, at := range p.last {
		metrics <- prometheus.MustNewConstMetric(lastPoll, prometheus.GaugeValue, float64(at.UnixMilli())/1000, queue)
	}
}
