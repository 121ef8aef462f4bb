package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// repeat calls work every interval for the duration, and again at once while it returns
// true. It returns the first error, and nil when the time is up or the worker stops. The
// time began when the activity was scheduled: a retry has what is left of it.
func repeat(ctx context.Context, duration, interval time.Duration, work func(context.Context) (again bool, err error)) error {
	duration -= time.Since(activity.GetInfo(ctx).ScheduledTime)
	until, end := time.Now().Add(duration), time.NewTimer(duration)
	defer end.Stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		again, err := work(ctx)
		if err != nil {
			return err
		}
		if again && ctx.Err() == nil && !stopping(ctx) && time.Now().Before(until) {
			continue
		}
		select {
		case <-ticker.C:
		case <-end.C:
			return nil
		case <-activity.GetWorkerStopChannel(ctx):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
