package effects

import (
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/batch"
	"millwright/service/store"
)

// Effects hands out the e-mails about notices.
type Effects struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Effects { return &Effects{Store: s} }

// Change are what a write causes besides its record, whether it comes from the
// API or the console (api.md 1.5): history, a Log Record, notices and events.
type Change struct {
	Actor          store.Actor
	OrganizationID string
	RecordID       string
	// Action names the change in history and log: work_order.created, …
	Action string
	// Changes are {"field": {"from": …, "to": …}}. Nil leaves a Log Record without a history entry.
	Changes models.JSON
	Notices []Notice
	// Events are in the order in which receivers get them.
	Events []Event
	// Addresses bounds how many webhook addresses may get the events.
	Addresses int
	// Decided is true if the change follows from another write, of which a person as whom an
	// operator acted was told.
	Decided bool
}

// Notice is a kind of notice and the identities it is for. A team stands for its
// members, a service company for its people with incoming work orders.
type Notice struct {
	Kind       string
	Identities []string
}

// Event is an event with the fields that its type adds to data.
type Event struct {
	Type models.EventType
	Data models.JSON
}

// ChangedField is a changed field in the history.
type ChangedField struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// FromTo is a changed field in the history. In a new record from is nil.
func FromTo(from, to any) ChangedField { return ChangedField{from, to} }

// Queue queues the effects of a change. The record itself must be queued before.
func Queue(t *store.Tx, c Change) error {
	entries := c.logEntries(t.At)
	if err := t.Insert(&entries); err != nil {
		return err
	}
	notify(t, c)
	for _, e := range c.Events {
		if err := publish(t, c, e); err != nil {
			return err
		}
	}
	if c.concernWorkflow() {
		markDirty(t, c.OrganizationID, c.RecordID)
	}
	return nil
}

// logEntries returns the Log Record of the change, before it that of a service company whose identity made
// it: the latest entry is the one with the change.
func (c Change) logEntries(at models.Time) []models.LogEntry {
	entry := store.NewLogEntry(c.Actor, c.OrganizationID, c.Action, c.RecordID, at)
	if c.Changes != nil {
		entry.Changes = &c.Changes
	}
	if c.Actor.OrganizationID != "" && c.Actor.OrganizationID != c.OrganizationID {
		return []models.LogEntry{*store.NewLogEntry(c.Actor, c.Actor.OrganizationID, c.Action, c.RecordID, at), *entry}
	}
	return []models.LogEntry{*entry}
}

// concernWorkflow reports whether the record's workflow must reload the record: it is new, or its
// status or target date changed.
func (c Change) concernWorkflow() bool {
	_, status := c.Changes["status"] // set for new records, too
	_, target := c.Changes["target_date"]
	return status || target
}

// markDirty marks the organization's record for its workflow to reload and wakes the workflow
// after the commit. It writes an existing mark again, so that a workflow clearing
// it waits for this transaction and then loads what it changed.
func markDirty(t *store.Tx, organizationID, recordID string) {
	t.QueueBulk(dirtyRecords, []any{recordID, t.At.Time})
	t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, recordID))
}

var dirtyRecords = &batch.Statement{Stage: store.StageDirty, SQL: `
	INSERT INTO dirty_records (record_id, since) SELECT id, at FROM unnest($1::text[], $2::timestamptz[]) u (id, at)
	ON CONFLICT (record_id) DO UPDATE SET since = excluded.since`}

// PeopleOf selects the active people that {identities} stand for: themselves, the
// members of a team, the people of a service company with incoming work orders.
const PeopleOf = `SELECT reached.id, p.organization_id FROM (
				SELECT unnest({identities})
				UNION SELECT m.member_id FROM team_members m WHERE m.team_id = ANY ({identities})
				UNION SELECT r.actor_id FROM organization_rights r
					WHERE r.organization_id = ANY ({identities}) AND 'incoming_work_orders' = ANY (r.grants)) reached (id)
			JOIN people p ON p.id = reached.id AND p.deactivated_at IS NULL`

// insertNotices inserts one notice of each write for each person, the first that is for it, and
// returns their organizations.
var insertNotices = &batch.Statement{Stage: store.StageNotices, SQL: `
	WITH notified AS (
	INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
	SELECT organization_id, id, kind, record, at FROM (
	SELECT DISTINCT ON (u.record, u.at, p.id) p.organization_id, p.id, u.kind, u.record, u.at, u.nth
	FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[])
		WITH ORDINALITY u (kind, record, at, identities, actor, nth)
	CROSS JOIN LATERAL (` + store.Fill(PeopleOf, "identities", store.SplitIDs("u.identities")) + `) p
	WHERE p.id <> u.actor AND (u.kind IN ('` + string(models.NoticeUnassigned) + `', '` + string(models.NoticeOperated) + `') OR ` + store.Fill(access.RelationHolds, "organization", "p.organization_id", "id", "u.record") + `)
	ORDER BY u.record, u.at, p.id, u.nth) n
	ORDER BY nth
	RETURNING organization_id, record_id, created_at)
	SELECT DISTINCT ON (u.nth, n.organization_id) u.nth, n.organization_id
	FROM unnest($2::text[], $3::timestamptz[]) WITH ORDINALITY u (record, at, nth) JOIN notified n ON n.record_id = u.record AND n.created_at = u.at`}

// noticeRow is a kind of notice of a change, the ids of those it is for, and who gets none.
type noticeRow struct{ kind, identities, actor string }

// noticeRows returns the notices for each person concerned except the actor, who gets one if it was an
// operator who acted.
func (c Change) noticeRows() (rows []noticeRow) {
	for _, n := range c.Notices {
		if len(n.Identities) > 0 {
			rows = append(rows, noticeRow{n.Kind, store.JoinIDs(n.Identities), c.Actor.IdentityID})
		}
	}
	if c.tellsOperated() {
		rows = append(rows, noticeRow{string(models.NoticeOperated), c.Actor.IdentityID, ""})
	}
	return rows
}

// notify queues the notices. They are rows of one call, so that one statement sees all of the change.
func notify(t *store.Tx, c Change) {
	var rows [][]any
	for _, row := range c.noticeRows() {
		rows = append(rows, []any{row.kind, c.RecordID, t.At.Time, row.identities, row.actor})
	}
	t.QueueBulkHints(insertNotices, func(row pgx.CollectableRow) error {
		var organizationID string
		err := row.Scan(&organizationID)
		t.Wakes = append(t.Wakes, store.MailTarget(store.TargetMail, organizationID))
		return err
	}, rows...)
}

// tellsOperated reports whether the actor is told that an operator acted as that person.
func (c Change) tellsOperated() bool { return c.Actor.Operated && !c.Decided }
