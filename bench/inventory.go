package main

import (
	"context"
	"time"
)

// readWithNode is the read of a work order with its inventory node and the path to it,
// from the baselines' server.
var readWithNode = operation{"read with its node", func(t *tenant, c *caller) error {
	id, _ := t.next()
	_, err := c.get("/work-orders/" + id + "/with-node")
	return err
}}

// withNode selects a work order's node with its path, as the product's records show it.
const withNode = `
	SELECT json_build_object('id', n.id, 'kind', n.kind, 'name', n.name, 'external_id', n.external_id,
		'path', (SELECT coalesce(json_agg(json_build_object('id', a.id, 'kind', a.kind, 'name', a.name) ORDER BY c.depth DESC), '[]')
			FROM inventory_closure c
			CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) a
			WHERE c.node_id = n.id AND c.depth > 0))
	FROM inventory_nodes n WHERE n.id = w.inventory_id`

// benchInventory measures what a work order's inventory node costs a read: the baseline
// without and with it, four levels down.
func (in *installation) benchInventory(ctx context.Context, r *report, f *baselines, load time.Duration) error {
	if err := f.rows.moveDown(ctx); err != nil {
		return err
	}
	if err := in.vacuum(ctx, f); err != nil {
		return err
	}
	roundTime := load / 2 / rounds
	var without, with rates
	for range rounds {
		for _, measured := range []struct {
			op operation
			to *rates
		}{{readOne, &without}, {readWithNode, &with}} {
			if _, err := f.tenant.flood(ctx, callers, measured.op, time.Now().Add(roundTime/4)); err != nil { // makes plans
				return err
			}
			if err := in.flood(ctx, measured.to, f.tenant, callers, measured.op, roundTime); err != nil {
				return err
			}
		}
	}
	const name = "baseline: read, four levels down"
	r.add(name, median(without.rounds), "/s")
	without.used.report(r, name, without.calls)
	r.compareRounds(name+", with its node", with.rounds, without.rounds, "/s", name)
	with.used.report(r, name+", with its node", with.calls)
	return nil
}
