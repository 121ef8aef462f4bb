package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Rate is how many calls a caller has made in the running window.
type Rate struct {
	Limit int
	Calls int
	// Reset is the end of the window.
	Reset time.Time
}

// RateWindow is the length of a window (spec section 8: calls per minute).
const RateWindow = time.Minute

// Remaining is how many calls are left in the window.
func (r Rate) Remaining() int { return max(0, r.Limit-r.Calls) }

// Exceeded reports whether this call was one too many.
func (r Rate) Exceeded() bool { return r.Calls > r.Limit }

// Caller is an integration that was let in.
type Caller struct {
	Actor
	ClientID         string
	OrganizationName string
	ReadOnly         bool
	PlanName         string
	// Scopes are the token's as far as the integration still has them.
	Scopes models.Scopes
}

// admittedRow is what one call reads of its integration.
type admittedRow struct {
	Name             string
	OrganizationID   string
	OrganizationName string
	ReadOnly         bool
	ClientID         string
	Scopes           []string
	PlanName         string
	CallsPerMinute   int
	Calls            int
	WindowStart      time.Time
}

// countCall counts a call of {source}: its subject, its window and 1. The window
// moves only forward, so that servers whose clocks differ share one count.
const countCall = `
	INSERT INTO rate_counters AS c (subject, window_start, calls) {source}
	ON CONFLICT (subject) DO UPDATE SET
		calls = CASE WHEN excluded.window_start > c.window_start THEN 1 ELSE c.calls + 1 END,
		window_start = greatest(excluded.window_start, c.window_start)
	RETURNING calls, window_start`

// One statement admits a call: it reads the integration as it is now, so that
// every invalidation acts at once, and counts the call.
var admitQuery = `
	WITH admitted AS (
		SELECT i.id, i.organization_id, i.client_id, i.scopes, o.read_only, p.name AS plan_name, p.calls_per_minute
		FROM integrations i
		JOIN organizations o ON o.id = i.organization_id
		JOIN plans p ON p.organization_id = i.organization_id
		WHERE i.id = $1 AND i.token_epoch = $2
			AND ` + with(usableIntegration, "i", "i", "o", "o", "p", "p") + `
			AND NOT EXISTS (SELECT FROM revoked_tokens WHERE id = $3)
	), counted AS (
		` + with(countCall, "source", "SELECT id, $4::timestamptz, 1 FROM admitted") + `
	)
	SELECT i.name, a.organization_id, g.name AS organization_name, a.read_only, a.client_id, a.scopes,
		a.plan_name, a.calls_per_minute, c.calls, c.window_start
	FROM admitted a
	CROSS JOIN counted c
	JOIN identities i ON i.id = a.id
	JOIN identities g ON g.id = a.organization_id`

// Admit lets a call in: it verifies the token, reads the integration's present
// state and counts the call. Errors: invalid_token, rate_limited (with the
// Rate), unavailable.
func (s *Service) Admit(ctx context.Context, token string) (Caller, Rate, error) {
	claims, err := s.Tokens.parse(token, s.Issuer, s.Now)
	if err != nil {
		return Caller{}, Rate{}, err
	}
	window := s.Now().UTC().Truncate(RateWindow)
	rows, err := s.pool.Query(ctx, admitQuery, claims.Subject, claims.Epoch, claims.ID, window)
	if err != nil {
		return Caller{}, Rate{}, s.translate(err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[admittedRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Caller{}, Rate{}, invalidToken()
	}
	if err != nil {
		return Caller{}, Rate{}, s.translate(err)
	}
	rate := Rate{Limit: row.CallsPerMinute, Calls: row.Calls, Reset: row.WindowStart.Add(RateWindow)}
	if rate.Exceeded() {
		return Caller{}, rate, rateLimited()
	}
	held, _ := models.ScopesOf(row.Scopes)
	asked, _ := models.ScopesOf(strings.Fields(claims.Scope))
	scopes := asked.Intersect(held)
	return Caller{
		Actor: Actor{
			IdentityID:     claims.Subject,
			OrganizationID: row.OrganizationID,
			Kind:           models.KindIntegration,
			Name:           row.Name,
			ShowPeople:     scopes.Has(models.ScopePeopleRead),
		},
		ClientID:         row.ClientID,
		OrganizationName: row.OrganizationName,
		ReadOnly:         row.ReadOnly,
		PlanName:         row.PlanName,
		Scopes:           scopes,
	}, rate, nil
}

func rateLimited() *models.Error {
	return models.Errorf(models.CodeRateLimited, "Too many calls in this minute. Try again when the window ends.")
}

var countQuery = with(countCall, "source", "VALUES ($1, $2, 1)")

// CountAddress counts a call that has no valid token by its client address.
// Errors: rate_limited (with the Rate), unavailable.
func (s *Service) CountAddress(ctx context.Context, address string) (Rate, error) {
	return s.count(ctx, "address "+address, s.AddressCallsPerMinute)
}

// maxTokenFailures bounds the wrong secrets of one client from one address in a
// minute. A right secret is never refused for it, so nobody can lock a client out.
const maxTokenFailures = 30

// CountTokenFailure counts a wrong secret. Errors: rate_limited, unavailable.
func (s *Service) CountTokenFailure(ctx context.Context, clientID, address string) (Rate, error) {
	return s.count(ctx, fmt.Sprintf("token %s %x", address, sha256.Sum256([]byte(clientID))), maxTokenFailures)
}

func (s *Service) count(ctx context.Context, subject string, limit int) (Rate, error) {
	rate := Rate{Limit: limit}
	var start time.Time
	err := s.pool.QueryRow(ctx, countQuery, subject, s.Now().UTC().Truncate(RateWindow)).Scan(&rate.Calls, &start)
	rate.Reset = start.Add(RateWindow)
	if err != nil {
		return rate, s.translate(err)
	}
	if rate.Exceeded() {
		return rate, rateLimited()
	}
	return rate, nil
}
