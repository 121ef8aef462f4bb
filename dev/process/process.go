package process

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// stopGrace is the time that a program has to end after its stop signal. It is longer than a
// worker gives its activities.
var stopGrace = 30 * time.Second

// GuardDeath is the death signal for a process that runs Guard: no one would want to pass
// it on to the command.
const GuardDeath = syscall.SIGUSR2

// Options are how the stack names, stops and outlives a program.
type Options struct {
	Name string // in errors and messages
	// Log is the file to which the output is appended, and Line is called with each of its
	// lines; both only for outputs that the command does not set itself.
	Log  string
	Line func(line string)
	// SharedGroup leaves the program in the stack's process group, so that it can use
	// the terminal.
	SharedGroup bool
	// StopSignal asks the program to stop; SIGTERM if it is zero.
	StopSignal syscall.Signal
	// DeathSignal is sent to the program if the stack dies without stopping it (Linux
	// only); SIGKILL if it is zero.
	DeathSignal syscall.Signal
}

// Process is a started program.
type Process struct {
	Options
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the program.
func Start(cmd *exec.Cmd, opts Options) (*Process, error) {
	var output io.Writer
	var log *os.File
	if opts.Log != "" {
		var err error
		if log, err = os.OpenFile(opts.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, fmt.Errorf("cannot open the log of %s: %w", opts.Name, err)
		}
		output = log
	}
	if opts.Line != nil {
		output = Lines(opts.Line)
		if log != nil {
			output = io.MultiWriter(lossy{log}, output)
		}
	}
	if cmd.Stdout == nil {
		cmd.Stdout = output
	}
	if cmd.Stderr == nil {
		cmd.Stderr = output
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !opts.SharedGroup
	setDeathSignal(cmd.SysProcAttr, cmp.Or(opts.DeathSignal, syscall.SIGKILL))
	// Children of the program may keep its output open after it ends.
	cmd.WaitDelay = time.Second
	p := &Process{Options: opts, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the thread that started the program ends.
		runtime.LockOSThread()
		defer log.Close() // of no file it is harmless
		err := cmd.Start()
		if started <- err; err == nil {
			_ = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", opts.Name, err)
	}
	return p, nil
}

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
	return p.cmd.ProcessState.String()
}

// Failure is the error that the program ended, with the last lines of its log. It waits
// for the end.
func (p *Process) Failure() error {
	err := fmt.Errorf("%s ended unexpectedly (%s)", p.Name, p.Ending())
	if tail := FileTail(p.Log); tail != "" {
		err = fmt.Errorf("%w; the last lines of its log:\n%s", err, tail)
	}
	return err
}

// ExitStatus returns the program's exit status as a shell reports it. It waits for
// the end.
func (p *Process) ExitStatus() int {
	<-p.done
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return shellStatus(status)
}

func shellStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// Wait waits until the program has succeeded. If the context ends first, it stops the
// program.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Stop()
		return context.Cause(ctx)
	}
	if p.ExitStatus() != 0 {
		return p.Failure()
	}
	return nil
}

// Await waits until ready returns nil. If the context ends first, it stops the program.
func (p *Process) Await(ctx context.Context, ready func() error) error {
	err := Await(ctx, 10*time.Millisecond, func() error {
		if !p.Running() {
			return nil
		}
		return ready()
	})
	if !p.Running() {
		return p.Failure()
	}
	if err != nil {
		p.Stop()
		return fmt.Errorf("%s was not ready when the start was given up (%w): %w", p.Name, context.Cause(ctx), err)
	}
	return nil
}

// Signal sends the program a signal.
func (p *Process) Signal(sig os.Signal) {
	// The only possible error is that the program has already ended.
	_ = p.cmd.Process.Signal(sig)
}

// Stop sends the stop signal, and SIGKILL if it has no effect in time, and returns when
// the program has ended.
func (p *Process) Stop() {
	p.Signal(cmp.Or(p.StopSignal, syscall.SIGTERM))
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		p.Kill()
	}
}

// Kill kills the program and its own process group, and returns when it has ended.
func (p *Process) Kill() {
	if p.Running() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	<-p.done
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
