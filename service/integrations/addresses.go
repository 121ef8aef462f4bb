package integrations

import (
	"millwright/models"
	"millwright/service/store"
)

// lockAddresses returns the webhook addresses of the organization's integration, or all of the
// organization without one. It waits for the writes that insert deliveries for them.
func lockAddresses(t *store.ORMTx, organizationID, integrationID string) ([]string, error) {
	return store.ScanAll[string](t, `SELECT id FROM webhooks WHERE organization_id = @organization AND (@integration = '' OR integration_id = @integration)
		ORDER BY id FOR UPDATE`, map[string]any{"organization": organizationID, "integration": integrationID})
}

// DeleteAddresses deletes webhook addresses of the organization. Their deliveries are gone for
// every read; housekeeping removes them in batches, and the workflows end. A later import of the
// file that created an address creates it again if it overwrites.
func DeleteAddresses(t *store.ORMTx, organizationID string, ids ...string) error {
	if err := t.DB.Delete(&models.ImportKey{}, "organization_id = ? AND id IN ?", organizationID, ids).Error; err != nil {
		return err
	}
	for _, id := range ids {
		t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, id))
	}
	return t.Exec(`WITH deleted AS (DELETE FROM webhooks WHERE id IN ? RETURNING id)
		INSERT INTO deleted_webhooks (webhook_id, deleted_at) SELECT id, ? FROM deleted`, ids, t.At)
}
