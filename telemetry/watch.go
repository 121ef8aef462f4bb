package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	pingTimeout = 5 * time.Second
	// pingInterval is the time between two pings of a server that does not respond.
	pingInterval = time.Second
	// blipInterval is the minimum time between two log lines about calls that failed although the server responds.
	blipInterval = time.Minute
)

// Watch says in the log, in a line each, when a server that the process needs does not
// respond and when it responds again. It asks the server only between the two.
type Watch struct {
	name, effect string
	log          *slog.Logger
	ping         func(context.Context) error
	running      sync.WaitGroup
	// check does the work of Failed, until the process stops.
	check func(cause error)
	stop  context.CancelFunc

	mu                sync.Mutex
	checking, stopped bool
	blip              time.Time
}

// NewWatch returns a watch of the server with the name, until the context ends or the caller
// stops it. effect describes what does not work while the server does not respond. ping
// returns an error if the server does not respond before its context ends.
func NewWatch(ctx context.Context, name, effect string, log *slog.Logger, ping func(context.Context) error) *Watch {
	w := &Watch{name: name, effect: effect, log: log, ping: ping}
	ctx, w.stop = context.WithCancel(ctx)
	w.check = func(cause error) { w.follow(ctx, cause) }
	return w
}

// Failed tells the watch that a call failed as if the server did not respond. If a ping
// fails too, the server is lost, until one succeeds. It returns at once.
func (w *Watch) Failed(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.checking || w.stopped {
		return
	}
	w.checking = true
	w.running.Go(func() { w.check(cause) })
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
}

// follow logs what a failure was, and follows an outage to its end.
func (w *Watch) follow(ctx context.Context, cause error) {
	defer func() {
		w.mu.Lock()
		w.checking = false
		w.mu.Unlock()
	}()
	since := time.Now()
	if w.responds(ctx) {
		if w.blip.IsZero() || since.Sub(w.blip) >= blipInterval {
			w.blip = since
			w.log.Warn("a call failed, although the server responds", "server", w.name, "error", cause.Error())
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	w.log.Warn("a server does not respond", "server", w.name, "effect", w.effect, "error", cause.Error())
	for !w.responds(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pingInterval):
		}
	}
	w.log.Info("a server responds again", "server", w.name, "seconds", time.Since(since).Round(100*time.Millisecond).Seconds())
}

func (w *Watch) responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return w.ping(ctx) == nil
}

// WatchCalls returns an option of Temporal's client that tells the watch of failed calls.
func (w *Watch) WatchCalls() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		err := call(ctx, method, request, reply, conn, options...)
		if Unreachable(err) && !errors.Is(ctx.Err(), context.Canceled) {
			w.Failed(err)
		}
		return err
	})
}

// Unreachable reports whether an error of Temporal's client means that Temporal does not
// respond.
func Unreachable(err error) bool {
	if _, ok := errors.AsType[*serviceerror.Unavailable](err); ok {
		return true
	}
	if _, ok := errors.AsType[*serviceerror.DeadlineExceeded](err); ok {
		return true
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// WithoutPolls returns a handler for the log of Temporal's client, without the failed polls
// of each task queue while Temporal does not respond: the watch says it once.
func WithoutPolls(next slog.Handler) slog.Handler { return pollHandler{next} }

type pollHandler struct{ slog.Handler }

func (h pollHandler) Handle(ctx context.Context, line slog.Record) error {
	drop := false
	if line.Message == "Failed to poll for task." {
		line.Attrs(func(a slog.Attr) bool {
			err, ok := a.Value.Any().(error)
			drop = drop || ok && Unreachable(err)
			return !drop
		})
	}
	if drop {
		return nil
	}
	return h.Handler.Handle(ctx, line)
}

func (h pollHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return pollHandler{h.Handler.WithAttrs(attributes)}
}

func (h pollHandler) WithGroup(name string) slog.Handler {
	return pollHandler{h.Handler.WithGroup(name)}
}
