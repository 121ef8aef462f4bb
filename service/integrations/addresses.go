package integrations

import (
	"millwright/models"
	"millwright/service/store"
)

// lockAddresses returns the webhook addresses of the organization's integration, or all of the
// organization without one. It waits for the writes that insert deliveries for them.
func lockAddresses(t *store.Tx, organizationID, integrationID string) ([]string, error) {
	return store.ScanAll[string](t, `SELECT id FROM webhooks WHERE organization_id = @organization AND (@integration = '' OR integration_id = @integration)
		ORDER BY id FOR UPDATE`, map[string]any{"organization": organizationID, "integration": integrationID})
}

// HoldOrSendAgain is part of each write that decides whether the organization's integration, or
// all of them without one, may use the service. The addresses' dispatchers hold what is due if it
// may not; if it may, held deliveries wait until they are redelivered. The mark lets the sweep wake
// the addresses if a crash loses the wakes. A release waits for the locks, and with them for every
// write that still holds its deliveries.
func HoldOrSendAgain(t *store.Tx, organizationID, integrationID string) error {
	ids, err := lockAddresses(t, organizationID, integrationID)
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := RestartHealth(t, ids...); err != nil {
		return err
	}
	if err := t.Exec(`DELETE FROM redeliveries WHERE webhook_id IN ?`, ids); err != nil {
		return err
	}
	wake(t, organizationID, ids)
	return t.Exec(`INSERT INTO dirty_records (record_id, since) SELECT id, ? FROM webhooks WHERE id IN ?
		ON CONFLICT (record_id) DO UPDATE SET since = excluded.since`, t.At, ids)
}

// RestartHealth restarts the periods of failing after which people are warned and the addresses
// are turned off.
func RestartHealth(t *store.Tx, ids ...string) error {
	if err := t.Exec(`UPDATE webhooks SET enabled_since = ? WHERE id IN ?`, t.At, ids); err != nil {
		return err
	}
	return t.Exec(`UPDATE webhook_health SET failing_since = NULL, warned_at = NULL, failures = 0, waits_until = NULL WHERE webhook_id IN ?`, ids)
}

func wake(t *store.Tx, organizationID string, ids []string) {
	for _, id := range ids {
		t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, id))
	}
}

// DeleteAddresses deletes webhook addresses of the organization. Their deliveries are gone for
// every read; housekeeping removes them in batches, and the workflows end. A later import of the
// file that created an address creates it again if it overwrites.
func DeleteAddresses(t *store.Tx, organizationID string, ids ...string) error {
	if err := t.DB.Delete(&models.ImportKey{}, "organization_id = ? AND id IN ?", organizationID, ids).Error; err != nil {
		return err
	}
	wake(t, organizationID, ids)
	return t.Exec(`WITH deleted AS (DELETE FROM webhooks WHERE id IN ? RETURNING id)
		INSERT INTO deleted_webhooks (webhook_id, deleted_at) SELECT id, ? FROM deleted`, ids, t.At)
}
