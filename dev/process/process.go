package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Options say how a program lives with the stack.
type Options struct {
	// Name is what sentences call the program.
	Name string
	// SharedGroup leaves the program in the stack's own process group, so
	// that it can use the terminal.
	SharedGroup bool
	// DeathSignal is what the program gets when the stack dies without
	// stopping it. Only Linux can do that.
	DeathSignal syscall.Signal
	// StopSignals ask the program to stop, one after another, each with
	// StopGrace to take effect. SIGKILL follows by itself.
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
	// A program's own children may keep its output open after its end.
	cmd.WaitDelay = time.Second
	var err error
	if onSpawner(func() { err = cmd.Start() }); err != nil {
		return nil, fmt.Errorf("%s could not be started: %w", opts.Name, err)
	}
	p := &Process{opts: opts, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Name is what sentences call the program.
func (p *Process) Name() string { return p.opts.Name }

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the program has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Ending says how the program ended, such as "exit status 1" or "signal:
// killed". It waits for the end.
func (p *Process) Ending() string {
	<-p.done
	if p.cmd.ProcessState == nil {
		return p.err.Error()
	}
	return p.cmd.ProcessState.String()
}

// ExitStatus is the program's exit status as a shell reports it. It waits for
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
	// The one possible error is that the program has ended already.
	_ = p.cmd.Process.Signal(sig)
}

// Stop asks the program to stop, waits, insists, and returns when it is gone.
func (p *Process) Stop() {
	for _, sig := range p.opts.StopSignals {
		p.Signal(sig)
		if p.endsWithin(p.opts.StopGrace) {
			return
		}
	}
	p.Kill()
}

// Kill ends the program and whatever it started itself, and returns when it is
// gone.
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

// GuardCommand is the subcommand by which a program runs Guard.
const GuardCommand = "guard"

// spawner is one operating system thread that lives as long as the stack and
// starts all programs: the kernel sends the death signal when the thread that
// has started a program ends, and Go ends idle threads as it likes.
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

// onSpawner runs f on the spawner's thread and returns when it has run.
func onSpawner(f func()) {
	done := make(chan struct{})
	spawner() <- func() { defer close(done); f() }
	<-done
}
