package stack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"millwright/dev/devtest"
	"millwright/dev/process"
)

// checkout is a directory in which a test calls `devstack run`.
type checkout struct {
	dir   string
	ports []int
	env   []string
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	forgetOwnEnv("../../.dev")
	c := &checkout{dir: devtest.OpenDirectory(t), ports: devtest.FreePorts(t, 5), env: os.Environ()}
	for i, name := range []string{"API_PORT", "TEMPORAL_PORT", "TEMPORAL_UI_PORT", "API_METRICS_PORT", "WORKER_METRICS_PORT"} {
		c.env = append(c.env, fmt.Sprintf("%s=%d", name, c.ports[i]))
	}
	devtest.WriteFile(t, filepath.Join(c.dir, "demo.yaml"), "")
	return c
}

func (c *checkout) command(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := devstack(t, "run", "demo.yaml")
	cmd.Dir, cmd.Env = c.dir, c.env
	return cmd
}

// runningStack is one call of `devstack run`.
type runningStack struct {
	cmd   *exec.Cmd
	ended chan struct{}
	mu    sync.Mutex
	all   strings.Builder
}

// output returns what has been printed.
func (r *runningStack) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

func (r *runningStack) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (c *checkout) start(t *testing.T) *runningStack {
	t.Helper()
	r := &runningStack{cmd: c.command(t), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	devtest.Must(t, r.cmd.Start())
	go func() { _ = r.cmd.Wait(); close(r.ended) }()
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.ended })
	devtest.Eventually(t, "the stack is running", func() bool {
		if !r.runs() {
			t.Fatalf("the stack ended:\n%s", r.output())
		}
		return strings.Contains(r.output(), "Millwright is running.\n")
	})
	return r
}

func (r *runningStack) runs() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// end sends a signal and returns the exit status and the whole output.
func (r *runningStack) end(t *testing.T, sig os.Signal) (int, string) {
	t.Helper()
	devtest.Must(t, r.cmd.Process.Signal(sig))
	<-r.ended
	return r.cmd.ProcessState.ExitCode(), r.output()
}

func (c *checkout) devEnv(t *testing.T, name string) string {
	t.Helper()
	value := valueOf(readEnv(filepath.Join(c.dir, ".dev", "env")), name)
	if value == "" {
		t.Errorf("%s is not in the environment file", name)
	}
	return value
}

func (c *checkout) expectNothingRuns(t *testing.T) {
	t.Helper()
	for _, port := range append(c.ports, portOf(t, c.devEnv(t, "DATABASE_URL"))) {
		if err := process.CheckPort(port); err != nil {
			t.Error("something still runs:", err)
		}
	}
}

// wantOutput checks that the output has each of these strings.
func wantOutput(t *testing.T, output string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in:\n%s", want, output)
		}
	}
}

// demoWithConflicts is a demo file whose import is rejected because of later changes.
const demoWithConflicts = "# undoes changes"

func TestRunKeepsItsData(t *testing.T) {
	c := newCheckout(t)
	first := c.start(t)
	database := c.devEnv(t, "DATABASE_URL")
	if password := c.devEnv(t, "DEMO_PASSWORD"); password != "for set-password idn_1 --generate --json" {
		t.Errorf("the demo password is %q", password)
	}
	if out, err := c.command(t).CombinedOutput(); err == nil || !strings.Contains(string(out), "a stack is already running") {
		t.Errorf("a second stack at the same time: %v, %q", err, out)
	}
	status, output := first.end(t, os.Interrupt)
	c.checkReceiver(t, output)
	if status != 0 {
		t.Errorf("the exit status is %d", status)
	}
	wantOutput(t, output, "api     | stopped in order", fmt.Sprintf("worker  | metrics on 127.0.0.1:%d", c.ports[4]),
		"work of week.yaml and demo.yaml", "margaret.ellison@northfield.example.com    for set-password idn_1",
		"http://"+process.Address(c.ports[0])+"/docs",
		"/namespaces/default/workflows?query=WorkflowType%3D%22WorkOrder%22+AND+ExecutionStatus%3D%22Running%22\n",
		"/namespaces/default/workflows?query=AddressStatus+IN+%28%22failing%22%2C%22off%22%29+AND+ExecutionStatus%3D%22Running%22\n")
	if log, err := os.ReadFile(filepath.Join(c.dir, ".dev", "logs", "worker.log")); strings.Contains(output, "INF") || !strings.Contains(string(log), "INF in text\n") {
		t.Errorf("the worker's log is %q (%v), the output %q", log, err, output)
	}
	c.expectNothingRuns(t)

	// A shell that has loaded the environment file does not make the private cluster
	// someone else's.
	c.env = append(c.env, "DATABASE_URL="+database)
	for _, demo := range []string{"", demoWithConflicts} {
		devtest.WriteFile(t, filepath.Join(c.dir, "demo.yaml"), demo)
		again := c.start(t)
		// Only the first import prints secrets.
		if secret := c.devEnv(t, "DEMO_CLIENT_SECRET"); secret != "it's secret" {
			t.Errorf("the demo secret is %q", secret)
		}
		if now := c.devEnv(t, "DATABASE_URL"); now != database {
			t.Errorf("the database moved from %s to %s", database, now)
		}
		status, output = again.end(t, syscall.SIGTERM)
		if status != 0 || strings.Contains(output, "work of") {
			t.Errorf("the exit status is %d, output:\n%s", status, output)
		}
		c.expectNothingRuns(t)
	}
	wantOutput(t, output, "the list of conflicts", "demo.yaml is not imported, see above: if the demo was changed, `")
}

