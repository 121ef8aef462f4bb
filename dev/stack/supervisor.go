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

// A part that ends is started again after a pause that doubles with each quick ending in
// a row, up to maxPause. After maxQuickEndings in a row it is given up.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 10 * time.Second
	// quickEnding is the maximum time from a part's start to an end that counts as quick.
	quickEnding     = time.Minute
	maxQuickEndings = 5
)

// errStopRequested is the cause of a requested stop.
var errStopRequested = errors.New("a stop was requested")

// part is a running part of a stack.
type part struct {
	*process.Process
	// tail returns the last lines of the part's log.
	tail func() string
}

// starter starts a part and returns when it can be used. When the context ends it
// returns an error soon.
type starter func(ctx context.Context) (part, error)

// supervisor holds the running parts of a stack in layers, in the order of their start,
// and starts those again that end by themselves. Its context ends, with a cause, when a
// part cannot be kept running or a signal comes.
type supervisor struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	out    io.Writer
	// restarts is whether parts that end are started again: once the stack runs. Until
	// then their end is an error, such as that of a wrong setting.
	restarts atomic.Bool

	mu     sync.Mutex
	layers [][]*keeper
}

// newSupervisor returns a supervisor that stops the stack on the first signal and
// kills it on the second.
func newSupervisor(signals <-chan os.Signal, w io.Writer) *supervisor {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &supervisor{ctx: ctx, cancel: cancel, out: w}
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

// printf prints a line about the stack itself.
func (s *supervisor) printf(format string, args ...any) {
	fmt.Fprintf(s.out, "stack   | "+format+"\n", args...)
}

// add starts parts in a new layer above the others and keeps them running.
func (s *supervisor) add(starters ...starter) error {
	s.mu.Lock()
	s.layers = append(s.layers, nil)
	s.mu.Unlock()
	for _, start := range starters {
		first, err := start(s.ctx)
		if err != nil {
			return err
		}
		k := &keeper{supervisor: s, start: start, current: first, done: make(chan struct{})}
		s.mu.Lock()
		last := len(s.layers) - 1
		s.layers[last] = append(s.layers[last], k)
		s.mu.Unlock()
		go k.run()
	}
	return nil
}

// stop stops the layers from top to bottom, and the parts of a layer concurrently.
func (s *supervisor) stop() {
	s.cancel(errStopRequested)
	s.mu.Lock()
	layers := slices.Clone(s.layers)
	s.mu.Unlock()
	for _, layer := range slices.Backward(layers) {
		var parts sync.WaitGroup
		for _, k := range layer {
			parts.Go(k.stop)
		}
		parts.Wait()
	}
}

// kill kills all parts.
func (s *supervisor) kill() {
	s.mu.Lock()
	layers := slices.Clone(s.layers)
	s.mu.Unlock()
	for _, layer := range slices.Backward(layers) {
		for _, k := range layer {
			k.running().Kill()
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

// keeper keeps one part running until the supervisor's context ends.
type keeper struct {
	supervisor *supervisor
	start      starter
	done       chan struct{} // closed when it starts the part no more

	mu      sync.Mutex
	current part
}

func (k *keeper) running() part {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// stop stops the part, which run no longer starts again: the context has ended.
func (k *keeper) stop() {
	k.running().Stop()
	<-k.done
	k.running().Stop() // the one that was starting in the meantime
}

func (k *keeper) run() {
	defer close(k.done)
	s := k.supervisor
	for quick := 0; ; {
		p, started := k.running(), time.Now()
		select {
		case <-p.Done():
		case <-s.ctx.Done():
			return
		}
		if quick++; time.Since(started) >= quickEnding {
			quick = 1
		}
		ending := fmt.Sprintf("%s ended unexpectedly (%s)", p.Name(), p.Ending())
		for {
			switch {
			case s.ctx.Err() != nil:
				return
			case !s.restarts.Load():
				s.cancel(fmt.Errorf("%s; the last lines of its log:\n%s", ending, p.tail()))
				return
			case quick >= maxQuickEndings:
				s.cancel(fmt.Errorf("%s, for the %dth time in a row within %s of its start, and is not started again; the last lines of its log:\n%s",
					ending, quick, quickEnding, p.tail()))
				return
			}
			pause := min(firstPause<<(quick-1), maxPause)
			s.printf("%s; starting it again in %s", ending, pause)
			if !s.sleep(pause) {
				return
			}
			next, err := k.start(s.ctx)
			if err == nil {
				k.mu.Lock()
				k.current = next
				k.mu.Unlock()
				s.printf("%s runs again", next.Name())
				break
			}
			quick++
			ending = fmt.Sprintf("%s could not be started again: %v", p.Name(), err)
		}
	}
}

// sleep waits, and returns false if the context ends first.
func (s *supervisor) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
