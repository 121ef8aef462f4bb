package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a program of the product. Its log goes to a file, as in production, so
// reading it costs nothing.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// metrics and profiles are the addresses where it serves them, if it does.
	metrics, profiles string
	stopped           atomic.Bool
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
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), path, args...)
	p.cmd.Env, p.cmd.Stderr = env, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		err := p.cmd.Wait()
		close(p.ended)
		if !p.stopped.Load() {
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

// stop sends SIGTERM and waits for the process to end.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	const limit = 40 * time.Second
	p.stopped.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		return fmt.Errorf("%s did not end within %s after SIGTERM", p.name, limit)
	}
}

// tail returns the end of the process's log.
func (p *process) tail() string {
	const most = 2000
	file, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := file.Seek(-most, io.SeekEnd); err != nil {
		_, _ = file.Seek(0, io.SeekStart) // the log is shorter
	}
	text, _ := io.ReadAll(file)
	return string(text)
}

// logged reports whether the process's log contains the text.
func (p *process) logged(text string) bool {
	log, err := os.ReadFile(p.log)
	return err == nil && bytes.Contains(log, []byte(text))
}

// until polls until the condition holds or the context ends; then it returns the
// context's cause.
func until(ctx context.Context, every time.Duration, holds func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if held, err := holds(); held || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
