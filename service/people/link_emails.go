package people

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// linkOwner is for whom the token of a link is sealed: the link alone.
func linkOwner(hash []byte) string { return "link " + hex.EncodeToString(hash) }

// Bounds of mailing links.
const (
	// maxLinksPerClaim limits the links of a claim.
	maxLinksPerClaim = 16
	// A link that the mail server did not take is tried again after as long as it waits
	// already, within these bounds.
	minLinkRetry = 15 * time.Second
	maxLinkRetry = 15 * time.Minute
)

// claimLinksQuery takes turns with the organizations, so that none waits for the invitations
// of another.
const claimLinksQuery = `
	WITH claimed AS (
		UPDATE sign_in_links SET mailing_until = @until WHERE token_hash = ANY (ARRAY(
			SELECT l.token_hash FROM sign_in_links l JOIN (
				SELECT w.token_hash, w.created_at, row_number() OVER (PARTITION BY p.organization_id ORDER BY w.created_at, w.token_hash) AS nth
				FROM sign_in_links w JOIN people p ON p.id = w.person_id
				WHERE w.sealed IS NOT NULL AND (w.mailing_until IS NULL OR w.mailing_until <= @now)
				ORDER BY nth, w.created_at LIMIT @limit) next USING (token_hash)
			WHERE l.sealed IS NOT NULL AND (l.mailing_until IS NULL OR l.mailing_until <= @now)
			FOR UPDATE OF l SKIP LOCKED))
		RETURNING token_hash, sealed, person_id, kind, created_at, expires_at
	)
	SELECT l.token_hash, l.sealed, l.kind, l.expires_at, i.name AS person_name, p.email, coalesce(p.time_zone, '') AS time_zone, n.name AS organization
	FROM claimed l JOIN people p ON p.id = l.person_id JOIN identities i ON i.id = p.id JOIN identities n ON n.id = p.organization_id
	ORDER BY l.created_at`

// ClaimLinkEmails returns links that wait to be mailed, which the caller must send within
// the lease of three minutes. The tokens of those that have expired are erased. Errors: unavailable.
func (s *People) ClaimLinkEmails(ctx context.Context) ([]LinkEmail, error) {
	now := s.CurrentTime()
	if _, err := s.Pool.Exec(ctx, `UPDATE sign_in_links SET sealed = NULL WHERE sealed IS NOT NULL AND expires_at <= $1`, now); err != nil {
		return nil, s.Translate(err)
	}
	rows, err := store.FindAll[struct {
		LinkEmail
		TokenHash, Sealed []byte
	}](ctx, s.Store, "", claimLinksQuery, pgx.NamedArgs{"now": now, "until": now.Add(MailLease), "limit": maxLinksPerClaim})
	var emails []LinkEmail
	for _, row := range rows {
		email := row.LinkEmail
		email.hash = row.TokenHash
		token, failed := s.Vault.Open(row.Sealed, linkOwner(row.TokenHash))
		if failed != nil { // its key was removed
			s.Log.WarnContext(ctx, "a link that waited to be mailed is lost", "error", failed.Error())
			if err := s.RecordLinkEmail(ctx, email, MailInbox); err != nil {
				return nil, err
			}
			continue
		}
		email.Token = string(token)
		emails = append(emails, email)
	}
	return emails, err
}

// RecordLinkEmail stores the status of a claimed link: one that was sent is no longer
// readable here, one that waits is tried again, and one that cannot be sent ends, since no
// one knows it. Errors: unavailable.
func (s *People) RecordLinkEmail(ctx context.Context, email LinkEmail, status MailStatus) error {
	query, args := `UPDATE sign_in_links SET sealed = NULL, mailing_until = NULL WHERE token_hash = $1`, []any{email.hash}
	switch status {
	case MailSent:
	case MailInbox:
		query = `DELETE FROM sign_in_links WHERE token_hash = $1 AND sealed IS NOT NULL`
	case MailWaiting:
		query = `UPDATE sign_in_links SET mailing_until = $2::timestamptz + least(greatest($2 - created_at, $3::interval), $4::interval) WHERE token_hash = $1 AND sealed IS NOT NULL`
		args = append(args, s.CurrentTime(), minLinkRetry, maxLinkRetry)
	}
	_, err := s.Pool.Exec(ctx, query, args...)
	return s.Translate(err)
}

// MailStatus is the mail status of a notice.
type MailStatus string

// The mail server accepted the e-mail; the notice stays in the inbox only; or the
// e-mail waits for another attempt.
const (
	MailSent    MailStatus = "sent"
	MailInbox   MailStatus = "inbox"
	MailWaiting MailStatus = "waiting"
)

// MailLease is the time that the sender of a claimed e-mail has.
const MailLease = 3 * time.Minute
