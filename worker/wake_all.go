package worker

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"millwright/service/store"
)

// WakeAll wakes the workflows of the targets and of the failing deliveries, starting those that are missing, and
// returns when all are woken. Unlike a Waker it has no bound, and it fails at the first wake that does,
// such as that of a Temporal that cannot be reached.
func WakeAll(ctx context.Context, c client.Client, targets []store.WakeTarget, failing []store.FailingDelivery) error {
	all := make([]wake, 0, len(targets)+len(failing))
	for _, target := range targets {
		all = append(all, wake{target: target})
	}
	for _, d := range failing {
		all = append(all, wakeOf(d))
	}
	w := &Waker{client: c}
	group, wakes := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for _, next := range all {
		group.Go(func() error {
			if err := wakes.Err(); err != nil {
				return err
			}
			attempt, cancel := context.WithTimeout(wakes, wakeTimeout)
			defer cancel()
			if err := w.send(attempt, next); err != nil {
				return fmt.Errorf("wake the workflow of %s: %w", next.target.ID, err)
			}
			return nil
		})
	}
	return group.Wait()
}
