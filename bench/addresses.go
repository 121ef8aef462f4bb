package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// fewAddresses is where growth begins.
const fewAddresses = 10

// benchAddresses measures deliveries to few addresses and to many: in one
// organization, where every change goes to every address, and in as many
// organizations as it takes, where a change goes to the five of its own.
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
	turn                     atomic.Int64
}

// each is how many addresses hear of one change.
func (s *spreadAddresses) each() int { return s.addresses / s.organizations }

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
	if err := in.awaitRest(ctx); err != nil {
		return err
	}
	peak := in.watchMemory(ctx)
	if err := s.wake(ctx, r); err != nil {
		return err
	}
	if err := s.most(ctx, r, load); err != nil {
		return err
	}
	peak().report(r, s.name)
	return nil
}

// subscribe makes the organizations, their addresses and some work orders in each.
func (s *spreadAddresses) subscribe(ctx context.Context) error {
	const recordsEach = 100
	first := changesTold(manyAddresses)
	first.integrations = s.each() / manyAddresses
	if err := s.in.subscribe(ctx, first); err != nil {
		return err
	}
	if err := s.in.startAPI(ctx); err != nil {
		return err
	}
	if err := s.in.erp.createWorkOrders(ctx, recordsEach); err != nil {
		return err
	}
	s.tenants = []*tenant{s.in.erp}
	for n := 1; n < s.organizations; n++ {
		o := changesTold(manyAddresses)
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

// wake changes one work order in each organization and measures how long it
// takes until every address has heard of it: their mailboxes sleep.
func (s *spreadAddresses) wake(ctx context.Context, r *report) error {
	return phase(ctx, "wake every mailbox", 10*time.Minute, func(ctx context.Context) error {
		taking := s.in.receiver.take()
		before, started := s.in.usage(), time.Now()
		if err := s.once(ctx); err != nil {
			return err
		}
		if err := taking.await(ctx, s.addresses); err != nil {
			return err
		}
		r.add(s.name+": until all had the first delivery", time.Since(started).Seconds(), "s")
		s.in.usage().since(before).report(r, s.name+": the first delivery", s.addresses)
		return nil
	})
}

// once changes one work order in each organization.
func (s *spreadAddresses) once(ctx context.Context) error {
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

// most makes as many changes as the API takes, everywhere in turn, then some at
// half that rate, and waits for their deliveries.
func (s *spreadAddresses) most(ctx context.Context, r *report, load time.Duration) error {
	return phase(ctx, "changes", 20*load+10*time.Minute, func(ctx context.Context) error {
		// Those that fell asleep while the last were woken are awake again.
		taking := s.in.receiver.take()
		if err := s.once(ctx); err != nil {
			return err
		}
		if err := taking.await(ctx, s.addresses); err != nil {
			return err
		}
		taking = s.in.receiver.take()
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
		deliveries := int(made.Load()) * s.each()
		if err := taking.await(ctx, deliveries); err != nil {
			return err
		}
		first, last := taking.span()
		r.grown(s.spread+": deliveries", s.addresses, fewAddresses, "addresses", perSecond(deliveries, first, last), "/s")
		s.in.usage().since(before).report(r, s.name, deliveries)
		rate := perSecond(int(made.Load()), started, last) / 2
		const fewest = 5 // changes, however few come in a second
		w, err := s.paced(ctx, rate, max(load/2, time.Duration(fewest/rate*float64(time.Second))))
		w.fromAnswer.report(r, fmt.Sprintf("%s: at half load (%.0f deliveries/s), answer to receiver", s.name, rate*float64(s.each())))
		return err
	})
}

// call has callers make calls in the organizations in turn. A caller has a
// connection to the API and uses each organization's token on it.
func (s *spreadAddresses) call(ctx context.Context, clients int, more func() bool, one func(*tenant, *caller) error) error {
	return s.in.erp.call(ctx, clients, more, func(c *caller) error { return s.as(c, one) })
}

func (s *spreadAddresses) as(c *caller, one func(*tenant, *caller) error) error {
	t := s.tenants[s.turn.Add(1)%int64(len(s.tenants))]
	c.use(t.address, t.token)
	return one(t, c)
}

// paced makes changes at the rate, everywhere in turn, and waits for the first delivery of each.
func (s *spreadAddresses) paced(ctx context.Context, rate float64, load time.Duration) (arrivals, error) {
	total := schedule{rate: rate}.total(load)
	return s.in.pacedBy(ctx, rate, load, int(total)*s.each(), func(c *caller) (a answered, err error) {
		err = s.as(c, func(t *tenant, c *caller) error {
			a, err = t.patch(c)
			return err
		})
		return a, err
	})
}
