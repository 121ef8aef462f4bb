package pages

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/store"
)

// maxStuck limits each list of Stuck.
const maxStuck = 100

// stuckAfter is the time for which a delivery or a workflow may wait without being stuck.
const stuckAfter = time.Minute

// Stuck is what does not go on by itself or goes on late, at most 100 of each kind.
type Stuck struct {
	// Addresses fail, are off, or have deliveries that wait, are retried or failed.
	Addresses []StuckAddress `json:"addresses"`
	// Records have a workflow that has not looked at their last change for a minute, oldest first.
	Records []StuckRecord `json:"records"`
	// Mail failed and waits for its next attempt.
	Mail []effects.WaitingMail `json:"mail"`
}

// StuckAddress is a webhook address with the numbers of its deliveries, each up to models.MaxCounted.
type StuckAddress struct {
	WebhookID      string `json:"webhook_id"`
	OrganizationID string `json:"organization_id"`
	Integration    string `json:"integration"`
	URL            string `json:"url"`
	Enabled        bool   `json:"enabled"`
	// Since is when it began to fail or was turned off, nil if neither; Reason is why it is off.
	Since  *models.Time `json:"since"`
	Reason string       `json:"reason"`
	// LastStatus and LastError belong to the last attempt.
	LastStatus *int    `json:"last_status"`
	LastError  *string `json:"last_error"`
	Failed     int     `json:"failed"`
	Retrying   int     `json:"retrying"`
	Held       int     `json:"held"`
	Pending    int     `json:"pending"`
}

// StuckRecord is a work order, feedback, a delivery or an address.
type StuckRecord struct {
	RecordID       string      `json:"record_id"`
	OrganizationID string      `json:"organization_id"`
	Since          models.Time `json:"since"`
}

const (
	// stuckAddressesQuery counts by index and stops at the limit.
	stuckAddressesQuery = `
	SELECT h.id AS webhook_id, h.organization_id, n.name AS integration, h.url, h.enabled, coalesce(h.off_at, y.failing_since) AS since,
		coalesce(h.off_reason, '') AS reason, y.last_status, y.last_error, c.failed, c.retrying, c.held, c.pending
	FROM webhooks h JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL JOIN identities n ON n.id = i.id
	JOIN sending s ON s.webhook_id = h.id LEFT JOIN webhook_health y ON y.webhook_id = h.id
	CROSS JOIN LATERAL (SELECT
		(SELECT count(*) FROM (SELECT FROM deliveries WHERE webhook_id = h.id AND status = 'failed' LIMIT @most) x) AS failed,
		(SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = h.id AND status = 'retrying' AND s.sends AND queued_at >= s.held_before LIMIT @most) x) AS retrying,
		(SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = h.id AND NOT (s.sends AND queued_at >= s.held_before) LIMIT @most) x) AS held,
		(SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = h.id AND status = 'pending' AND s.sends AND queued_at >= s.held_before LIMIT @most) x) AS pending,
		coalesce((SELECT min(queued_at) FROM open_deliveries WHERE webhook_id = h.id AND status = 'pending') < @before, false) AS waits OFFSET 0) c
	WHERE (h.organization_id = @organization OR @organization = '') AND (NOT h.enabled OR y.failing_since IS NOT NULL OR c.failed + c.retrying + c.held > 0 OR c.waits)
	ORDER BY h.enabled, since, h.id LIMIT @limit`

	stuckRecordsQuery = `
	SELECT d.record_id, d.organization_id, d.since FROM (
		SELECT l.record_id, l.since, ` + effects.OrganizationOfDirty + ` AS organization_id
		FROM (SELECT record_id, since FROM dirty_records WHERE since < @before ORDER BY since LIMIT @most) l) d
	WHERE d.organization_id = @organization OR @organization = '' ORDER BY d.since, d.record_id LIMIT @limit`
)

// Stuck returns what is stuck in the organization, in all with "". It is for operators: it does not check permissions.
// Errors: unavailable.
func (s *Pages) Stuck(ctx context.Context, organizationID string) (Stuck, error) {
	return s.stuck(ctx, organizationID, func(*pgx.Batch) {})
}

// StuckForPerson is Stuck in the organization of someone who manages integrations. Errors: permission_denied, unavailable.
func (s *Pages) StuckForPerson(ctx context.Context, actor store.Actor) (Stuck, error) {
	return s.stuck(ctx, actor.OrganizationID, func(pipeline *pgx.Batch) { access.QueueMayManage(pipeline, actor) })
}

func (s *Pages) stuck(ctx context.Context, organizationID string, check func(*pgx.Batch)) (Stuck, error) {
	found := Stuck{Addresses: []StuckAddress{}, Records: []StuckRecord{}, Mail: []effects.WaitingMail{}} // JSON has no null
	found, err := store.Read(ctx, s.Store, organizationID, func(pipeline *pgx.Batch) error {
		args := pgx.NamedArgs{"organization": organizationID, "before": s.CurrentTime().Add(-stuckAfter), "most": models.MaxCounted, "limit": maxStuck}
		check(pipeline)
		store.QueueAll(pipeline, &found.Addresses, stuckAddressesQuery, args)
		store.QueueAll(pipeline, &found.Records, stuckRecordsQuery, args)
		return nil
	}, func() (Stuck, error) { return found, nil })
	if err != nil {
		return found, err
	}
	waiting, err := effects.New(s.Store).WaitingMail(ctx, organizationID)
	for _, mail := range waiting {
		if mail.Attempts > 0 && len(found.Mail) < maxStuck {
			found.Mail = append(found.Mail, mail)
		}
	}
	return found, err
}
