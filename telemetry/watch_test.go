package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	temporallog "go.temporal.io/sdk/log"
)

// withoutTimes writes a log without the times of its lines. It locks the text.
func withoutTimes(text *bytes.Buffer) slog.Handler {
	return slog.NewTextHandler(text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var down atomic.Bool
		var pings atomic.Int64
		w := NewWatch(t.Context(), "database", "calls get 503", slog.New(withoutTimes(&log)), func(context.Context) error {
			pings.Add(1)
			if down.Load() {
				return errors.New("down")
			}
			return nil
		})
		want := func(about, want string) {
			t.Helper()
			synctest.Wait()
			if got := log.String(); got != want {
				t.Errorf("%s: the log is\n%swant\n%s", about, got, want)
			}
			log.Reset()
		}
		const blip = "level=WARN msg=\"a call failed, although the server responds\" server=database error=\"reset by peer\"\n"
		w.Failed(errors.New("reset by peer"))
		want("one call", blip)
		w.Failed(errors.New("reset by peer"))
		want("another one at once", "")
		<-time.After(blipInterval)
		w.Failed(errors.New("reset by peer"))
		want("another one later", blip)

		down.Store(true)
		for range 3 {
			w.Failed(errors.New("refused"))
		}
		const lost = "level=WARN msg=\"a server does not respond\" server=database effect=\"calls get 503\" error=refused\n"
		want("lost", lost)
		<-time.After(30 * time.Second)
		w.Failed(errors.New("refused"))
		want("still lost", "")
		down.Store(false) // it is not asked before the next second
		<-time.After(pingInterval)
		want("back", "level=INFO msg=\"a server responds again\" server=database seconds=31\n")
		before := pings.Load()
		<-time.After(time.Hour)
		synctest.Wait()
		if asked := pings.Load() - before; asked != 0 {
			t.Errorf("it was asked %d times although no call failed", asked)
		}

		down.Store(true)
		w.Failed(errors.New("refused"))
		want("lost again", lost)
		w.Stop()
		w.Failed(errors.New("refused"))
		want("stopped", "")
	})
}

func TestWithoutPolls(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	sdk := temporallog.With(temporallog.NewStructuredLogger(slog.New(WithoutPolls(withoutTimes(&log)))), "TaskQueue", "work")
	sdk.Warn("Failed to poll for task.", "Error", serviceerror.NewUnavailable("connection refused"))
	sdk.Warn("Failed to poll for task.", "Error", serviceerror.NewPermissionDenied("not yours", ""))
	sdk.Error("Workflow panic", "Error", serviceerror.NewUnavailable("connection refused"))
	if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "not yours") || !strings.Contains(got, "Workflow panic") {
		t.Errorf("the log is\n%s", got)
	}
}
