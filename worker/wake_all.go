package worker

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"millwright/service/store"
)

// WakeAll wakes the targets' workflows, starting those that are missing, and returns when
// all are woken. Unlike a Waker it has no bound, and it fails at the first wake that does,
// such as that of a Temporal that cannot be reached.
func WakeAll(ctx context.Context, c client.Client, targets []store.WakeTarget) error {
	w := &Waker{client: c}
	senders, wakes := errgroup.WithContext(ctx)
	senders.SetLimit(webhookSenders)
	for _, target := range targets {
		senders.Go(func() error {
			if err := wakes.Err(); err != nil {
				return err
			}
			attempt, cancel := context.WithTimeout(wakes, wakeTimeout)
			defer cancel()
			if err := w.send(attempt, wake{target: target}, priorityOf(target, len(targets))); err != nil {
				return fmt.Errorf("wake the workflow of %s: %w", target.ID, err)
			}
			return nil
		})
	}
	return senders.Wait()
}
