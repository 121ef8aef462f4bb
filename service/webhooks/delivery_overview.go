package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// DeliveryOverview is the state of an organization's webhooks.
type DeliveryOverview struct {
	// Addresses are those that fail or are off, at most 100.
	Addresses []TroubledAddress
	// LastDay are the deliveries of the last 24 hours by status, of each address's newest models.MaxCounted.
	LastDay map[models.DeliveryStatus]int
}

// TroubledAddress is a webhook address that fails or is off.
type TroubledAddress struct {
	ID, URL, Integration string
	Enabled              bool
	// Since is when it began to fail or was turned off, Reason why it is off.
	Since  *models.Time
	Reason string
	// LastStatus and LastError belong to the last attempt.
	LastStatus *int
	LastError  *string
}

// dayCountQuery counts the deliveries of each address since the id @since.
const dayCountQuery = `
	SELECT d.status, count(*) AS n
	FROM webhooks h JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL JOIN sending s ON s.webhook_id = h.id
	CROSS JOIN LATERAL (
		(SELECT CASE WHEN s.sends AND queued_at >= s.held_before THEN status ELSE 'held' END AS status FROM open_deliveries
			WHERE webhook_id = ANY (ARRAY[h.id]) AND id >= @since ORDER BY webhook_id DESC, id DESC LIMIT @most)
		UNION ALL (SELECT status FROM deliveries WHERE webhook_id = ANY (ARRAY[h.id]) AND id >= @since ORDER BY webhook_id DESC, id DESC LIMIT @most)
	) d
	WHERE h.organization_id = @organization GROUP BY d.status`

// DeliveryOverview returns the state of the webhooks of the actor's organization, for
// people who manage integrations. Errors: permission_denied, unavailable.
func (s *Webhooks) DeliveryOverview(ctx context.Context, actor store.Actor) (DeliveryOverview, error) {
	overview := DeliveryOverview{LastDay: map[models.DeliveryStatus]int{}}
	args := pgx.NamedArgs{"organization": actor.OrganizationID, "most": models.MaxCounted, "since": models.FirstID(models.PrefixDelivery, s.Now().Add(-24*time.Hour))}
	var counts []struct {
		Status models.DeliveryStatus
		N      int
	}
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		access.QueueMayManage(pipeline, actor)
		store.QueueAll(pipeline, &overview.Addresses, `
			SELECT h.id, h.url, n.name AS integration, h.enabled, coalesce(h.off_at, y.failing_since) AS since, coalesce(h.off_reason, '') AS reason, y.last_status, y.last_error
			FROM webhooks h JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL JOIN identities n ON n.id = i.id
			LEFT JOIN webhook_health y ON y.webhook_id = h.id
			WHERE h.organization_id = @organization AND (NOT h.enabled OR y.failing_since IS NOT NULL)
			ORDER BY h.enabled, since LIMIT 100`, args)
		store.QueueAll(pipeline, &counts, dayCountQuery, args)
		return nil
	}}, func() (DeliveryOverview, error) {
		for _, c := range counts {
			overview.LastDay[c.Status] = c.N
		}
		return overview, nil
	})
}
