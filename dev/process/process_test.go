package process

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// start starts a shell script and returns when it has printed "up".
func start(t *testing.T, script string, opts Options) *Process {
	t.Helper()
	up := make(chan struct{}, 1)
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout = NewLines(func(line string) {
		if line == "up" {
			up <- struct{}{}
		}
	})
	opts.Name = "the script"
	p, err := Start(cmd, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	select {
	case <-up:
	case <-p.Done():
		t.Fatal("the script ended:", p.Ending())
	case <-time.After(time.Minute):
		t.Fatal("the script did not start")
	}
	return p
}

func TestStopLetsAProgramCleanUp(t *testing.T) {
	p := start(t, `trap 'kill $!; exit 7' TERM; sleep 100 & echo up; wait`, Options{
		StopSignals: []syscall.Signal{syscall.SIGTERM}, StopGrace: time.Minute,
	})
	p.Stop()
	if p.Running() || p.ExitStatus() != 7 || p.Ending() != "exit status 7" {
		t.Errorf("running %t, status %d, %q", p.Running(), p.ExitStatus(), p.Ending())
	}
}

func TestStopKillsAProgramThatIgnoresSIGTERM(t *testing.T) {
	p := start(t, `trap '' TERM; sleep 100 & echo up; wait; wait`, Options{
		StopSignals: []syscall.Signal{syscall.SIGTERM}, StopGrace: 10 * time.Millisecond,
	})
	p.Stop()
	if p.ExitStatus() != 128+int(syscall.SIGKILL) {
		t.Errorf("the exit status is %d", p.ExitStatus())
	}
	deadline := time.After(time.Minute)
	for syscall.Kill(-p.PID(), 0) != syscall.ESRCH {
		select {
		case <-deadline:
			t.Fatal("a child outlived the program")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
