package effects

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/people"
	"millwright/service/store"
)

// Mail is an e-mail to one person with all notices that wait for that person. It contains names and
// an address: it goes from the database to the mail server, never into a workflow history or a log.
type Mail struct {
	PersonName  string
	PersonEmail string
	// TimeZone is the recipient's, a name of the time zone database; "" is UTC.
	TimeZone string
	// Notices are in the order in which they were left. They are empty if none is to be mailed any longer.
	Notices []MailedNotice
	// attempts counts the attempts to send it.
	attempts int
}

// FirstID is the id of its first notice. A mail that is sent again, because its first attempt was
// lost, has the same.
func (m Mail) FirstID() int64 { return m.Notices[0].ID }

// MailedNotice is a notice in an e-mail, as its person may see it when the attempt begins.
type MailedNotice struct {
	ID        int64
	Kind      models.NoticeKind
	RecordID  string
	CreatedAt models.Time
	// About is the time a reminder is about.
	About *models.Time
	// Readable is true if the person may read what the notice is about. Without it nothing below is set
	// but Organization, which is the person's own.
	Readable bool

	Organization string
	// The fields from here to Changed describe a work order or feedback.
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
	// IdentityKind is the kind of that identity.
	IdentityKind string
	URL          string
	OffReason    string
}

// maxNoticesPerMail limits the notices of an e-mail: an import may change the access of thousands.
// More are in the next.
const maxNoticesPerMail = 500

// claimMailQuery begins an attempt at the mail of the person whose mail is due for the longest time:
// everything that waits for that person and goes to the same address, once the first of it is
// store.MailDelay old. Notices about identities, such as who may sign in, are apart from others: a mail
// server may reject the words of a title. None goes to a person whose mail of that kind waits for another
// attempt. A notice is no longer mailed when it is MailFor old, its person is
// deactivated, or no one of the organization can sign in to see what it is about. A notice shows the
// record as the inbox does (people.NoticeRecords), and names the customer to whom a page does
// (access.CustomerOf).
var claimMailQuery = `
	WITH first AS (
		SELECT n.person_id, n.mail_to, ` + people.AboutIdentity("n") + ` AS identity FROM notices n
		WHERE n.organization_id = @organization AND n.mail = 'waiting' AND n.next_mail_at <= @now AND n.created_at <= @since
			AND NOT EXISTS (SELECT FROM notices w WHERE w.person_id = n.person_id AND w.mail = 'waiting' AND w.next_mail_at > @now
				AND (` + people.AboutIdentity("w") + `) = (` + people.AboutIdentity("n") + `))
		ORDER BY n.next_mail_at, n.id LIMIT 1
	), person AS (
		SELECT f.*, p.deactivated_at IS NOT NULL AS gone, o.suspended FROM first f JOIN people p ON p.id = f.person_id JOIN organizations o ON o.id = p.organization_id
	), due AS (
		SELECT w.id, t.gone OR w.created_at < @before OR t.suspended AND NOT t.identity AS ended
		FROM person t JOIN notices w ON w.person_id = t.person_id AND w.mail = 'waiting' AND w.next_mail_at <= @now AND w.mail_to IS NOT DISTINCT FROM t.mail_to
				AND (` + people.AboutIdentity("w") + `) = t.identity
		ORDER BY w.id LIMIT @limit FOR UPDATE OF w
	), claimed AS (
		UPDATE notices n SET mail_attempts = n.mail_attempts + 1, next_mail_at = @until,
			mail = CASE WHEN ended THEN 'inbox' ELSE 'waiting' END, mail_to = CASE WHEN NOT ended THEN n.mail_to END
		FROM due WHERE n.id = ANY (ARRAY(SELECT id FROM due)) AND due.id = n.id
		RETURNING n.id, n.organization_id, n.person_id, n.kind, n.record_id, n.created_at, n.about, n.mail, n.mail_to, n.mail_attempts
	)
	SELECT l.id, l.kind, l.record_id, l.created_at, l.about, ` + people.NoticeReadable + ` AS readable, l.mail, l.mail_attempts AS attempts,
		g.name AS organization, own.name AS person_name, coalesce(l.mail_to, p.email) AS person_email, coalesce(p.time_zone, '') AS time_zone,
		w.number, coalesce(w.title, f.subject, '') AS title, coalesce(n.name, '') AS node,
		coalesce(w.status, f.status, '') AS status, coalesce(c.changes -> 'comment' ->> 'to', c.changes -> 'cancel_reason' ->> 'to', '') AS reason,
		coalesce(c.actor_name, '') AS actor_name, w.target_date,
		ARRAY(SELECT f.name FROM unnest(ARRAY['title', 'description', 'priority', 'target_date']) f (name) WHERE c.changes ? f.name) AS changed,
		coalesce(hi.name, '') AS integration, coalesce(h.url, '') AS url, coalesce(h.off_reason, '') AS off_reason,
		coalesce(i.name, '') AS identity, coalesce(i.kind, '') AS identity_kind
	FROM claimed l
	JOIN people p ON p.id = l.person_id
	JOIN identities own ON own.id = l.person_id` + people.NoticeRecords("l", "l.person_id") + `
	LEFT JOIN inventory_nodes n ON n.id = coalesce(w.inventory_id, f.inventory_id)
	LEFT JOIN identities hi ON hi.id = h.integration_id
	JOIN identities g ON g.id = CASE WHEN w.organization_id <> p.organization_id AND NOT ` + access.IncomingWorkOrders("l.person_id") + `
		THEN p.organization_id ELSE coalesce(w.organization_id, f.organization_id, h.organization_id, l.organization_id) END
	LEFT JOIN LATERAL (
		SELECT y.changes, coalesce(a.name, y.actor_name) AS actor_name FROM log y LEFT JOIN identities a ON a.id = y.actor_id
		WHERE ` + people.NoticeReadable + ` AND y.record_id = l.record_id AND y.created_at = l.created_at ORDER BY y.id DESC LIMIT 1) c ON true
	ORDER BY l.id`

