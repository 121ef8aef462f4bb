package e2e

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millwright/service/store"
)

// process is a program that a test started. It is killed when the test ends, and its
// output is printed if the test failed.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	// out is the standard output, log the standard error.
	out, log output
	ended    chan struct{}
}

// output collects what a running process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) has(text string) bool { return strings.Contains(o.String(), text) }

// logLine has what tests read of a line of a log.
type logLine struct {
	Time                                        time.Time
	Level, Msg, Server, Namespace, ActivityType string
}

// lines returns the lines that are log entries.
func (o *output) lines() (all []logLine) {
	for line := range strings.Lines(o.String()) {
		var l logLine
		if json.Unmarshal([]byte(line), &l) == nil {
			all = append(all, l)
		}
	}
	return all
}

// awaitOutage waits until the process has logged that the server responds again, and checks
// that it logged once that it does not, and other lines about it no more than a few times.
func (p *process) awaitOutage(server string) {
	p.t.Helper()
	eventually(p.t, recoveryLimit, p.name+" logs that the server responds again", func() bool {
		return p.log.has(`"a server responds again","server":"` + server + `"`)
	})
	warnings := map[string]int{}
	for _, l := range p.log.lines() {
		if l.Level == "WARN" && l.Namespace == "" { // lines of Temporal's client have a namespace
			warnings[l.Msg+" "+l.Server]++
		}
	}
	if n := warnings["a server does not respond "+server]; n != 1 {
		p.t.Errorf("%s says %d times that %s does not respond", p.name, n, server)
	}
	for line, n := range warnings {
		most := 2
		if strings.HasPrefix(line, "a commit got no response") {
			most = store.DefaultMaxConnections // each may be in a commit when the server ends
		}
		if n > most {
			p.t.Errorf("%s says %d times: %s", p.name, n, line)
		}
	}
}

// start starts a program with env as its whole environment.
func start(t testing.TB, name string, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState has the result
		close(p.ended)
	}()
	t.Cleanup(p.cleanUp)
	return p
}

// cleanUp kills the process, fails the test on data races and panics, and prints the
// output if the test failed.
func (p *process) cleanUp() {
	p.kill()
	log := p.log.String()
	for _, alarm := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
		if strings.Contains(log, alarm) {
			p.t.Errorf("%s printed %q", p.name, alarm)
		}
	}
	if p.t.Failed() && !p.cmd.ProcessState.Success() {
		p.t.Logf("%s (%s) printed:\n%s%s", p.name, p.cmd.ProcessState, tail(p.out.String()), tail(withoutCalls(log)))
	}
}

// withoutCalls leaves out the lines of an API server's log that say of a call that it was made: there are thousands.
func withoutCalls(log string) string {
	var rest strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"level":"INFO","msg":"call"`) {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// tail returns the end of a process's output, where the reason of a failure is.
func tail(text string) string {
	const enough = 8 << 10
	if len(text) <= enough {
		return text
	}
	return "…" + text[len(text)-enough:]
}

// kill kills the process, as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// terminate sends SIGTERM.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("terminate %s: %v", p.name, err)
	}
}

// wait waits for the process to end and returns its exit status, -1 if a signal ended
// it.
func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Fatalf("%s did not end within %s", p.name, limit)
	}
	return p.cmd.ProcessState.ExitCode()
}

// awaitReady waits until the process is ready, and fails the test if it ends first.
func (p *process) awaitReady(limit time.Duration, ready func() bool) {
	p.t.Helper()
	eventually(p.t, limit, p.name+" is ready", func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("%s ended before it was ready: %s", p.name, p.cmd.ProcessState)
		default:
		}
		return ready()
	})
}

// eventually waits until the condition holds, and fails the test if that takes longer
// than the limit.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	// What most conditions ask costs milliseconds of Postgres, Temporal or a browser.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("timed out after %s: %s", limit, what)
		}
	}
}

// freePort returns a loopback address on which no program listens, and reserves
// it until the test ends. The port is below the ports of outgoing connections. As in
// dev/process, a UDP socket with the port's number reserves it against other
// tests and other processes, even while its server restarts.
func freePort(t testing.TB) (address string, port int) {
	t.Helper()
	for port = 20_000 + rand.IntN(10_000); port < 32_000; port++ {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reservation, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			reservation.Close()
			continue
		}
		listener.Close()
		t.Cleanup(func() { reservation.Close() })
		return address, port
	}
	t.Fatal("no port is free")
	return "", 0
}
