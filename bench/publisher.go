package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// publisher makes events by calls to a server, which delivers each to the receiver at
// a number of addresses.
type publisher struct {
	*tenant
	ctx      context.Context
	receiver *receiver
	// addresses is the number of deliveries of an event.
	addresses int
	publish   func(*caller) (answeredChange, error)
	// usage reads the CPU time of the machine.
	usage func() usage
}

// changes publishes by changing work orders.
func (in *installation) changes(addresses int) publisher {
	return publisher{in.erp, in.ctx, in.receiver, addresses, in.erp.patch, in.usage}
}

// flood is the result of making as many changes as the API accepts.
type flood struct {
	changes, deliveries int
	// first is when the first call was sent, answered when the last response came.
	first, answered time.Time
	// began and ended are when the first and the last delivery arrived.
	began, ended time.Time
	used         usage
}

func (f flood) accepted() float64 { return perSecond(f.changes, f.first, f.answered) }
func (f flood) arrived() float64  { return perSecond(f.deliveries, f.began, f.ended) }
func (f flood) through() float64  { return perSecond(f.changes, f.first, f.ended) }

// flood runs all callers, which publish for the given time, and waits until every
// event has arrived at every address.
func (p publisher) flood(load time.Duration) flood {
	log := p.receiver.newLog()
	before := p.usage()
	f := flood{first: time.Now()}
	f.changes = must(p.tenant.flood(p.ctx, callers, operation{"publish", func(_ *tenant, c *caller) error {
		_, err := p.publish(c)
		return err
	}}, load))
	f.answered = time.Now()
	f.deliveries = f.changes * p.addresses
	f.began, f.ended = log.await(p.ctx, f.deliveries)
	f.used = p.usage().since(before)
	return f
}

// latencies are the times from events to their receiver.
type latencies struct{ fromCall, fromResponse waits }

// add adds the deliveries of an event, which counts from the given time.
func (w *latencies) add(a answeredChange, from time.Time, arrived []time.Time) error {
	if len(arrived) == 0 {
		return fmt.Errorf("the event of %s at %s did not arrive", a.workOrder, a.changeKey.at)
	}
	for _, at := range arrived {
		w.fromCall = append(w.fromCall, at.Sub(from))
		// The delivery may arrive before the response.
		w.fromResponse = append(w.fromResponse, max(0, at.Sub(a.respondedAt)))
	}
	return nil
}

func (w *latencies) report(r *report, what string) {
	w.fromResponse.report(r, what+": response to receiver")
	w.fromCall.report(r, what+": call to receiver")
}

// oneByOne publishes sequentially. Before each event it calls ready.
func (p publisher) oneByOne(n int, ready func()) *latencies {
	w := &latencies{}
	c := must(dial(p.ctx, p.Address, p.Token))
	defer c.conn.Close()
	for range n {
		ready()
		log := p.receiver.newLog()
		a := must(p.publish(c))
		log.await(p.ctx, p.addresses)
		check(w.add(a, a.sent, log.arrivals(a.changeKey)))
	}
	return w
}

// paced publishes at the rate for the given time, and waits until each event has
// arrived at every address.
func (p publisher) paced(rate float64, load time.Duration) *latencies {
	w, log := &latencies{}, p.receiver.newLog()
	var mu sync.Mutex
	froms := map[changeKey]time.Time{}
	var made []answeredChange
	check(p.tenant.paced(p.ctx, rate, load, func(c *caller) (func(from time.Time), error) {
		a, err := p.publish(c)
		return func(from time.Time) {
			mu.Lock()
			defer mu.Unlock()
			made, froms[a.changeKey] = append(made, a), from
		}, err
	}))
	log.await(p.ctx, len(made)*p.addresses)
	for _, a := range made {
		check(w.add(a, froms[a.changeKey], log.arrivals(a.changeKey)))
	}
	return w
}
