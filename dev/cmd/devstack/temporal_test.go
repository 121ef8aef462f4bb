package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{}, 1)
	cmd := exec.Command(self, "temporal", "--postgres", databaseURL, "--port", strconv.Itoa(port))
	cmd.Stdout = process.NewLines(func(line string) {
		if line == stack.ReadyLine {
			ready <- struct{}{}
		}
	})
	log := process.NewLines(func(string) {})
	cmd.Stderr = log
	p, err := process.Start(cmd, process.Options{
		Name: "Temporal", DeathSignal: syscall.SIGKILL,
		StopSignals: []syscall.Signal{syscall.SIGTERM}, StopGrace: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	select {
	case <-ready:
	case <-p.Done():
		t.Fatalf("Temporal ended (%s):\n%s", p.Ending(), log.Tail())
	case <-time.After(3 * time.Minute):
		t.Fatalf("Temporal is not ready after 3 minutes:\n%s", log.Tail())
	}
	return p
}

func TestTemporalSurvivesSIGKILL(t *testing.T) {
	dir, err := os.MkdirTemp("", "millwright test ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	cluster, err := postgres.Start(t.Context(), postgres.Options{
		Root: filepath.Join(dir, "postgres"), Log: filepath.Join(dir, "log"), Throwaway: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	ports, err := process.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(process.Address(ports[0]), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := workflowservice.NewWorkflowServiceClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()

	// A workflow can be started as soon as the server prints that it is ready.
	first := startTemporal(t, cluster.URL, ports[0])
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
	out, err := exec.Command(os.Args[0], "temporal", "--postgres", cluster.URL, "--port", strconv.Itoa(ports[0])).CombinedOutput()
	if want := "port " + strconv.Itoa(ports[0]) + " is taken by another program"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a second server on the same port: %v, %q", err, out)
	}
	first.Kill()

	second := startTemporal(t, cluster.URL, ports[0])
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
