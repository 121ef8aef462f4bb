package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"millwright/dev/process"
)

// errStopRequested is the cause of a requested stop.
var errStopRequested = errors.New("a stop was requested")

// part is a running part of a stack.
type part struct {
	*process.Process
	// tail returns the last lines of the part's log.
	tail func() string
}

// supervisor holds the running parts of a stack in layers, in the order of their
// start. Its context ends, with a cause, when a part ends by itself or a signal
// comes.
type supervisor struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	layers [][]part
}

// newSupervisor returns a supervisor that stops the stack on the first signal and
// kills it on the second.
func newSupervisor(signals <-chan os.Signal, w io.Writer) *supervisor {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &supervisor{ctx: ctx, cancel: cancel}
	go func() {
		<-signals
		// The terminal has printed ^C at the start of the line.
		fmt.Fprintln(w, "\nStopping … (Ctrl-C again to stop at once)")
		cancel(errStopRequested)
		<-signals
		s.kill()
	}()
	return s
}

// add puts parts into a new layer above the others.
func (s *supervisor) add(parts ...part) {
	s.mu.Lock()
	s.layers = append(s.layers, parts)
	s.mu.Unlock()
	for _, p := range parts {
		go func() {
			<-p.Done()
			s.cancel(fmt.Errorf("%s ended unexpectedly (%s); the last lines of its log:\n%s", p.Name(), p.Ending(), p.tail()))
		}()
	}
}

// stop stops the layers from top to bottom, and the parts of a layer concurrently.
func (s *supervisor) stop() {
	s.cancel(errStopRequested)
	s.mu.Lock()
	layers := slices.Clone(s.layers)
	s.mu.Unlock()
	for _, layer := range slices.Backward(layers) {
		var parts sync.WaitGroup
		for _, p := range layer {
			parts.Go(p.Stop)
		}
		parts.Wait()
	}
}

// kill kills all parts.
func (s *supervisor) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, layer := range slices.Backward(s.layers) {
		for _, p := range layer {
			p.Kill()
		}
	}
}

// cause returns why the stack stops; nil if the stop was requested.
func (s *supervisor) cause() error {
	if err := context.Cause(s.ctx); !errors.Is(err, errStopRequested) {
		return err
	}
	return nil
}
