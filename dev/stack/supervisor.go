package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millwright/dev/process"
)

// A part that ends is started again after a pause, which is longer each time. It is given up
// once it has ended maxEndings times in a row, each within the time quickEnding.
const (
	firstPause  = 500 * time.Millisecond
	quickEnding = time.Minute
	maxEndings  = 5
)

// starter starts a part of a stack and returns when it can be used. When the context ends
// it returns an error soon.
type starter func(ctx context.Context) (*process.Process, error)

// supervisor holds the running parts of a stack in the order of their start. Its context
// ends, with a cause, when a part cannot be kept running or a stop is requested.
type supervisor struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	out    io.Writer
	// restarts is whether parts that end by themselves are started again. Without, their
	// end is an error, such as that of a wrong setting.
	restarts atomic.Bool

	mu      sync.Mutex
	parts   []*process.Process
	keepers sync.WaitGroup
}

func newSupervisor(out io.Writer) *supervisor {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &supervisor{ctx: ctx, cancel: cancel, out: out}
}

// stopOn stops the stack on the first signal and kills it on the second.
func (s *supervisor) stopOn(signals <-chan os.Signal) {
	<-signals
	// The terminal has printed ^C at the start of the line.
	fmt.Fprintln(s.out, "\nStopping … (Ctrl-C again to stop at once)")
	s.cancel(nil)
	<-signals
	for _, p := range s.running() {
		p.Kill()
	}
}

// printf prints a line about the stack itself.
func (s *supervisor) printf(format string, args ...any) {
	fmt.Fprintf(s.out, "stack   | "+format+"\n", args...)
}

// add starts a part above the others and watches it.
func (s *supervisor) add(start starter) error {
	p, err := start(s.ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	index := len(s.parts) - 1
	s.keepers.Go(func() { s.keep(index, p, start) })
	return nil
}

// running returns the parts from top to bottom.
func (s *supervisor) running() []*process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := slices.Clone(s.parts)
	slices.Reverse(parts)
	return parts
}

// stop stops the parts from top to bottom.
func (s *supervisor) stop() {
	s.cancel(nil)
	s.keepers.Wait()
	for _, p := range s.running() {
		p.Stop()
	}
}

// cause returns why the stack stops; nil if the stop was requested.
func (s *supervisor) cause() error {
	if err := context.Cause(s.ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// keep starts a part again when it ends by itself, until the context ends.
func (s *supervisor) keep(index int, p *process.Process, start starter) {
	for endings := 1; ; endings++ {
		started := time.Now()
		select {
		case <-p.Done():
		case <-s.ctx.Done():
			return
		}
		if time.Since(started) >= quickEnding {
			endings = 1
		}
		if !s.restarts.Load() {
			s.cancel(p.Failure())
			return
		}
		if endings >= maxEndings {
			s.cancel(fmt.Errorf("%s was started %d times: %w", p.Name, endings, p.Failure()))
			return
		}
		s.printf("%s ended unexpectedly (%s); starting it again", p.Name, p.Ending())
		select {
		case <-time.After(time.Duration(endings) * firstPause):
		case <-s.ctx.Done():
			return
		}
		next, err := start(s.ctx)
		if err != nil {
			s.printf("%v", err)
			continue
		}
		s.mu.Lock()
		p, s.parts[index] = next, next
		s.mu.Unlock()
		s.printf("%s runs again", p.Name)
	}
}
