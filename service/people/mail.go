package people

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// MailStatus is the mail status of a notice.
type MailStatus string

// The mail server accepted the e-mail; it ended, so that a notice stays in the inbox only; or the
// e-mail waits for another attempt.
const (
	MailSent    MailStatus = "sent"
	MailInbox   MailStatus = "inbox"
	MailWaiting MailStatus = "waiting"
)

// MailOutcome is the outcome of an attempt to mail something: its status, and for operators why it
// was not sent, without a recipient and the words of a server.
type MailOutcome struct {
	Status MailStatus
	Reason string
}

const (
	// MailLease is the time that an attempt has. A mail whose attempt was lost with its process is
	// tried again after it.
	MailLease = time.Minute
	// MailFor is the time for which a mail is tried again.
	MailFor = 48 * time.Hour
	// The pause after an attempt doubles within these bounds.
	minMailPause = 15 * time.Second
	maxMailPause = time.Hour
)

// NextMail returns when the next attempt at a mail may begin, after this number of attempts of which the last was now.
func NextMail(now models.Time, attempts int) models.Time {
	pause := minMailPause
	for ; attempts > 1 && pause < maxMailPause; attempts-- {
		pause *= 2
	}
	return models.TimeOf(now.Add(min(pause, maxMailPause)))
}

// linkOwner is for whom the token of a link is sealed: the link alone.
func linkOwner(hash []byte) string { return "link " + hex.EncodeToString(hash) }

const claimLinkQuery = `
	WITH claimed AS (
		UPDATE sign_in_links SET mail_attempts = mail_attempts + 1, next_mail_at = @until WHERE token_hash = (
			SELECT token_hash FROM sign_in_links
			WHERE organization_id = @organization AND sealed IS NOT NULL AND next_mail_at <= @now AND expires_at > @now
			ORDER BY next_mail_at, created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING *
	)
	SELECT l.token_hash, l.sealed, l.kind, l.created_at, l.expires_at, l.mail_attempts AS attempts,
		i.name AS person_name, p.email, coalesce(p.time_zone, '') AS time_zone, n.name AS organization
	FROM claimed l JOIN people p ON p.id = l.person_id JOIN identities i ON i.id = p.id JOIN identities n ON n.id = p.organization_id`

// ClaimLink begins an attempt to mail the organization's next sign-in link that waits, and returns
// the link. The caller must send it within MailLease, and record the outcome. Errors: not_found if none
// is due, unavailable.
func (s *People) ClaimLink(ctx context.Context, organizationID string) (LinkEmail, error) {
	now := s.CurrentTime()
	row, err := store.FindOne[struct {
		LinkEmail
		TokenHash, Sealed []byte
	}](ctx, s.Store, organizationID, models.NotFound(), claimLinkQuery,
		pgx.NamedArgs{"organization": organizationID, "now": now, "until": now.Add(MailLease)})
	if err != nil {
		return LinkEmail{}, err
	}
	link := row.LinkEmail
	link.hash = row.TokenHash
	token, err := s.Vault.Open(row.Sealed, linkOwner(row.TokenHash))
	if err != nil { // its key was removed
		s.Log.WarnContext(ctx, "a link that waited to be mailed is lost", "error", err.Error())
		if err := s.RecordLink(ctx, link, MailOutcome{Status: MailInbox}); err != nil {
			return LinkEmail{}, err
		}
		return s.ClaimLink(ctx, organizationID)
	}
	link.Token = string(token)
	return link, nil
}

// RecordLink stores the outcome of an attempt to mail a claimed link: one that was sent is no longer
// readable here, one that waits is tried again until it is MailFor old, and one that ends is
// removed, since no one knows it. Errors: unavailable.
func (s *People) RecordLink(ctx context.Context, link LinkEmail, outcome MailOutcome) error {
	now := s.CurrentTime()
	next := NextMail(now, link.Attempts)
	query, args := `DELETE FROM sign_in_links WHERE token_hash = $1 AND sealed IS NOT NULL`, []any{link.hash}
	switch {
	case outcome.Status == MailSent:
		query = `UPDATE sign_in_links SET sealed = NULL, mail_error = NULL WHERE token_hash = $1`
	case outcome.Status == MailWaiting && next.Sub(link.CreatedAt.Time) <= MailFor:
		query = `UPDATE sign_in_links SET next_mail_at = $2, mail_error = $3 WHERE token_hash = $1 AND sealed IS NOT NULL`
		args = append(args, next, outcome.Reason)
	}
	_, err := s.Pool.Exec(ctx, query, args...)
	return s.Translate(err)
}
