package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"millwright/dev/devtest"
	"millwright/dev/postgres"
	"millwright/dev/process"
	"millwright/dev/stack"
)

// The test binary acts as devstack.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		main()
	}
	os.Exit(m.Run())
}

// startTemporal starts the subcommand and returns when it is ready.
func startTemporal(t *testing.T, databaseURL string, port int) *process.Process {
	t.Helper()
	var ready atomic.Bool
	p, err := process.Start(temporalOn(databaseURL, port), process.Options{
		Name: "Temporal", Log: filepath.Join(t.TempDir(), "log"),
		Line: func(line string) {
			if line == stack.ReadyLine {
				ready.Store(true)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := p.Await(ctx, func() error {
		if !ready.Load() {
			return errors.New("it is still starting")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

func temporalOn(databaseURL string, port int) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "temporal", "--port", strconv.Itoa(port))
	cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL)
	return cmd
}

func TestTemporalSurvivesSIGKILL(t *testing.T) {
	dir := devtest.OpenDirectory(t)
	cluster, err := postgres.Start(t.Context(), postgres.Options{
		Root: filepath.Join(dir, "postgres"), Log: filepath.Join(dir, "log"), Throwaway: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	port := devtest.FreePorts(t, 1)[0]
	conn, err := grpc.NewClient(process.Address(port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := workflowservice.NewWorkflowServiceClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()

	// A workflow can be started as soon as the server prints that it is ready.
	first := startTemporal(t, cluster.URL, port)
	_, err = client.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace:    stack.Namespace,
		WorkflowId:   "kept",
		RequestId:    "1",
		WorkflowType: &commonpb.WorkflowType{Name: "any"},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: "any"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := temporalOn(cluster.URL, port).CombinedOutput()
	if want := "port " + strconv.Itoa(port) + " is taken by another program"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a second server on the same port: %v, %q", err, out)
	}
	first.Kill()

	second := startTemporal(t, cluster.URL, port)
	response, err := client.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: stack.Namespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: "kept"},
	}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if status := response.GetWorkflowExecutionInfo().GetStatus(); status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("the workflow's status is %s", status)
	}
	second.Stop()
	if second.ExitStatus() != 0 {
		t.Errorf("the exit status after SIGTERM is %d", second.ExitStatus())
	}
}
