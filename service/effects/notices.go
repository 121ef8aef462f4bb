package effects

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/people"
	"millwright/service/store"
)

// NoticeEmail is an e-mail to one person about one change of one record, for all
// notices of the change. It contains a name and an address: it goes from the database
// to the mail server, never into a workflow history or a log.
type NoticeEmail struct {
	// NoticeIDs are the notices in the e-mail; the first identifies it.
	NoticeIDs []int64
	Kinds     []string
	RecordID  string
	CreatedAt models.Time
	// About is the time a reminder is about.
	About *models.Time
	// Readable is true if the person may read what the notices are about, at the time of the
	// claim. Without it nothing below TimeZone is set, and Organization is the person's own.
	Readable bool

	Organization string
	PersonName   string
	PersonEmail  string
	// TimeZone is the recipient's, a name of the time zone database; "" is UTC.
	TimeZone string

	// The fields from here to TargetDate describe a work order or feedback.
	Number      *int64
	Title       string
	Node        string
	Status      string
	Reason      string // of a cancellation, or the comment of a review
	ActorName   string
	TargetDate  *models.Time
	Changed     []string // the fields that a change of a work order changed
	Integration string   // of a webhook address
	Identity    string   // the name of the identity that it is about
	Kind        string   // of that identity
	URL         string
	OffReason   string
}

// pages are where the console shows what notices and workflows are about, by the prefix of an
// id or the kind of an identity.
var pages = map[string]string{
	string(models.PrefixWorkOrder): "/work-orders/", string(models.PrefixFeedback): "/feedback/", string(models.PrefixWebhook): "/webhooks/",
	string(models.PrefixDelivery): "/deliveries/", string(models.KindPerson): "/people/", string(models.KindIntegration): "/integrations/", string(models.KindTeam): "/teams/",
}

// PageURL is the URL of the record in the console, of the inbox if the person may not read it, or
// of the start page.
func (n NoticeEmail) PageURL(publicURL string) string {
	if !n.Readable {
		return publicURL + "/console/notices"
	}
	return pageURL(publicURL, n.Kind, n.RecordID)
}

// PageURL is the URL of the page in the console of what has the id.
func PageURL(publicURL, id string) string { return pageURL(publicURL, "", id) }

func pageURL(publicURL, kind, id string) string {
	prefix, _, _ := strings.Cut(id, "_")
	if page, known := pages[cmp.Or(kind, prefix)]; known {
		return publicURL + "/console" + page + id
	}
	return publicURL + "/console"
}

// MailFor is the time for which a notice waits for a mail server; then it stays in the
// console's inbox only.
const MailFor = 48 * time.Hour

// An e-mail contains the notices that one write left for one person about one record:
// they have the same created_at. It shows the record as the inbox does (people.NoticeRecords), and
// names the customer to whom a page does (access.CustomerOf).
var claimNoticeEmailsQuery = `
	WITH claimed AS (
		UPDATE notices SET mailing_until = $2
		WHERE id IN (
			SELECT id FROM notices WHERE record_id = $1 AND mail = 'waiting' AND (mailing_until IS NULL OR mailing_until < $3)
				AND created_at IN (SELECT DISTINCT created_at FROM notices
					WHERE record_id = $1 AND mail = 'waiting' AND (mailing_until IS NULL OR mailing_until < $3)
					ORDER BY created_at LIMIT $4)
			ORDER BY created_at, person_id, id LIMIT $5 FOR UPDATE SKIP LOCKED)
		RETURNING id, organization_id, person_id, kind, record_id, created_at, about, mail_to
	), emails AS (
		SELECT array_agg(id ORDER BY id) AS notice_ids, array_agg(kind ORDER BY id) AS kinds,
			organization_id, person_id, record_id, created_at, about, mail_to
		FROM claimed GROUP BY organization_id, person_id, record_id, created_at, about, mail_to
	)
	SELECT l.notice_ids, l.kinds, l.record_id, l.created_at, l.about, ` + people.NoticeReadable + ` AS readable,
		g.name AS organization, own.name AS person_name, coalesce(l.mail_to, p.email) AS person_email, coalesce(p.time_zone, '') AS time_zone,
		w.number, coalesce(w.title, f.subject, '') AS title, coalesce(n.name, '') AS node,
		coalesce(w.status, f.status, '') AS status, coalesce(c.changes -> 'comment' ->> 'to', c.changes -> 'cancel_reason' ->> 'to', '') AS reason,
		coalesce(c.actor_name, '') AS actor_name, w.target_date,
		ARRAY(SELECT f.name FROM unnest(ARRAY['title', 'description', 'priority', 'target_date']) f (name) WHERE c.changes ? f.name) AS changed,
		coalesce(hi.name, '') AS integration, coalesce(h.url, '') AS url, coalesce(h.off_reason, '') AS off_reason,
		coalesce(i.name, '') AS identity, coalesce(i.kind, '') AS kind
	FROM emails l
	JOIN people p ON p.id = l.person_id
	JOIN identities own ON own.id = l.person_id` + store.Fill(people.NoticeRecords, "notice", "l", "actor", "l.person_id") + `
	LEFT JOIN inventory_nodes n ON n.id = coalesce(w.inventory_id, f.inventory_id)
	LEFT JOIN identities hi ON hi.id = h.integration_id
	JOIN identities g ON g.id = CASE WHEN w.organization_id <> p.organization_id AND NOT ` + store.Fill(access.IncomingWorkOrders, "actor", "l.person_id") + `
		THEN p.organization_id ELSE coalesce(w.organization_id, f.organization_id, h.organization_id, l.organization_id) END
	LEFT JOIN LATERAL (
		SELECT y.changes, coalesce(a.name, y.actor_name) AS actor_name FROM log y LEFT JOIN identities a ON a.id = y.actor_id
		WHERE ` + people.NoticeReadable + ` AND y.record_id = l.record_id AND y.created_at = l.created_at ORDER BY y.id DESC LIMIT 1) c ON true
	ORDER BY l.notice_ids`

