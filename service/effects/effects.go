package effects

import (
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
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

// Queue queues the effects of a change. The record itself must be queued before. Errors: of a mistake in a model.
func Queue(t *store.Tx, c Change) error {
	entries := c.logEntries(t.At)
	if err := t.Create(&entries); err != nil {
		return err
	}
	notify(t, c)
	for _, e := range c.Events {
		if err := publish(t, c, e); err != nil {
			return err
		}
	}
	if c.concernsWorkflow() {
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

// concernsWorkflow reports whether the record's workflow must reload the record: it is new, or its
// status or target date changed.
func (c Change) concernsWorkflow() bool {
	_, status := c.Changes["status"] // set for new records, too
	_, target := c.Changes["target_date"]
	return status || target
}

// markDirty marks the organization's record for its workflow to reload and wakes the workflow after the
// commit. It writes an existing mark again, so that a workflow clearing it waits for this transaction and
// then loads what it changed.
func markDirty(t *store.Tx, organizationID, recordID string) {
	t.Queue(`INSERT INTO dirty_records (record_id, since) VALUES (@record, @at) ON CONFLICT (record_id) DO UPDATE SET since = excluded.since`,
		pgx.NamedArgs{"record": recordID, "at": t.At})
	t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, recordID))
}

// PeopleOf selects the active people that the identities of an array stand for: themselves, the
// members of a team, the people of a service company with incoming work orders.
func PeopleOf(identities string) string {
	return `SELECT reached.id, p.organization_id FROM (
				SELECT unnest(` + identities + `)
				UNION SELECT m.member_id FROM team_members m WHERE m.team_id = ANY (` + identities + `)
				UNION SELECT r.actor_id FROM organization_rights r
					WHERE r.organization_id = ANY (` + identities + `) AND 'incoming_work_orders' = ANY (r.grants)) reached (id)
			JOIN people p ON p.id = reached.id AND p.deactivated_at IS NULL`
}

// insertNotices inserts one notice of a change for each person, the first that is for it, and returns their
// organizations.
var insertNotices = `
	WITH notified AS (
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT n.organization_id, n.id, n.kind, @record, @at FROM (
			SELECT DISTINCT ON (p.id) p.organization_id, p.id, u.kind, u.nth
			FROM unnest(@kinds::text[], @identities::text[]) WITH ORDINALITY u (kind, identity, nth)
			CROSS JOIN LATERAL (` + PeopleOf("ARRAY[u.identity]") + `) p
			WHERE CASE u.kind WHEN '` + string(models.NoticeOperated) + `' THEN true WHEN '` + string(models.NoticeUnassigned) + `' THEN p.id <> @actor
				ELSE p.id <> @actor AND ` + access.RelationHolds("p.organization_id", "@record") + ` END
			ORDER BY p.id, u.nth) n
		ORDER BY n.nth
		RETURNING organization_id)
	SELECT DISTINCT organization_id FROM notified`

// notify queues the notices for each person concerned except the actor, who gets one if it was an
// operator who acted.
func notify(t *store.Tx, c Change) {
	var kinds, identities []string
	for _, n := range c.Notices {
		for _, identity := range n.Identities {
			kinds, identities = append(kinds, n.Kind), append(identities, identity)
		}
	}
	if c.tellsOperated() {
		kinds, identities = append(kinds, string(models.NoticeOperated)), append(identities, c.Actor.IdentityID)
	}
	if len(kinds) == 0 {
		return
	}
	t.QueueRows(WakeMail(t), insertNotices, pgx.NamedArgs{"record": c.RecordID, "at": t.At, "kinds": kinds, "identities": identities, "actor": c.Actor.IdentityID})
}

// WakeMail returns what receives the organizations of a statement that inserted notices: their mail is woken after the
// commit.
func WakeMail(t *store.Tx) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		organizations, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, organization := range organizations {
			t.Wakes = append(t.Wakes, store.MailTarget(store.TargetMail, organization))
		}
		return err
	}
}

// tellsOperated reports whether the actor is told that an operator acted as that person.
func (c Change) tellsOperated() bool { return c.Actor.Operated && !c.Decided }

// OrganizationOfDirty selects the organization of the dirty record l.record_id, "" if the record is gone.
const OrganizationOfDirty = `coalesce(CASE left(l.record_id, 4)
			WHEN 'iss_' THEN (SELECT organization_id FROM feedback WHERE id = l.record_id LIMIT 1)
			WHEN 'whk_' THEN (SELECT organization_id FROM webhooks WHERE id = l.record_id LIMIT 1)
			WHEN 'dlv_' THEN (SELECT h.organization_id FROM open_deliveries d JOIN webhooks h ON h.id = d.webhook_id WHERE d.id = l.record_id LIMIT 1)
			ELSE (SELECT organization_id FROM work_orders WHERE id = l.record_id LIMIT 1)
			END, '')`
