package effects

import (
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// Leave queues the effects of a change of a record, in the transaction that changes it. Errors: GORM's, for a
// mistake in a model.
func Leave(t *store.WriteTx, c Change) error {
	entries := c.logEntries(t.At)
	if err := t.Create(&entries); err != nil {
		return err
	}
	leaveNotices(t, c)
	for _, e := range c.Events {
		if err := leaveEvent(t, c, e); err != nil {
			return err
		}
	}
	if c.concernWorkflow() {
		t.Queue(dirtyRecords.SQL, []string{c.RecordID}, []models.Time{t.At})
		t.Wakes = append(t.Wakes, store.NewWakeTarget(c.OrganizationID, c.RecordID))
	}
	return nil
}

// leaveNotices queues a notice for each person concerned, once for each.
func leaveNotices(t *store.WriteTx, c Change) {
	var kinds, records, identities, actors []string
	var times []models.Time
	for _, row := range c.noticeRows() {
		kinds, records, times = append(kinds, row.kind), append(records, c.RecordID), append(times, t.At)
		identities, actors = append(identities, row.identities), append(actors, row.actor)
	}
	if len(kinds) == 0 {
		return
	}
	t.QueueRows(func(rows pgx.Rows) error {
		return wakesOf(rows, func(organizationID string) {
			t.Wakes = append(t.Wakes, store.MailTarget(store.TargetMail, organizationID))
		})
	}, insertNotices.SQL, kinds, records, times, identities, actors)
}

// leaveEvent queues the event and its deliveries. Without an address that gets it there is no event.
func leaveEvent(t *store.WriteTx, c Change, e DomainEvent) error {
	// The id's time is the change's in the log, by which a record's deliveries are found.
	id, err := models.NewID(models.PrefixEvent, t.At.Time, t.Random)
	if err != nil {
		return err
	}
	data := e.Data
	if data == nil {
		data = models.JSON{}
	}
	encoded, err := data.Value()
	if err != nil {
		return err
	}
	t.QueueRows(func(rows pgx.Rows) error {
		var nth int
		var webhookID, organizationID string
		_, err := pgx.ForEachRow(rows, []any{&nth, &webhookID, &organizationID}, func() error {
			t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, webhookID))
			return nil
		})
		return err
	}, publicationOf(c.RecordID).SQL, []string{id}, []string{string(e.Kind)}, []string{c.RecordID}, []models.Time{t.At}, []string{c.OrganizationID}, []string{c.Actor.IdentityID},
		[]any{encoded}, []*string{t.TraceParent})
	return nil
}

// wakesOf calls wake with the organization of each row, which begins with an ordinal.
func wakesOf(rows pgx.Rows, wake func(organizationID string)) error {
	var nth int
	var organizationID string
	_, err := pgx.ForEachRow(rows, []any{&nth, &organizationID}, func() error {
		wake(organizationID)
		return nil
	})
	return err
}
