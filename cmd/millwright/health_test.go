package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"millwright/workflows"
)

// pollers is a client that can only list pollers.
type pollers struct {
	client.Client
	// last are the last polls of the task queues by identity, of all except one.
	last   map[string]time.Time
	except string
	kind   enums.TaskQueueType
	err    error
}

func (p pollers) DescribeTaskQueue(_ context.Context, queue string, kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	response := &workflowservice.DescribeTaskQueueResponse{}
	if kind != p.kind || queue == p.except {
		return response, p.err
	}
	for identity, last := range p.last {
		response.Pollers = append(response.Pollers, &taskqueue.PollerInfo{Identity: identity, LastAccessTime: timestamppb.New(last)})
	}
	return response, p.err
}

func TestAWorkerIsHealthyIfItPolls(t *testing.T) {
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	type last = map[string]time.Time
	healthy := last{"7@box@": now.Add(-time.Minute), "1@other@": now}
	const silent = "no worker process of box has polled the task queue "
	type situation struct {
		temporal pollers
		says     string
	}
	tests := map[string]situation{
		"it polled":             {pollers{last: healthy}, ""},
		"another host's polled": {pollers{last: last{"7@box2@": now, "1@a.box@": now}}, silent + "millwright in"},
		"it polled long ago":    {pollers{last: last{"7@box@": now.Add(-3 * time.Minute)}}, silent + "millwright in"},
		"no poller":             {pollers{}, silent},
		"Temporal is down":      {pollers{err: errors.New("connection refused")}, "connection refused"},
	}
	for _, queue := range workflows.TaskQueues {
		tests["it polled all but "+queue] = situation{pollers{last: healthy, except: queue}, silent + queue + " in"}
	}
	for name, test := range tests {
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			test.temporal.kind = kind
			err := polls(t.Context(), test.temporal, "box", now)
			if healthy := err == nil; healthy != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, %s: %v, want %q", name, kind, err, test.says)
			}
		}
	}
}

func TestAnAPIIsHealthyIfItIsReady(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("it requests %s", r.URL.Path)
		}
		w.WriteHeader(status)
		w.Write([]byte("not ready: run\x1b `millwright migrate`\n"))
	}))
	port := server.URL[strings.LastIndex(server.URL, ":")+1:]
	for _, address := range []string{"127.0.0.1:" + port, "0.0.0.0:" + port, ":" + port} {
		if err := checkAPI(t.Context(), settings{Addr: address}); err != nil {
			t.Errorf("at %s: %v", address, err)
		}
	}
	// The probes' listener, if there is one: clients may have filled the other.
	if err := checkAPI(t.Context(), settings{Addr: "127.0.0.1:1", ProbesAddr: "127.0.0.1:" + port}); err != nil {
		t.Errorf("at PROBES_ADDR: %v", err)
	}
	status = http.StatusServiceUnavailable
	s := settings{Addr: "127.0.0.1:" + port}
	if err := checkAPI(t.Context(), s); err == nil || !strings.HasSuffix(err.Error(), "503: not ready: run\ufffd `millwright migrate`") {
		t.Errorf("not ready: %v", err)
	}
	server.Close()
	if err := checkAPI(t.Context(), s); err == nil || !strings.Contains(err.Error(), "does not respond") {
		t.Errorf("stopped: %v", err)
	}
}
