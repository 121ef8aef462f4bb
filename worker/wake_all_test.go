package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"millwright/service/store"
	"millwright/workflows"
)

func TestWakeAllWakesEveryTargetOrFails(t *testing.T) {
	var targets []store.WakeTarget
	for n := range 1000 {
		targets = append(targets, store.WakeTarget{Kind: store.TargetWebhook, ID: fmt.Sprint("whk_", n)})
	}
	c := &fakeTemporal{}
	if err := WakeAll(t.Context(), c, targets, nil); err != nil || len(c.calls) != len(targets) {
		t.Errorf("%d are woken, %v", len(c.calls), err)
	}
	for _, target := range targets {
		if id := workflows.WebhookAddressID(target.ID); c.count(id) != 1 {
			t.Errorf("%s is woken %d times", id, c.count(id))
		}
	}

	var sent atomic.Int32
	down := errors.New("Temporal cannot be reached")
	c = &fakeTemporal{respond: func(ctx context.Context) error {
		switch n := sent.Add(1); {
		case n == 10:
			return down
		case n > 10: // in progress when it fails
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	err := WakeAll(t.Context(), c, targets, nil)
	if !errors.Is(err, down) || !strings.Contains(err.Error(), "wake the workflow of whk_") {
		t.Errorf("the error is %v", err)
	}
	if len(c.calls) > 10+senders {
		t.Errorf("%d more are woken after the error", len(c.calls)-10)
	}
}
