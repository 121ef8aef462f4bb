package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Options are how the stack names, stops and outlives a program.
type Options struct {
	// Name is the program's name in errors and messages.
	Name string
	// SharedGroup leaves the program in the stack's process group, so that it can use
	// the terminal.
	SharedGroup bool
	// DeathSignal is sent to the program if the stack dies without stopping it (Linux
	// only).
	DeathSignal syscall.Signal
	// StopSignals ask the program to stop, in this order. StopGrace is the time that each
	// has to take effect; then comes SIGKILL.
	StopSignals []syscall.Signal
	StopGrace   time.Duration
}

// Process is a started program.
type Process struct {
	opts Options
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the program.
func Start(cmd *exec.Cmd, opts Options) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !opts.SharedGroup
	setDeathSignal(cmd.SysProcAttr, opts.DeathSignal)
	// Children of the program may keep its output open after it ends.
	cmd.WaitDelay = time.Second
	var err error
	if onSpawner(func() { err = cmd.Start() }); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", opts.Name, err)
	}
	p := &Process{opts: opts, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Name returns the program's name in errors and messages.
func (p *Process) Name() string { return p.opts.Name }

// PID returns the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the program is still running.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Ending describes how the program ended, such as "exit status 1" or "signal:
// killed". It waits for the end.
func (p *Process) Ending() string {
	<-p.done
	if p.cmd.ProcessState == nil {
		return p.err.Error()
	}
	return p.cmd.ProcessState.String()
}

// ExitStatus returns the program's exit status as a shell reports it. It waits for
// the end.
func (p *Process) ExitStatus() int {
	<-p.done
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// Signal sends the program a signal.
func (p *Process) Signal(sig os.Signal) {
	// The only possible error is that the program has already ended.
	_ = p.cmd.Process.Signal(sig)
}

// Stop sends the stop signals, then SIGKILL, and returns when the program has ended.
func (p *Process) Stop() {
	for _, sig := range p.opts.StopSignals {
		p.Signal(sig)
		if p.endsWithin(p.opts.StopGrace) {
			return
		}
	}
	p.Kill()
}

// Kill kills the program and its process group, and returns when it has ended.
func (p *Process) Kill() {
	if p.Running() {
		if p.opts.SharedGroup {
			p.Signal(syscall.SIGKILL)
		} else {
			_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		}
	}
	<-p.done
}

func (p *Process) endsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// Await calls ready until it returns nil, or returns its error once the context has ended.
func Await(ctx context.Context, every time.Duration, ready func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// GuardCommand is the subcommand by which a program runs Guard.
const GuardCommand = "guard"

// spawner starts all programs on one operating system thread that lives as long as
// the stack. The kernel sends the death signal when the thread that started a program
// ends, and Go may end idle threads at any time.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// onSpawner runs f on the spawner's thread and waits for it.
func onSpawner(f func()) {
	done := make(chan struct{})
	spawner() <- func() { defer close(done); f() }
	<-done
}