func TestRunEndsWhenAPartEndsBeforeTheStackIsReady(t *testing.T) {
	c := newCheckout(t)
	c.env = append(c.env, "API_FAILS=1")
	out, err := c.command(t).CombinedOutput()
	if err == nil {
		t.Error("it succeeds")
	}
	wantOutput(t, string(out), "millwright api ended unexpectedly (exit status 3); the last lines of its log:\nthe last words")
	c.expectNothingRuns(t)
}

// get returns the body of a page of the fake api, "" if it does not respond.
func (c *checkout) get(path string) string {
	response, err := http.Get("http://" + process.Address(c.ports[0]) + path)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

// A killed stack starts again, parts that end do so too, and one that keeps ending is given up.
func TestRunStartsAgain(t *testing.T) {
	c := newCheckout(t)
	if runtime.GOOS == "linux" { // where children are signalled when their parent dies
		c.start(t).end(t, syscall.SIGKILL)
	}
	r := c.start(t)
	killed := c.get("/pid")
	kill(t, killed)
	devtest.Eventually(t, "the API server runs again", func() bool { now := c.get("/pid"); return now != "" && now != killed })
	pidFiles, err := filepath.Glob(filepath.Join(c.dir, ".dev", "*", "data", "postmaster.pid"))
	if err != nil || len(pidFiles) != 1 {
		t.Fatalf("the pid files of Postgres are %v, %v", pidFiles, err)
	}
	line, _, _ := strings.Cut(devtest.ReadFile(t, pidFiles[0]), "\n")
	kill(t, line)
	devtest.Eventually(t, "Postgres runs again", func() bool { return strings.Contains(r.output(), "stack   | Postgres runs again") })

	devtest.Eventually(t, "the stack has ended", func() bool { c.get("/fail"); return !r.runs() })
	if status := r.cmd.ProcessState.ExitCode(); status != 1 {
		t.Errorf("the exit status is %d", status)
	}
	wantOutput(t, r.output(),
		"stack   | millwright api ended unexpectedly (signal: killed); starting it again\n",
		"stack   | millwright api runs again\n",
		"stack   | Postgres ended unexpectedly (signal: killed); starting it again\n",
		"millwright api ended unexpectedly (exit status 3); starting it again\n",
		"millwright api was started 5 times: millwright api ended unexpectedly (exit status 3); the last lines of its log:\nthe last words")
	c.expectNothingRuns(t)
}

// kill kills the process with this id.
func kill(t *testing.T, id string) {
	t.Helper()
	pid, err := strconv.Atoi(id)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	devtest.Must(t, err)
}

func TestRunNamesABusyPortBeforeAnythingStarts(t *testing.T) {
	c := newCheckout(t)
	l, err := net.Listen("tcp", process.Address(c.ports[2]))
	devtest.Must(t, err)
	defer l.Close()
	out, err := c.command(t).CombinedOutput()
	want := fmt.Sprintf("port %d is taken by another program but the Temporal Web UI needs it: free it, or set TEMPORAL_UI_PORT to another\n", c.ports[2])
	if err == nil || string(out) != want {
		t.Errorf("%v, output %q, want %q", err, out, want)
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".dev", "postgres")); !os.IsNotExist(err) {
		t.Errorf("a part was started before the check: %v", err)
	}
}

func TestRunReportsAMissingProgram(t *testing.T) {
	err := Run(nil, RunOptions{Millwright: "bin/no-such-program"})
	if err == nil || !strings.HasPrefix(err.Error(), "bin/no-such-program does not exist: run `make build`") {
		t.Errorf("the error is %v", err)
	}
}
