package process

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// start starts a shell script and returns when it has printed "up".
func start(t *testing.T, script string) *Process {
	t.Helper()
	var up atomic.Bool
	p, err := Start(exec.Command("sh", "-c", script), Options{Name: "the script", Line: func(line string) {
		if line == "up" {
			up.Store(true)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Await(ctx, func() error {
		if up.Load() {
			return nil
		}
		return errors.New("it does not print up")
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStopLetsAProgramCleanUp(t *testing.T) {
	p := start(t, `trap 'kill $!; exit 7' TERM; sleep 100 & echo up; wait`)
	p.Stop()
	if p.Running() || p.ExitStatus() != 7 || p.Ending() != "exit status 7" {
		t.Errorf("running %t, status %d, %q", p.Running(), p.ExitStatus(), p.Ending())
	}
}

func TestStopKillsAProgramThatIgnoresSIGTERM(t *testing.T) {
	before := stopGrace
	stopGrace = 10 * time.Millisecond
	t.Cleanup(func() { stopGrace = before })
	p := start(t, `trap '' TERM; sleep 100 & echo up; wait; wait`)
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

func TestAFailureShowsTheLog(t *testing.T) {
	var lines atomic.Int32
	p, err := Start(exec.Command("sh", "-c", "echo one; echo two >&2; exit 3"), Options{
		Name: "the script", Log: filepath.Join(t.TempDir(), "log"), Line: func(string) { lines.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Await(t.Context(), func() error { return errors.New("never ready") })
	if want := "the script ended unexpectedly (exit status 3); the last lines of its log:\none\ntwo"; err == nil || err.Error() != want || lines.Load() != 2 {
		t.Errorf("the error is %v, want %s; %d lines", err, want, lines.Load())
	}
}

func TestTheEndOfTheContextStopsAProgram(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no patience"))
	for name, wait := range map[string]func(*Process) error{
		"Wait":  func(p *Process) error { return p.Wait(ctx) },
		"Await": func(p *Process) error { return p.Await(ctx, func() error { return errors.New("never ready") }) },
	} {
		p := start(t, "echo up; exec sleep 100")
		if err := wait(p); err == nil || !strings.Contains(err.Error(), "no patience") || p.ExitStatus() != 128+int(syscall.SIGTERM) {
			t.Errorf("%s: %v, status %d", name, err, p.ExitStatus())
		}
	}
}

func TestALockIsHeldUntilItsFileIsClosed(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Lock(dir); err == nil {
		second.Close()
		t.Error("two have locked it")
	}
	first.Close()
	third, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	third.Close()
}
