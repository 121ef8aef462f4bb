package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// fewAddresses is the smallest number of addresses that is measured.
const fewAddresses = 10

// benchAddresses measures deliveries to few and to many addresses: in one
// organization, where every change goes to every address, and in many organizations,
// where a change goes to the organization's five addresses.
func benchAddresses(b *bench) {
	for _, many := range []int{fewAddresses, b.options.addresses} {
		benchSpread(b, "addresses of one organization", many, 1)
		benchSpread(b, "addresses of many organizations", many, many/manyAddresses)
	}
}

// spreadAddresses are a number of addresses in a number of organizations.
type spreadAddresses struct {
	*installation
	tenants []*tenant
	calls   atomic.Int64
}

func benchSpread(b *bench, spread string, addresses, organizations int) {
	in := b.install(fmt.Sprintf("addresses_%d_%d", addresses, organizations))
	name := fmt.Sprintf("%d %s", addresses, spread)
	in.begin(name)
	s := &spreadAddresses{installation: in}
	s.subscribe(addresses, organizations)
	in.startWorker(nil)
	in.awaitWorkflowsIdle()
	in.begin(name)
	peak := in.watchMemory()
	log := in.receiver.newLog()
	waking := in.measure(func() int {
		s.changeEach()
		log.await(in.ctx, addresses)
		return addresses
	})
	in.add(name+": until each got its first delivery", waking.took.Seconds(), "s")
	waking.cpu(in.report, name+": the first delivery")

	// Makes as many changes as the API accepts, in all organizations in turn, then some at half
	// that rate. First it wakes the address workflows that went to sleep in the meantime.
	perChange := addresses / organizations
	log = in.receiver.newLog()
	s.changeEach()
	log.await(in.ctx, addresses)
	changes := in.changes(perChange)
	changes.publish = s.patch
	f := changes.flood(in.load / 2)
	in.grown(spread+": deliveries", addresses, fewAddresses, "addresses", f.arrived(), "/s")
	f.used.report(in.report, name, f.deliveries)
	rate := f.through() / 2
	const fewest = 5 // changes, even at a low rate
	w := changes.paced(rate, max(in.load/2, time.Duration(fewest/rate*float64(time.Second))))
	w.fromResponse.report(in.report, fmt.Sprintf("%s: at half load (%.0f deliveries/s), response to receiver", name, rate*float64(perChange)))
	peak().report(in.report, name)
}

// subscribe creates the organizations, their addresses and some work orders in each.
func (s *spreadAddresses) subscribe(addresses, organizations int) {
	const recordsEach = 100
	first := changeSubscription(manyAddresses)
	first.integrations = addresses / organizations / manyAddresses
	s.startWith(first, recordsEach)
	s.tenants = []*tenant{s.erp}
	for n := 1; n < organizations; n++ {
		o := changeSubscription(manyAddresses)
		o.key = fmt.Sprintf("bench%d", n)
		s.tenants = append(s.tenants, s.tenantOf(o, max(2, recordsEach/organizations)))
	}
	s.exec(`VACUUM ANALYZE`)
}

// changeEach changes one work order in each organization.
func (s *spreadAddresses) changeEach() {
	check(s.erp.times(s.ctx, callers, len(s.tenants), func(c *caller) error {
		_, err := s.patch(c)
		return err
	}))
}

// patch changes a work order of the next organization. A caller has one connection to the
// API and uses each organization's token on it.
func (s *spreadAddresses) patch(c *caller) (answeredChange, error) {
	t := s.tenants[s.calls.Add(1)%int64(len(s.tenants))]
	c.use(t.Address, t.Token)
	return t.patch(c)
}
