package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service/store"
)

// The pace of WakeMissing.
const (
	// comparedPage is the number of workflows compared at once, by one call to Temporal.
	comparedPage = 500
	// listPause, before each such call, leaves most of Temporal's calls that list workflows to
	// people: by default it serves ten a second in a namespace.
	listPause = time.Second
	// missingAtOnce record workflows are woken each missingPause: fewer than a Waker can
	// start, so that a list that shows none does not fill its queue.
	missingAtOnce = 20
	missingPause  = time.Second
)

// WorkflowLister lists the ids of the records, addresses or deliveries whose workflows are
// open. Workflows that started or ended in the last seconds may be wrong.
type WorkflowLister interface {
	// OpenAmong returns the targets, all of one kind and up to 500, that have open workflows.
	OpenAmong(ctx context.Context, targets []store.WakeTarget) (map[string]bool, error)
}

// comparedKinds are the kinds that WakeMissing compares, in this order.
var comparedKinds = []store.TargetKind{
	store.TargetWebhook, store.TargetDelivery, store.TargetWorkOrder, store.TargetFeedback,
}

// comparison is the progress of WakeMissing. Heartbeats store it.
type comparison struct {
	// Kind is the one that is compared; those before it are done. Records are done up to the
	// one with the ID of the organization.
	Kind           store.TargetKind `json:"kind"`
	OrganizationID string           `json:"organization_id,omitempty"`
	ID             string           `json:"id,omitempty"`
	// Missing counts what was woken.
	Missing int `json:"missing"`
}

// WakeMissing wakes the workflows that are not open although they are to be, because someone
// terminated them or Temporal lost them: of addresses, deliveries, open work orders and
// feedback, page by page. It also wakes a work order whose
// last change woke no workflow and left it to no one (api.md 3.5). A retry continues at the page where
// the last attempt stopped. It returns the number of workflows it woke.
func (s *Sweeper) WakeMissing(ctx context.Context) (int, error) {
	at := comparison{Kind: comparedKinds[0]}
	if last := (comparison{}); activity.GetHeartbeatDetails(ctx, &last) == nil && slices.Contains(comparedKinds, last.Kind) {
		at = last
	}
	for _, kind := range comparedKinds[slices.Index(comparedKinds, at.Kind):] {
		if kind != at.Kind {
			at = comparison{Kind: kind, Missing: at.Missing}
		}
		compare := s.compareRecords
		switch kind { //nolint:exhaustive // the others are records
		case store.TargetWebhook:
			compare = s.compareAddresses
		case store.TargetDelivery:
			compare = s.compareDeliveries
		}
		if err := compare(ctx, &at); err != nil {
			return at.Missing, err
		}
	}
	return at.Missing, nil
}

// openAmong returns the targets that have open workflows.
func (s *Sweeper) openAmong(ctx context.Context, targets []store.WakeTarget) (map[string]bool, error) {
	if err := s.pause(ctx, listPause); err != nil {
		return nil, err
	}
	return s.Open.OpenAmong(ctx, targets)
}

// compareAddresses wakes addresses whose workflows are missing.
func (s *Sweeper) compareAddresses(ctx context.Context, at *comparison) error {
	wanted, err := s.Service.Upkeep.WantedAddresses(ctx)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(wanted, comparedPage) {
		open, err := s.openAmong(ctx, page)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(page, func(target store.WakeTarget) bool { return open[target.ID] })
		s.Waker.Wake(missing...)
		at.Missing += len(missing)
		activity.RecordHeartbeat(ctx, *at)
	}
	return nil
}

// compareDeliveries starts missing Delivery workflows.
func (s *Sweeper) compareDeliveries(ctx context.Context, at *comparison) error {
	wanted, err := s.Service.Webhooks.Wanted(ctx)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(wanted, comparedPage) {
		targets := make([]store.WakeTarget, len(page))
		for i, d := range page {
			targets[i] = store.WakeTarget{Kind: at.Kind, OrganizationID: d.OrganizationID, ID: d.DeliveryID}
		}
		open, err := s.openAmong(ctx, targets)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(page, func(d store.FailingDelivery) bool { return open[d.DeliveryID] })
		for some := range slices.Chunk(missing, missingAtOnce) {
			for n := range some {
				some[n].StartOnly = true
			}
			s.Waker.WakeFailing(some...)
			at.Missing += len(some)
			activity.RecordHeartbeat(ctx, *at)
			if err := s.pause(ctx, missingPause); err != nil {
				return err
			}
		}
		activity.RecordHeartbeat(ctx, *at)
	}
	return nil
}

// compareRecords wakes what is missing of a kind of which very many may be open.
func (s *Sweeper) compareRecords(ctx context.Context, at *comparison) error {
	for {
		page, err := s.Service.Upkeep.OpenRecords(ctx, store.WakeTarget{Kind: at.Kind, OrganizationID: at.OrganizationID, ID: at.ID}, comparedPage)
		if err != nil || len(page) == 0 {
			return err
		}
		targets := make([]store.WakeTarget, len(page))
		for i, record := range page {
			targets[i] = record.WakeTarget
		}
		open, err := s.openAmong(ctx, targets)
		if err != nil {
			return err
		}
		var woken []store.WakeTarget
		for _, record := range page {
			if record.Untold || !open[record.ID] {
				woken = append(woken, record.WakeTarget)
			}
		}
		for missing := range slices.Chunk(woken, missingAtOnce) {
			s.Waker.Wake(missing...)
			at.Missing += len(missing)
			at.OrganizationID, at.ID = missing[len(missing)-1].OrganizationID, missing[len(missing)-1].ID
			activity.RecordHeartbeat(ctx, *at)
			if err := s.pause(ctx, missingPause); err != nil {
				return err
			}
		}
		last := targets[len(targets)-1]
		at.OrganizationID, at.ID = last.OrganizationID, last.ID
		activity.RecordHeartbeat(ctx, *at)
		if len(page) < comparedPage {
			return nil
		}
	}
}

// errStopping has another worker continue an activity.
var errStopping = errors.New("the worker is stopping")

func (s *Sweeper) pause(ctx context.Context, duration time.Duration) error {
	if s.Pause != nil {
		return s.Pause(ctx, duration)
	}
	select {
	case <-time.After(duration):
		return nil
	case <-activity.GetWorkerStopChannel(ctx):
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
