package service

import (
	"slices"

	"millwright/models"
	"millwright/service/batch"
)

// effects are what a write causes besides its record, whether it comes from the
// API or the console (spec section 1): history, a Log Record, notices and events.
type effects struct {
	actor          Actor
	organizationID string
	recordID       string
	// action names the change in history and log: work_order.created, …
	action string
	// changes are {"field": {"from": …, "to": …}}.
	changes models.JSON
	notices []notice
	// events are in the order in which receivers get them.
	events []domainEvent
	// addresses bounds how many webhook addresses may get the events.
	addresses int
}

// notice is a kind of notice and the identities it is for. A team stands for its
// members, a service company for its people with incoming work orders.
type notice struct {
	kind       string
	identities []string
}

// domainEvent is an event with the fields that its type adds to data.
type domainEvent struct {
	kind models.EventType
	data models.JSON
}

// changedField is a changed field in the history.
type changedField struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// fromTo is a changed field in the history. In a new record from is nil.
func fromTo(from, to any) changedField { return changedField{from, to} }

// queueEffects queues the effects of a change. The record itself must be queued before.
func (t *tx) queueEffects(c effects) error {
	entry := newLogEntry(c.actor, c.organizationID, c.action, c.recordID, t.at)
	entry.Changes = &c.changes
	if err := t.insert(entry); err != nil {
		return err
	}
	for _, n := range c.notices {
		t.notify(c, n)
	}
	for _, e := range c.events {
		if err := t.publish(c, e); err != nil {
			return err
		}
	}
	if c.concernWorkflow() {
		t.markDirty(c.organizationID, c.recordID)
	}
	return nil
}

// concernWorkflow reports whether the record's workflow must reload the record:
// there are notices to mail, or the status or the target date changed.
func (c effects) concernWorkflow() bool {
	_, status := c.changes["status"] // set for new records, too
	_, target := c.changes["target_date"]
	return status || target || slices.ContainsFunc(c.notices, func(n notice) bool { return len(n.identities) > 0 })
}

// markDirty marks the organization's record for its workflow to reload and wakes the workflow
// after the commit. It writes an existing mark again, so that a workflow clearing
// it waits for this transaction and then loads what it changed.
func (t *tx) markDirty(organizationID, recordID string) {
	t.QueueBulk(dirtyRecords, []any{recordID, t.at.Time})
	t.wakes = append(t.wakes, wakeTarget(organizationID, recordID))
}

var dirtyRecords = &batch.Statement{Stage: stageDirty, SQL: `
	INSERT INTO dirty_records (record_id, since) SELECT id, at FROM unnest($1::text[], $2::timestamptz[]) u (id, at)
	ON CONFLICT (record_id) DO UPDATE SET since = excluded.since`}

// peopleOf selects the people that {identities} stand for: themselves, the
// members of a team, the people of a service company with incoming work orders.
const peopleOf = `SELECT unnest({identities})
				UNION SELECT m.member_id FROM team_members m WHERE m.team_id = ANY ({identities})
				UNION SELECT r.actor_id FROM organization_rights r
					WHERE r.organization_id = ANY ({identities}) AND 'incoming_work_orders' = ANY (r.grants)`

var insertNotices = &batch.Statement{Stage: stageNotices, SQL: `
	INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
	SELECT p.organization_id, p.id, u.kind, u.record, u.at
	FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[])
		WITH ORDINALITY u (kind, record, at, identities, actor, nth)
	CROSS JOIN LATERAL (` + fill(peopleOf, "identities", splitIDs("u.identities")) + `) reached (id)
	JOIN people p ON p.id = reached.id AND p.id <> u.actor
	ORDER BY u.nth`}

// notify queues the notice for each person concerned except the actor.
func (t *tx) notify(c effects, n notice) {
	if len(n.identities) > 0 {
		t.QueueBulk(insertNotices, []any{n.kind, c.recordID, t.at.Time, joinIDs(n.identities), c.actor.IdentityID})
	}
}