// maxChangesPerClaim is for how many changes one claim takes the e-mails, maxNoticesPerClaim
// how many notices it takes: an import may change the access of thousands.
const (
	maxChangesPerClaim = 10
	maxNoticesPerClaim = 200
)

var keepInInboxQuery = `
	UPDATE notices SET mail = 'inbox', mail_to = NULL WHERE record_id = $1 AND mail = 'waiting'
		AND (created_at < $2 OR (SELECT p.deactivated_at IS NOT NULL OR o.suspended AND NOT ` + store.Fill(people.AboutIdentity, "notice", "notices") + `
			FROM people p JOIN organizations o ON o.id = p.organization_id WHERE p.id = notices.person_id))`

// ClaimNoticeEmails returns waiting e-mails about the record, which the caller must
// send within the lease of three minutes; more is set if others wait. Notices that
// waited longer than MailFor, notices for people who were deactivated since, and those about
// something else than identities while no one of the organization can sign in, stay in the inbox.
// Errors: unavailable.
func (s *Effects) ClaimNoticeEmails(ctx context.Context, recordID string) (emails []NoticeEmail, more bool, err error) {
	now := s.CurrentTime()
	pipeline := &pgx.Batch{}
	pipeline.Queue(keepInInboxQuery, recordID, now.Add(-MailFor))
	pipeline.Queue(claimNoticeEmailsQuery, recordID, now.Add(people.MailLease), now, maxChangesPerClaim, maxNoticesPerClaim).Query(func(rows pgx.Rows) error {
		emails, err = pgx.CollectRows(rows, pgx.RowToStructByName[NoticeEmail])
		return err
	})
	if err := s.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, false, s.Translate(err)
	}
	changes, notices := map[int64]bool{}, 0
	for _, l := range emails {
		changes[l.CreatedAt.UnixMilli()] = true
		notices += len(l.NoticeIDs)
	}
	return emails, len(changes) == maxChangesPerClaim || notices == maxNoticesPerClaim, nil
}

// RecordNoticeEmail stores the status of a claimed e-mail. Errors: unavailable.
func (s *Effects) RecordNoticeEmail(ctx context.Context, email NoticeEmail, status people.MailStatus) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE notices SET mail = $2, mailing_until = NULL, mail_to = CASE WHEN $2 = 'waiting' THEN mail_to END, mailed_at = CASE WHEN $2 = 'sent' THEN $3::timestamptz END
		WHERE id = ANY ($1) AND mail = 'waiting'`, email.NoticeIDs, string(status), s.CurrentTime())
	return s.Translate(err)
}

// KeepInInbox stops mailing every waiting notice about the record. Errors: unavailable.
func (s *Effects) KeepInInbox(ctx context.Context, recordID string) error {
	_, err := s.Pool.Exec(ctx, `UPDATE notices SET mail = 'inbox', mailing_until = NULL, mail_to = NULL WHERE record_id = $1 AND mail = 'waiting'`, recordID)
	return s.Translate(err)
}

// IdentitiesToMail returns the identities that notices to be mailed are about: of each
// organization the one whose notice waits for the longest time. Their notices have no
// workflow. Errors: unavailable.
func (s *Effects) IdentitiesToMail(ctx context.Context) ([]string, error) {
	rows, err := s.Pool.Query(ctx, `
		SELECT DISTINCT ON (organization_id) record_id FROM notices
		WHERE mail = 'waiting' AND `+store.Fill(people.AboutIdentity, "notice", "notices")+` AND (mailing_until IS NULL OR mailing_until < $1)
		ORDER BY organization_id, created_at, record_id`, s.CurrentTime())
	if err != nil {
		return nil, s.Translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, s.Translate(err)
}
