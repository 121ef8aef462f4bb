package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// fewAddresses is the smallest number of addresses that is measured.
const fewAddresses = 10

// benchAddresses measures deliveries to few and to many addresses: in one
// organization, where every change goes to every address, and in many organizations,
// where a change goes to the organization's five addresses.
func benchAddresses(ctx context.Context, r *report, o options, load time.Duration) error {
	for _, many := range []int{fewAddresses, o.addresses} {
		for _, spread := range []struct {
			name          string
			organizations int
		}{{"addresses of one organization", 1}, {"addresses of many organizations", many / manyAddresses}} {
			s := &spreadAddresses{name: fmt.Sprintf("%d %s", many, spread.name), spread: spread.name, organizations: spread.organizations, addresses: many}
			if err := s.bench(ctx, r, o, load); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// spreadAddresses is a number of addresses in a number of organizations.
type spreadAddresses struct {
	name, spread             string
	organizations, addresses int
	in                       *installation
	tenants                  []*tenant
	calls                    atomic.Int64
}

// addressesPerChange is to how many addresses one change is delivered.
func (s *spreadAddresses) addressesPerChange() int { return s.addresses / s.organizations }

func (s *spreadAddresses) bench(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, fmt.Sprintf("addresses_%d_%d", s.addresses, s.organizations))
	if err != nil {
		return err
	}
	defer in.close()
	s.in = in
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if err := in.awaitWorkflowsIdle(ctx); err != nil {
		return err
	}
	peak := in.watchMemory(ctx)
	if err := s.benchWake(ctx, r); err != nil {
		return err
	}
	if err := s.benchThroughput(ctx, r, load); err != nil {
		return err
	}
	peak().report(r, s.name)
	return nil
}

// subscribe creates the organizations, their addresses and some work orders in each.
func (s *spreadAddresses) subscribe(ctx context.Context) error {
	const recordsEach = 100
	first := changeSubscription(manyAddresses)
	first.integrations = s.addressesPerChange() / manyAddresses
	if err := s.in.startWith(ctx, first, recordsEach); err != nil {
		return err
	}
	s.tenants = []*tenant{s.in.erp}
	for n := 1; n < s.organizations; n++ {
		o := changeSubscription(manyAddresses)
		o.key = fmt.Sprintf("bench%d", n)
		t, err := s.in.tenantOf(ctx, o, max(2, recordsEach/s.organizations))
		if err != nil {
			return err
		}
		s.tenants = append(s.tenants, t)
	}
	_, err := s.in.pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

// benchWake changes one work order in each organization, while the address workflows
// sleep, and measures the time until every address got its delivery.
func (s *spreadAddresses) benchWake(ctx context.Context, r *report) error {
	return phase(ctx, "wake every address", 10*time.Minute, func(ctx context.Context) error {
		log := s.in.receiver.newLog()
		before, started := s.in.usage(), time.Now()
		if err := s.changeEach(ctx); err != nil {
			return err
		}
		if err := log.await(ctx, s.addresses); err != nil {
			return err
		}
		r.add(s.name+": until each got its first delivery", time.Since(started).Seconds(), "s")
		s.in.usage().since(before).report(r, s.name+": the first delivery", s.addresses)
		return nil
	})
}

// changeEach changes one work order in each organization.
func (s *spreadAddresses) changeEach(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callers)
	for _, t := range s.tenants {
		group.Go(func() error {
			c, err := dial(ctx, t.address, t.token)
			if err != nil {
				return err
			}
			defer c.conn.Close()
			_, err = t.patch(c)
			return err
		})
	}
	return group.Wait()
}

// benchThroughput makes as many changes as the API accepts, in all organizations in
// turn, then some at half that rate, and waits for their deliveries.
func (s *spreadAddresses) benchThroughput(ctx context.Context, r *report, load time.Duration) error {
	return phase(ctx, "changes", 20*load+10*time.Minute, func(ctx context.Context) error {
		// Wakes the address workflows that went to sleep in the meantime.
		log := s.in.receiver.newLog()
		if err := s.changeEach(ctx); err != nil {
			return err
		}
		if err := log.await(ctx, s.addresses); err != nil {
			return err
		}
		log = s.in.receiver.newLog()
		before, started := s.in.usage(), time.Now()
		var made atomic.Int64
		more := func() bool { return time.Since(started) < load/2 }
		if err := s.call(ctx, callers, more, func(t *tenant, c *caller) error {
			made.Add(1)
			_, err := t.patch(c)
			return err
		}); err != nil {
			return err
		}
		deliveries := int(made.Load()) * s.addressesPerChange()
		if err := log.await(ctx, deliveries); err != nil {
			return err
		}
		first, last := log.span()
		r.grown(s.spread+": deliveries", s.addresses, fewAddresses, "addresses", perSecond(deliveries, first, last), "/s")
		s.in.usage().since(before).report(r, s.name, deliveries)
		rate := perSecond(int(made.Load()), started, last) / 2
		const fewest = 5 // changes, even at a low rate
		w, err := s.paced(ctx, rate, max(load/2, time.Duration(fewest/rate*float64(time.Second))))
		w.fromResponse.report(r, fmt.Sprintf("%s: at half load (%.0f deliveries/s), response to receiver", s.name, rate*float64(s.addressesPerChange())))
		return err
	})
}

// call runs callers that make calls in the organizations in turn. A caller has one
// connection to the API and uses each organization's token on it.
func (s *spreadAddresses) call(ctx context.Context, clients int, more func() bool, one func(*tenant, *caller) error) error {
	return s.in.erp.call(ctx, clients, more, func(c *caller) error { return s.as(c, one) })
}

func (s *spreadAddresses) as(c *caller, one func(*tenant, *caller) error) error {
	t := s.tenants[s.calls.Add(1)%int64(len(s.tenants))]
	c.use(t.address, t.token)
	return one(t, c)
}

// paced makes changes at the rate, in the organizations in turn, and waits for the
// first delivery of each.
func (s *spreadAddresses) paced(ctx context.Context, rate float64, load time.Duration) (latencies, error) {
	changes := s.in.changes(s.addressesPerChange())
	changes.publish = func(c *caller) (a answeredChange, err error) {
		err = s.as(c, func(t *tenant, c *caller) error {
			a, err = t.patch(c)
			return err
		})
		return a, err
	}
	return changes.paced(ctx, rate, load)
}
