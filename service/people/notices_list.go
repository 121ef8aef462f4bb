package people

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// NoticeView is a notice in the inbox of its person.
type NoticeView struct {
	ID        int64             `json:"id"`
	Kind      models.NoticeKind `json:"kind"`
	CreatedAt models.Time       `json:"created_at"`
	ReadAt    *models.Time      `json:"read_at"`
	RecordID  string            `json:"record_id"`
	// About is the time a reminder is about.
	About *models.Time `json:"about"`
	// Readable is true if the person may read the record at this moment. Without it About, Title, Number
	// and Reason are not set.
	Readable bool `json:"readable"`
	// Title describes the record.
	Title string `json:"title"`
	// Number is a work order's.
	Number *int64 `json:"number"`
	// Reason is what the person wrote who sent the work back, returned it or cancelled it.
	Reason string `json:"-"`
}

// NoticeFilter selects a page of an inbox.
type NoticeFilter struct {
	// Read selects notices that were read instead of unread ones.
	Read bool
	// Before is the id of the last notice of the previous page, 0 for the first page.
	Before int64
	Limit  int
}

// NoticeRecords joins what the row notice is about, if the person, the actor, may read it at this
// moment: the work order w, the feedback f, the webhook address h, or the identity i. Everything that
// shows a notice joins it, the inbox and e-mails.
func NoticeRecords(notice, actor string) string {
	return `
	LEFT JOIN LATERAL (SELECT w.* FROM work_orders w WHERE w.id = ` + notice + `.record_id AND ` + access.ReadableWorkOrder("w", actor) + ` LIMIT 1) w ON true
	LEFT JOIN LATERAL (SELECT f.* FROM feedback f WHERE f.id = ` + notice + `.record_id AND ` + access.ReadableFeedback("f", actor) + ` LIMIT 1) f ON true
	LEFT JOIN LATERAL (SELECT h.* FROM webhooks h WHERE h.id = ` + notice + `.record_id AND ` + access.ManagesIntegrations(actor, "h.organization_id") + ` LIMIT 1) h ON true
	LEFT JOIN LATERAL (SELECT i.* FROM identities i WHERE i.id = ` + notice + `.record_id AND i.organization_id = ` + notice + `.organization_id AND i.deleted_at IS NULL
		AND (i.kind <> 'integration' OR ` + access.ManagesIntegrations(actor, "i.organization_id") + `
			AND NOT EXISTS (SELECT FROM integrations WHERE id = i.id AND deleted_at IS NOT NULL)) LIMIT 1) i ON true`
}

// NoticeReadable is the condition that NoticeRecords joined something.
const NoticeReadable = `coalesce(w.id, f.id, h.id, i.id) IS NOT NULL`

// inboxRecords is NoticeRecords for the notice n of the person @actor.
var inboxRecords = NoticeRecords("n", "@actor")

// noticesQuery reads a page of an inbox. null is "NOT" for notices that were read.
func noticesQuery(null string) string {
	return `
	SELECT n.id, n.kind, n.created_at, n.read_at, n.record_id, CASE WHEN ` + NoticeReadable + ` THEN n.about END AS about, ` + NoticeReadable + ` AS readable, coalesce(w.title, f.subject, h.url, i.name, '') AS title, w.number, coalesce(c.reason, '') AS reason
	FROM (SELECT * FROM notices WHERE person_id = @actor AND read_at IS ` + null + ` NULL AND id < @before ORDER BY id DESC LIMIT @limit) n` + inboxRecords + `
	LEFT JOIN LATERAL (SELECT coalesce(y.changes -> 'comment' ->> 'to', y.changes -> 'cancel_reason' ->> 'to') AS reason FROM log y
		WHERE n.kind IN ('work_order.sent_back', 'work_order.returned', 'work_order.cancelled') AND w.id IS NOT NULL
			AND y.record_id = n.record_id AND y.created_at = n.created_at ORDER BY y.id DESC LIMIT 1) c ON true
	ORDER BY n.id DESC`
}

// Notices returns a page of the actor's inbox, newest first. Errors: unavailable.
func (s *People) Notices(ctx context.Context, actor store.Actor, filter NoticeFilter) ([]NoticeView, error) {
	null := ""
	if filter.Read {
		null = "NOT"
	}
	return store.FindAll[NoticeView](ctx, s.Store, actor.OrganizationID, noticesQuery(null), pgx.NamedArgs{
		"actor": actor.IdentityID, "before": cmp.Or(filter.Before, 1<<62), "limit": min(cmp.Or(filter.Limit, models.DefaultPageSize), models.MaxPageSize+1),
	})
}

var readNoticeQuery = `
	WITH n AS (UPDATE notices SET read_at = coalesce(read_at, @now) WHERE id = @id AND person_id = @actor RETURNING record_id, organization_id)
	SELECT CASE WHEN ` + NoticeReadable + ` THEN n.record_id ELSE '' END AS record_id
	FROM n` + inboxRecords

// ReadNotice marks one of the actor's notices read and returns the id of its record, "" if
// the person may no longer read that. Errors: not_found, unavailable.
func (s *People) ReadNotice(ctx context.Context, actor store.Actor, id int64) (recordID string, err error) {
	notice, err := store.FindOne[struct{ RecordID string }](ctx, s.Store, actor.OrganizationID, models.NotFound(), readNoticeQuery,
		pgx.NamedArgs{"id": id, "actor": actor.IdentityID, "now": s.CurrentTime()})
	return notice.RecordID, err
}

var readsRecord = `SELECT ` + access.ReadsRecord("$1", "$2") + ` AS reads`

// ReadNoticesAbout marks the actor's notices about a work order or feedback read. Errors:
// not_found if the actor may not read it, unavailable.
func (s *People) ReadNoticesAbout(ctx context.Context, actor store.Actor, recordID string) error {
	found, err := store.FindOne[struct{ Reads bool }](ctx, s.Store, actor.OrganizationID, models.NotFound(), readsRecord, recordID, actor.IdentityID)
	if err == nil && !found.Reads {
		err = models.NotFound()
	}
	if err != nil {
		return err
	}
	_, err = s.Exec(ctx, actor.OrganizationID, `UPDATE notices SET read_at = $3 WHERE id = ANY (ARRAY(
		SELECT id FROM notices WHERE person_id = $1 AND read_at IS NULL AND record_id = $2 LIMIT $4 FOR UPDATE))`,
		actor.IdentityID, recordID, s.CurrentTime(), maxReadNotices)
	return err
}

// maxReadNotices limits the notices that one statement marks read.
const maxReadNotices = 5000

// ReadNotices marks the actor's notices read up to the id: the ones that the person has seen,
// not later arrivals. Errors: unavailable.
func (s *People) ReadNotices(ctx context.Context, actor store.Actor, last int64) error {
	for {
		read, err := s.Exec(ctx, actor.OrganizationID, `UPDATE notices SET read_at = $3 WHERE id = ANY (ARRAY(
			SELECT id FROM notices WHERE person_id = $1 AND read_at IS NULL AND id <= $2 ORDER BY id LIMIT $4 FOR UPDATE))`,
			actor.IdentityID, last, s.CurrentTime(), maxReadNotices)
		if err != nil || read < maxReadNotices {
			return err
		}
	}
}
