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

// errAsked is why a stack stops that was asked to.
var errAsked = errors.New("the stack was asked to stop")

// part is a running part of a stack.
type part struct {
	*process.Process
	// tail returns the last lines of its log.
	tail func() string
}

// supervisor holds the running parts of a stack in the layers they were
// started in. When a part ends by itself, or a signal comes, its context ends
// with the reason.
type supervisor struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	layers [][]part
}

// newSupervisor stops the stack on the first signal and kills it on the second.
func newSupervisor(signals <-chan os.Signal, w io.Writer) *supervisor {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &supervisor{ctx: ctx, cancel: cancel}
	go func() {
		<-signals
		// The terminal has put a ^C at the beginning of the line.
		fmt.Fprintln(w, "\nStopping … (Ctrl-C again to stop at once)")
		cancel(errAsked)
		<-signals
		s.kill()
	}()
	return s
}

// add puts parts into a layer of their own above the others.
func (s *supervisor) add(parts ...part) {
	s.mu.Lock()
	s.layers = append(s.layers, parts)
	s.mu.Unlock()
	for _, p := range parts {
		go func() {
			<-p.Done()
			s.cancel(fmt.Errorf("%s ended unexpectedly (%s), the last lines of its log:\n%s", p.Name(), p.Ending(), p.tail()))
		}()
	}
}

// stop stops the layers from the highest to the lowest, the parts of one layer
// together.
func (s *supervisor) stop() {
	s.cancel(errAsked)
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

// kill ends everything at once.
func (s *supervisor) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, layer := range slices.Backward(s.layers) {
		for _, p := range layer {
			p.Kill()
		}
	}
}

// cause is why the stack stops; nil when it was asked to.
func (s *supervisor) cause() error {
	if err := context.Cause(s.ctx); !errors.Is(err, errAsked) {
		return err
	}
	return nil
}
