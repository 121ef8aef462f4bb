package service

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/batch"
)

// Rate is how many calls a caller has made in the running window.
type Rate struct {
	Limit int
	Calls int
	// Reset is the end of the window.
	Reset time.Time
}

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

// countCall counts calls of {source}: a subject, its window and how many. The window
// moves only forward, so that servers whose clocks differ share one count.
const countCall = `
	INSERT INTO rate_counters AS c (subject, window_start, calls) {source}
	ON CONFLICT (subject) DO UPDATE SET
		calls = CASE WHEN excluded.window_start > c.window_start THEN 0 ELSE c.calls END + excluded.calls,
		window_start = greatest(excluded.window_start, c.window_start)
	RETURNING subject, calls, window_start`

// One statement admits calls: it reads each integration as it is now, so that
// every invalidation acts at once, and counts the calls. Those of one token that
// come together are looked at once, those of one integration are counted together,
// and each is told its own place.
var admissions = &batch.Statement{Stage: stageKey, ReadOnly: true, SQL: `
	WITH asked AS (
		SELECT subject, epoch, token, max(at) AS at, array_agg(nth) AS calls
		FROM unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[]) WITH ORDINALITY u (subject, epoch, token, at, nth)
		GROUP BY subject, epoch, token
	), admitted AS (
		SELECT a.at, a.calls, i.id, i.organization_id, i.client_id, i.scopes, o.read_only, p.name AS plan_name, p.calls_per_minute
		FROM asked a
		JOIN integrations i ON i.id = a.subject AND i.token_epoch = a.epoch
		JOIN organizations o ON o.id = i.organization_id
		JOIN plans p ON p.organization_id = i.organization_id
		WHERE ` + with(usableIntegration, "i", "i", "o", "o", "p", "p") + `
			AND NOT EXISTS (SELECT FROM revoked_tokens WHERE id = a.token)
	), counted AS (
		` + with(countCall, "source", "SELECT id, max(at), sum(cardinality(calls)) FROM admitted GROUP BY id ORDER BY id") + `
	)
	SELECT u.nth, i.name, a.organization_id, g.name AS organization_name, a.read_only, a.client_id, a.scopes,
		a.plan_name, a.calls_per_minute, c.window_start,
		(c.calls - count(*) OVER (PARTITION BY a.id) + row_number() OVER (PARTITION BY a.id ORDER BY u.nth))::integer AS calls
	FROM admitted a
	CROSS JOIN unnest(a.calls) u (nth)
	JOIN counted c ON c.subject = a.id
	JOIN identities i ON i.id = a.id
	JOIN identities g ON g.id = a.organization_id`}

// Admit lets a call in: it verifies the token, reads the integration's present
// state and counts the call. recordID is the record that the call reads, "" for
// none: it travels along, so that such a call takes one round trip. Errors:
// invalid_token, rate_limited (with the Rate), unavailable.
func (s *Service) Admit(ctx context.Context, token, recordID string) (Caller, Rate, error) {
	claims, err := s.Tokens.parse(token, s.Issuer, s.Now)
	if err != nil {
		return Caller{}, Rate{}, err
	}
	var row admittedRow
	admission := batch.NewLookup(ctx, admissions, &row, invalidToken(), claims.Subject, claims.Epoch, claims.ID, s.Now().UTC().Truncate(models.RateWindow))
	lookups := []*batch.Lookup{admission}
	asked, _ := models.ScopesOf(strings.Fields(claims.Scope))
	ahead := startPrefetch(ctx, asked.Has(models.ScopePeopleRead), recordID, claims.Subject)
	if ahead != nil {
		lookups = append(lookups, ahead.Lookup)
	}
	s.reader.Start(lookups...)
	if err := admission.Await(ctx); err != nil {
		return Caller{}, Rate{}, s.translate(err)
	}
	rate := Rate{Limit: row.CallsPerMinute, Calls: row.Calls, Reset: row.WindowStart.Add(models.RateWindow)}
	if rate.Exceeded() {
		return Caller{}, rate, rateLimited()
	}
	held, _ := models.ScopesOf(row.Scopes)
	scopes := asked.Intersect(held)
	return Caller{
		Actor: Actor{
			IdentityID:     claims.Subject,
			OrganizationID: row.OrganizationID,
			Kind:           models.KindIntegration,
			Name:           row.Name,
			ShowPeople:     scopes.Has(models.ScopePeopleRead),
			prefetch:       ahead,
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
	err := s.pool.QueryRow(ctx, countQuery, subject, s.Now().UTC().Truncate(models.RateWindow)).Scan(nil, &rate.Calls, &start)
	rate.Reset = start.Add(models.RateWindow)
	if err != nil {
		return rate, s.translate(err)
	}
	if rate.Exceeded() {
		return rate, rateLimited()
	}
	return rate, nil
}
