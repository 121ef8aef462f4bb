package batch

import (
	"context"
	"slices"
)

// sharedGroup is a group of a batch. If it is rolled back, the writes of each tenant
// share a transaction again, since another tenant's may be at fault. They run alone if
// that fails too, and if they were all there was.
type sharedGroup struct {
	*commitGroup
	// regrouped is closed once again is complete: the groups of the tenants with several
	// writes that run again.
	regrouped chan struct{}
	again     map[string]*tenantGroup
}

// tenantGroup is a group that runs once its slot is granted.
type tenantGroup struct {
	*commitGroup
	turn *slot
}

// regroup makes the groups of the writes that run again after the group has ended. Each
// takes a slot of its tenant, as one write that runs alone.
func (w *Writer) regroup(group *sharedGroup, writes []*waiter) {
	defer close(group.regrouped)
	group.again = map[string]*tenantGroup{}
	if !slices.ContainsFunc(writes, func(w *waiter) bool { return w.tenant != writes[0].tenant }) {
		return
	}
	for tenant, writes := range group.retried {
		if writes == 1 {
			continue
		}
		turn, _ := w.alone.request(tenant, false) // an unbounded wait is never rejected
		again := &tenantGroup{newCommitGroup(w.pool, w.log, writes, shared), turn}
		group.again[tenant] = again
		go func() {
			<-again.done
			turn.release()
		}()
	}
}

// runAgain runs one write of the group after it was rolled back, with the others of its
// tenant. It returns errGroupFailed if it has to run alone, otherwise what run returns.
func (g *sharedGroup) runAgain(ctx context.Context, tenant string, do func(context.Context, *Tx) error) error {
	<-g.regrouped
	again := g.again[tenant]
	if again == nil {
		return errGroupFailed
	}
	select {
	case <-again.turn.granted:
		return again.run(ctx, tenant, do)
	case <-ctx.Done():
		again.leave(ctx, tenant)
		return ctx.Err()
	}
}
