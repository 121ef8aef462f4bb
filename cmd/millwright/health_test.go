package main

import (
	"context"
	"errors"
	"maps"
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
	// known are the last polls by task queue and identity.
	known map[string]map[string]time.Time
	kind  enums.TaskQueueType
	err   error
}

func (p pollers) DescribeTaskQueue(_ context.Context, queue string, kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	response := &workflowservice.DescribeTaskQueueResponse{}
	if kind != p.kind {
		return response, p.err
	}
	for identity, last := range p.known[queue] {
		response.Pollers = append(response.Pollers, &taskqueue.PollerInfo{Identity: identity, LastAccessTime: timestamppb.New(last)})
	}
	return response, p.err
}

func TestAWorkerIsHealthyIfItPolls(t *testing.T) {
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	type last = map[string]time.Time
	everywhere := func(polled last) map[string]map[string]time.Time {
		all := map[string]map[string]time.Time{}
		for _, queue := range workflows.TaskQueues {
			all[queue] = polled
		}
		return all
	}
	healthy := everywhere(last{"7@box@": now.Add(-time.Minute), "1@other@": now})
	type situation struct {
		known map[string]map[string]time.Time
		err   error
		says  string
	}
	tests := map[string]situation{
		"it polled":             {healthy, nil, ""},
		"another host's polled": {everywhere(last{"7@box2@": now, "1@a.box@": now}), nil, "no worker process of box has polled the task queue millwright in"},
		"it polled long ago":    {everywhere(last{"7@box@": now.Add(-3 * time.Minute)}), nil, "no worker process of box has polled the task queue millwright in"},
		"no poller":             {nil, nil, "no worker process of box"},
		"Temporal is down":      {nil, errors.New("connection refused"), "connection refused"},
	}
	for _, queue := range workflows.TaskQueues {
		without := maps.Clone(healthy)
		without[queue] = last{"7@box@": now.Add(-3 * time.Minute), "1@other@": now}
		tests["it polled all but "+queue] = situation{without, nil, "no worker process of box has polled the task queue " + queue + " in"}
	}
	for name, test := range tests {
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			err := polls(t.Context(), pollers{known: test.known, kind: kind, err: test.err}, "box", now)
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