// ClaimMail begins an attempt at the organization's next e-mail that is due. The caller must send it
// within people.MailLease, and record the outcome. Errors: not_found if none is due, unavailable.
func (s *Effects) ClaimMail(ctx context.Context, organizationID string) (Mail, error) {
	now := s.CurrentTime()
	rows, err := store.FindAll[struct {
		MailedNotice
		PersonName, PersonEmail, TimeZone, Mail string
		Attempts                                int
	}](ctx, s.Store, organizationID, claimMailQuery, pgx.NamedArgs{
		"organization": organizationID, "now": now, "until": now.Add(people.MailLease), "before": now.Add(-people.MailFor), "since": now.Add(-store.MailDelay), "limit": maxNoticesPerMail,
	})
	if err != nil {
		return Mail{}, err
	}
	if len(rows) == 0 {
		return Mail{}, models.NotFound()
	}
	var mail Mail
	for _, row := range rows {
		if people.MailStatus(row.Mail) == people.MailWaiting {
			mail.PersonName, mail.PersonEmail, mail.TimeZone = row.PersonName, row.PersonEmail, row.TimeZone
			mail.Notices, mail.attempts = append(mail.Notices, row.MailedNotice), max(mail.attempts, row.Attempts)
		}
	}
	return mail, nil
}

// RecordMail stores the outcome of an attempt at a claimed e-mail. Errors: unavailable.
func (s *Effects) RecordMail(ctx context.Context, mail Mail, outcome people.MailOutcome) error {
	var ids []int64
	for _, n := range mail.Notices {
		ids = append(ids, n.ID)
	}
	now := s.CurrentTime()
	_, err := s.Pool.Exec(ctx, `
		UPDATE notices SET mail = @status, mail_to = CASE WHEN @status = 'waiting' THEN mail_to END, mailed_at = CASE WHEN @status = 'sent' THEN @now::timestamptz END,
			next_mail_at = @next, mail_error = nullif(@reason, '')
		WHERE id = ANY (@ids) AND mail = 'waiting'`, pgx.NamedArgs{
		"ids": ids, "status": string(outcome.Status), "reason": outcome.Reason, "now": now, "next": people.NextMail(now, mail.attempts),
	})
	return s.Translate(err)
}

// WaitingMail is the mail that waits for one person.
type WaitingMail struct {
	OrganizationID string `json:"organization_id"`
	PersonID       string `json:"person_id"`
	// Kind is "notices" about records and addresses, "security" for notices about who may do what and sign in
	// how, or "link".
	Kind string `json:"kind"`
	// Count is the number of notices in it.
	Count int         `json:"count"`
	Since models.Time `json:"since"`
	// Attempts counts the attempts, and NextAt is when the next may begin.
	Attempts int         `json:"attempts"`
	NextAt   models.Time `json:"next_attempt_at"`
	// Reason is why the last attempt failed, nil before one has.
	Reason *string `json:"reason"`
}

// waitingMailQuery reads at most @limit notices and @limit links of each organization.
var waitingMailQuery = `
	SELECT m.organization_id, m.person_id, m.kind, count(*) AS count, min(m.created_at) AS since, max(m.mail_attempts) AS attempts,
		greatest(max(m.next_mail_at), min(m.due_at)) AS next_at,
		(array_agg(m.mail_error ORDER BY m.next_mail_at DESC) FILTER (WHERE m.mail_error IS NOT NULL))[1] AS reason
	FROM organizations o CROSS JOIN LATERAL (
		(SELECT organization_id, person_id, CASE WHEN ` + people.AboutIdentity("notices") + ` THEN 'security' ELSE 'notices' END AS kind,
				created_at, created_at + @delay::interval AS due_at, mail_attempts, next_mail_at, mail_error FROM notices
			WHERE organization_id = o.id AND mail = 'waiting' ORDER BY next_mail_at DESC LIMIT @limit)
		UNION ALL (SELECT organization_id, person_id, 'link', created_at, created_at, mail_attempts, next_mail_at, mail_error FROM sign_in_links
			WHERE organization_id = o.id AND sealed IS NOT NULL AND expires_at > @now ORDER BY next_mail_at DESC LIMIT @limit)) m
	WHERE o.id = @organization OR @organization = ''
	GROUP BY m.organization_id, m.person_id, m.kind ORDER BY since, m.person_id LIMIT @limit`

// MaxWaitingMail limits the notices and links, and the mails, of WaitingMail.
const MaxWaitingMail = 1000

// WaitingMail returns the mail that waits for people of the organization, or of all with "", oldest
// first, up to MaxWaitingMail. Errors: unavailable.
func (s *Effects) WaitingMail(ctx context.Context, organizationID string) ([]WaitingMail, error) {
	return store.FindAll[WaitingMail](ctx, s.Store, organizationID, waitingMailQuery,
		pgx.NamedArgs{"organization": organizationID, "now": s.CurrentTime(), "delay": store.MailDelay, "limit": MaxWaitingMail})
}

// NextAttempt returns when the first of the mails may be tried.
func NextAttempt(waiting []WaitingMail) models.Time {
	return slices.MinFunc(waiting, func(a, b WaitingMail) int { return a.NextAt.Compare(b.NextAt.Time) }).NextAt
}
