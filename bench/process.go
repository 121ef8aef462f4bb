package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a program of the product. Its log goes to a file, as in production, so
// that nothing has to read it.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// metrics and profiles are the addresses where it serves them, if it does.
	metrics, profiles string
	terminate         context.CancelFunc
	ended             chan struct{}
}

// startProcess starts a program with env as its whole environment and its log in dir.
// It runs until stop, even if the context ends; if it ends by itself, fail is called.
func startProcess(ctx context.Context, fail func(error), dir, name string, env []string, path string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	running, terminate := context.WithCancel(context.WithoutCancel(ctx))
	p.terminate = terminate
	p.cmd = exec.CommandContext(running, path, args...)
	p.cmd.Env, p.cmd.Stderr = env, log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 40 * time.Second
	if err := p.cmd.Start(); err != nil {
		terminate()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		err := p.cmd.Wait()
		close(p.ended)
		if running.Err() == nil {
			fail(fmt.Errorf("%s ended (%w); the end of its log:\n%s", name, err, p.tail()))
		}
	}()
	return p, nil
}

// awaitReady waits until the process is ready.
func (p *process) awaitReady(ctx context.Context, ready func() bool) error {
	const limit = 30 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s is not ready after %s", p.name, limit))
	defer cancel()
	return until(ctx, 10*time.Millisecond, func() (bool, error) { return ready(), nil })
}

// stop terminates the process, or kills it if it does not end, and waits for its end.
func (p *process) stop() {
	if p != nil {
		p.terminate()
		<-p.ended
	}
}

// tail returns the end of the process's log.
func (p *process) tail() []byte {
	const most = 2000
	log, _ := os.ReadFile(p.log)
	return log[max(0, len(log)-most):]
}
