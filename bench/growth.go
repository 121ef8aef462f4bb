package main

import (
	"encoding/json"
	"fmt"
)

// fewRecords is the smallest number of records that is measured.
const (
	fewRecords = 10_000
	records    = "work orders"
)

// benchNodes is the number of nodes that have work orders: 100 buildings with 200
// rooms each.
const benchNodes = 20_000

// middleOfChanges is a time after the watermark that divides the changes of the work orders.
const middleOfChanges = "2025-07-01T00:00:00Z"

// visibilities of Integration 1, 2 and 3: they see everything, fifty nodes, or one.
var visibilities = []string{"all", "fifty", "one"}

// benchGrowth measures calls and lists with few and with many work orders, and the cost of
// many deliveries that are kept.
func benchGrowth(b *bench) {
	for _, size := range []int{fewRecords, b.options.records} {
		in := b.install(fmt.Sprintf("growth_%d", size))
		in.begin(fmt.Sprintf("%d work orders", size))
		grown := changeSubscription(1)
		grown.integrations = len(visibilities)
		in.subscribe(grown)
		in.timed(fmt.Sprintf("%d work orders: created by SQL in", size), func() { in.plantWorkOrders(size) })
		kept := b.options.deliveries > 0 && size == b.options.records
		if kept {
			in.plantKept()
		}
		in.benchVacuum(fmt.Sprintf("of %d new work orders", size))
		if kept {
			in.benchSizes()
		}
		in.startAPI()
		changes := in.benchGrownCalls(size)
		in.benchLists(size)
		if kept {
			in.benchDump()
			in.benchRemoval(changes / 5)
			in.benchVacuum("after the removal")
		}
	}
}

// benchGrownCalls measures calls and returns the changes per second.
func (in *installation) benchGrownCalls(size int) (changes float64) {
	for _, op := range []operation{readOne, listPage, patchOne, createOne} {
		in.flood(in.erp, callers, op, in.load/10)
		rate := in.flood(in.erp, callers, op, in.load/3).rate()
		in.grown(op.name, size, fewRecords, records, rate, "/s")
		if op.name == patchOne.name {
			changes = rate
		}
		// Otherwise starting the workflows would slow the next measurements down.
		if op.name == createOne.name {
			in.awaitIdle()
		}
		in.grownAlone(in.erp, op, op.name+", alone", size)
	}
	return changes
}

// grownAlone adds how long calls of one caller take.
func (in *installation) grownAlone(t *tenant, op operation, name string, size int) {
	alone := must(t.alone(in.ctx, op, max(20, int(20*in.load.Seconds()))))
	in.grown(name+", p50", size, fewRecords, records, milliseconds(alone.percentile(50)), "ms")
	in.grown(name+", p99", size, fewRecords, records, milliseconds(alone.percentile(99)), "ms")
}

// benchLists measures pages of 50 for integrations that see everything, fifty nodes
// and one.
func (in *installation) benchLists(size int) {
	for i, sees := range visibilities {
		t := &tenant{Address: in.erp.Address, Token: in.tokenOf(changeSubscription(1).client(i + 1))}
		c := must(dial(in.ctx, t.Address, t.Token))
		body := must(c.get("/work-orders?limit=1&changed_since=" + middleOfChanges))
		c.conn.Close()
		var page struct {
			SyncToken string `json:"sync_token"`
		}
		check(json.Unmarshal(body, &page))
		for _, list := range []struct{ name, path string }{
			{"newest 50", "/work-orders?limit=50"},
			{"50 open ones", "/work-orders?limit=50&status=open"},
			{"50 changes", "/work-orders?limit=50&changed_since=" + page.SyncToken},
		} {
			name := "list: " + list.name + ", sees " + sees
			in.grownAlone(t, operation{name, reading(list.path)}, name, size)
		}
	}
}

// benchVacuum measures a vacuum of everything.
func (in *installation) benchVacuum(when string) {
	in.timed("VACUUM ANALYZE "+when, func() { in.exec(`VACUUM ANALYZE`) })
}

// timed reports the duration of the work, and the CPU time of Postgres.
func (in *installation) timed(what string, work func()) {
	m := in.measure(func() int { work(); return 1 })
	in.add(what, m.took.Seconds(), "s")
	in.add(what+", CPU of Postgres", m.used["postgres"].Seconds(), "s")
}
