package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"millwright/models"
	"millwright/service/batch"
	"millwright/service/store"
)

// Rate counts the calls that a caller has made in the current window, a minute long
// (api.md 8.2).
type Rate struct {
	// Limit is the maximum of calls in a window, Calls the number made, including those
	// over the limit.
	Limit, Calls int
	// Reset is the end of the window.
	Reset time.Time
}

// Remaining returns how many calls are left in the window.
func (r Rate) Remaining() int { return max(0, r.Limit-r.Calls) }

// Exceeded reports whether the latest call was over the limit.
func (r Rate) Exceeded() bool { return r.Calls > r.Limit }

// Caller is an integration whose call was admitted.
type Caller struct {
	store.Actor
	ClientID         string
	OrganizationName string
	ReadOnly         bool
	PlanName         string
	// Scopes are the token's scopes that the integration still has.
	Scopes models.Scopes

	end func()
}

// End ends the call, which lets the organization's next one be admitted. It does
// nothing for the zero Caller.
func (c Caller) End() {
	if c.end != nil {
		c.end()
	}
}

// admissionRow is what admitting a call reads about its integration.
type admissionRow struct {
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

// countCall counts the calls that {source} returns: a subject, its window and their
// number. The window only moves forward, so that servers whose clocks differ share a
// count.
const countCall = `
	INSERT INTO rate_counters AS c (subject, window_start, calls) {source}
	ON CONFLICT (subject) DO UPDATE SET
		calls = CASE WHEN excluded.window_start > c.window_start THEN 0 ELSE c.calls END + excluded.calls,
		window_start = greatest(excluded.window_start, c.window_start)
	RETURNING subject, calls, window_start`

// admissions admits calls in one statement: it reads each integration as it is now,
// so that whatever invalidates a token takes effect at once (api.md 5.4), and counts the
// calls. Concurrent calls with one token are checked
// once, and one integration's calls are counted together; each gets its own count.
//
// A token is valid while its epoch is the integration's token_epoch, which triggers
// raise (models/migrations/00001): integrations_epoch when the secret is renewed,
// the integration turned off, disabled or deleted, or a scope removed; plans_epoch
// when the plan loses the API; organizations_epoch on suspension.
var admissions = &batch.Statement{SQL: `
	WITH presented AS (
		SELECT subject, epoch, token, max(at) AS at, array_agg(nth) AS calls
		FROM unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[]) WITH ORDINALITY u (subject, epoch, token, at, nth)
		GROUP BY subject, epoch, token
	), admitted AS (
		SELECT a.at, a.calls, i.id, i.organization_id, i.client_id, i.scopes, o.read_only, p.name AS plan_name, p.calls_per_minute
		FROM presented a
		JOIN integrations i ON i.id = a.subject AND i.token_epoch = a.epoch
		JOIN organizations o ON o.id = i.organization_id
		JOIN plans p ON p.organization_id = i.organization_id
		WHERE ` + UsableIntegration + `
			AND NOT EXISTS (SELECT FROM revoked_tokens WHERE id = a.token)
	), counted AS (
		` + store.Fill(countCall, "source", "SELECT id, max(at), sum(cardinality(calls)) FROM admitted GROUP BY id ORDER BY id") + `
	)
	SELECT u.nth, i.name, a.organization_id, g.name AS organization_name, a.read_only, a.client_id, a.scopes,
		a.plan_name, a.calls_per_minute, c.window_start,
		(c.calls - count(*) OVER (PARTITION BY a.id) + row_number() OVER (PARTITION BY a.id ORDER BY u.nth))::integer AS calls
	FROM admitted a
	CROSS JOIN unnest(a.calls) u (nth)
	JOIN counted c ON c.subject = a.id
	JOIN identities i ON i.id = a.id
	JOIN identities g ON g.id = a.organization_id`}

// Admit verifies a call's token, reads the current state of its integration and counts
// the call. Calls of an integration that is over its limit are not counted until the minute
// ends or the limit changes. The call begins as by EnterCall, and the caller must call End after the response.
// RecordID is the record that the call reads, "" if it reads none: it is read in the same
// round trip. Errors: invalid_token (the token is malformed, expired, revoked or
// invalidated), rate_limited (with the Rate), EnterCall's.
func (s *Access) Admit(ctx context.Context, token, recordID string) (Caller, Rate, error) {
	claims, err := s.Tokens.Parse(token, s.Issuer, s.Now)
	if err != nil {
		return Caller{}, Rate{}, err
	}
	if rate, over := s.exceeded.rate(claims.Subject, s.Now()); over {
		limit, err := s.limitNow(ctx, claims)
		if err != nil {
			return Caller{}, rate, err
		}
		if limit == rate.Limit {
			s.countHour(claims.Subject, true)
			return Caller{}, rate, RejectOverLimit(ctx, s.OverLimitDelay)
		}
		s.exceeded.forget(claims.Subject)
	}
	organization := s.organizations.of(claims.Subject)
	end, err := s.EnterCall(ctx, organization)
	if err != nil {
		return Caller{}, Rate{}, err
	}
	caller, rate, err := s.admitted(ctx, claims, recordID)
	if err == nil {
		s.countHour(claims.Subject, rate.Exceeded())
	}
	if err == nil && !rate.Exceeded() {
		s.organizations.learn(claims.Subject, caller.OrganizationID)
		caller.end = end
		return caller, rate, nil
	}
	end()
	if rate.Exceeded() {
		err = RejectOverLimit(ctx, s.OverLimitDelay)
	}
	return Caller{}, rate, err
}

// limitNow returns the number of calls that the plan of the token's integration allows in a
// minute. It shares round trips with admissions and writes no row. Errors: invalid_token,
// unavailable.
func (s *Access) limitNow(ctx context.Context, claims store.Claims) (int, error) {
	var found tokenLimit
	lookup := batch.NewLookup(ctx, tokenLimits, &found, nil, claims.Subject, claims.Epoch, claims.ID)
	s.Reader.Start(claims.Subject, lookup)
	if err := lookup.Await(ctx); err != nil {
		return 0, store.Limited(s.Translate(err))
	}
	if found.CallsPerMinute == nil {
		return 0, store.InvalidToken()
	}
	return *found.CallsPerMinute, nil
}

// EnterCall waits until few calls of the organization, the console's included, are in progress,
// and returns the function that ends this one. Errors: unavailable (also when too many wait).
func (s *Access) EnterCall(ctx context.Context, organizationID string) (end func(), err error) {
	end, err = s.Calls.Enter(ctx, organizationID)
	if err != nil {
		return nil, store.Limited(s.Translate(err))
	}
	return end, nil
}

// EnterReceiving waits until few bodies of the token's integration are being received, which
// bounds their memory, and returns the function that ends this one. Errors: invalid_token,
// unavailable (also when too many wait).
func (s *Access) EnterReceiving(ctx context.Context, token string) (leave func(), err error) {
	claims, err := s.Tokens.Parse(token, s.Issuer, s.Now)
	if err != nil {
		return nil, err
	}
	if leave, err = s.Receiving.Enter(ctx, claims.Subject); err != nil {
		return nil, store.Limited(s.Translate(err))
	}
	return leave, nil
}

// EnterParsing waits until no other large body of the tenant, an organization or a network, is
// parsed, and returns the function that lets the next one be. Errors: unavailable.
func (s *Access) EnterParsing(ctx context.Context, tenant string) (leave func(), err error) {
	leave, err = s.Parsing.Enter(ctx, tenant)
	if err != nil {
		return nil, models.Errorf(models.CodeUnavailable, "Other large requests are being read. Try again in a few seconds.")
	}
	return leave, nil
}

// EnterExport waits until no other file of the actor is made, before the call takes a place, and
// returns the function that lets the next one be. Errors: unavailable.
func (s *Access) EnterExport(ctx context.Context, actor store.Actor) (leave func(), err error) {
	leave, err = s.Exporting.Enter(ctx, actor.IdentityID)
	if err != nil {
		return nil, models.Errorf(models.CodeUnavailable, "Other files of yours are being made. Try again in a few seconds.")
	}
	return leave, nil
}

// admitted reads the caller of the token and counts the call, even if that exceeds the
// limit. Errors: invalid_token, unavailable.
func (s *Access) admitted(ctx context.Context, claims store.Claims, recordID string) (Caller, Rate, error) {
	var row admissionRow
	admission := batch.NewLookup(ctx, admissions, &row, store.InvalidToken(), claims.Subject, claims.Epoch, claims.ID, s.Now().UTC().Truncate(models.RateWindow))
	lookups := []*batch.Lookup{admission}
	granted, _ := models.ParseScopes(claims.Scope)
	record := s.NewPrefetch(ctx, granted.Has(models.ScopePeopleRead), recordID, claims.Subject)
	if record != nil {
		lookups = append(lookups, record.Lookup)
	}
	s.Reader.Start(claims.Subject, lookups...)
	if err := admission.Await(ctx); err != nil {
		return Caller{}, Rate{}, store.Limited(s.Translate(err))
	}
	rate := Rate{Limit: row.CallsPerMinute, Calls: row.Calls, Reset: row.WindowStart.Add(models.RateWindow)}
	if rate.Exceeded() {
		s.exceeded.remember(claims.Subject, rate, s.Now())
		return Caller{}, rate, nil
	}
	held, _ := models.ScopesOf(row.Scopes)
	scopes := granted.Intersect(held)
	return Caller{
		Actor: store.Actor{
			IdentityID:      claims.Subject,
			OrganizationID:  row.OrganizationID,
			Kind:            models.KindIntegration,
			Name:            row.Name,
			ShowPeople:      scopes.Has(models.ScopePeopleRead),
			ReadsFeedback:   scopes.Has(models.ScopeIssuesRead),
			ReadsWorkOrders: scopes.Has(models.ScopeWorkOrdersRead),
			Prefetch:        record,
		},
		ClientID:         row.ClientID,
		OrganizationName: row.OrganizationName,
		ReadOnly:         row.ReadOnly,
		PlanName:         row.PlanName,
		Scopes:           scopes,
	}, rate, nil
}

// DefaultOverLimitDelay is the OverLimitDelay of a server.
const DefaultOverLimitDelay = 250 * time.Millisecond

// RejectOverLimit returns rate_limited after the delay, at once if the context ends. A caller over
// its limit that calls again at once would otherwise take the CPUs from everybody else; one that
// waits as it is told to does not notice.
func RejectOverLimit(ctx context.Context, delay time.Duration) error {
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return models.Errorf(models.CodeRateLimited, "Too many calls in this minute. Try again when the window ends.")
}

// countedCall is a call with the number of calls that its subject has made.
type countedCall struct {
	Calls       int
	WindowStart time.Time
}

// countedCalls counts calls of subjects in their windows; each gets its own count.
var countedCalls = &batch.Statement{SQL: `
	WITH presented AS (
		SELECT subject, max(at) AS at, array_agg(nth) AS calls
		FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY u (subject, at, nth)
		GROUP BY subject
	), counted AS (
		` + store.Fill(countCall, "source", "SELECT subject, max(at), cardinality(calls) FROM presented GROUP BY subject, calls ORDER BY subject") + `
	)
	SELECT u.nth, c.window_start,
		(c.calls - cardinality(p.calls) + row_number() OVER (PARTITION BY p.subject ORDER BY u.nth))::integer AS calls
	FROM presented p CROSS JOIN unnest(p.calls) u (nth) JOIN counted c ON c.subject = p.subject`}

// CountAddress counts a call without a valid token by its client address. Errors:
// rate_limited (with the Rate), unavailable.
func (s *Access) CountAddress(ctx context.Context, address string) (Rate, error) {
	return s.count(ctx, address, "address "+address, s.AddressCallsPerMinute)
}

// UncountedRate is the rate of a call that is counted nowhere: the limit of calls without a
// token, unused.
func (s *Access) UncountedRate() Rate {
	return Rate{Limit: s.AddressCallsPerMinute, Reset: s.Now().UTC().Truncate(models.RateWindow).Add(models.RateWindow)}
}

// maxTokenFailures bounds the wrong secrets that one address sends for one client id
// in a minute. A right secret is always accepted, so a client cannot be locked out.
const maxTokenFailures = 30

// CountTokenFailure counts a token request from an address that did not authenticate
// its client, and counts it for the client id that it named, if any. Beyond the
// address's limit it counts no client ids, so guesses leave a bounded number of rows.
// Errors: rate_limited (with the Rate), unavailable.
func (s *Access) CountTokenFailure(ctx context.Context, clientID, address string) (Rate, error) {
	rate, err := s.count(ctx, address, "token "+address, s.AddressCallsPerMinute)
	if err != nil || clientID == "" {
		return rate, err
	}
	return s.count(ctx, address, tokenSubject(clientID, address), maxTokenFailures)
}

// failures returns how many calls of subjects were counted in their windows.
var failures = &batch.Statement{SQL: `
	SELECT u.nth, coalesce(c.calls, 0) AS calls, u.at AS window_start
	FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY u (subject, at, nth)
	LEFT JOIN LATERAL (SELECT calls FROM rate_counters WHERE subject = u.subject AND window_start = u.at LIMIT 1) c ON true`}

// TokenFailures returns how many token requests for a client id from an address have
// failed in this window; none if the database does not respond.
func (s *Access) TokenFailures(ctx context.Context, clientID, address string) Rate {
	window := s.Now().UTC().Truncate(models.RateWindow)
	rate := Rate{Limit: maxTokenFailures, Reset: window.Add(models.RateWindow)}
	counted, err := ofCaller[countedCall](ctx, s.Store, failures, address, nil, tokenSubject(clientID, address), window)
	if err != nil && models.CodeOf(err) != models.CodeUnavailable {
		s.Log.WarnContext(ctx, "cannot read the count of failed token requests", "error", err.Error())
	}
	rate.Calls = counted.Calls
	return rate
}

// tokenSubject is what failed token requests of an address for a client id are counted for.
func tokenSubject(clientID, address string) string {
	return fmt.Sprintf("token %s %x", address, sha256.Sum256([]byte(clientID)))
}

// ofCaller runs a statement for a caller that is not admitted yet, an address or a client
// id, together with statements of other callers, who share the connection fairly. Without a
// row the error is missing. Errors: unavailable (also when too many calls of the caller wait).
func ofCaller[T any](ctx context.Context, s *store.Store, statement *batch.Statement, caller string, missing error, row ...any) (T, error) {
	found := new(T)
	lookup := batch.NewLookup(ctx, statement, found, missing, row...)
	s.Callers.Start(caller, lookup)
	if err := lookup.Await(ctx); err != nil {
		var none T
		return none, store.Limited(s.Translate(err)) // a lookup that goes on may still store the row
	}
	return *found, nil
}

// count counts a call of the subject from the address. Errors: rate_limited, unavailable.
func (s *Access) count(ctx context.Context, address, subject string, limit int) (Rate, error) {
	if rate, over := s.exceeded.rate(subject, s.Now()); over {
		return rate, RejectOverLimit(ctx, s.OverLimitDelay)
	}
	window := s.Now().UTC().Truncate(models.RateWindow)
	counted, err := ofCaller[countedCall](ctx, s.Store, countedCalls, address, nil, subject, window)
	if err != nil {
		return Rate{Limit: limit, Reset: window.Add(models.RateWindow)}, err
	}
	rate := Rate{Limit: limit, Calls: counted.Calls, Reset: counted.WindowStart.Add(models.RateWindow)}
	if rate.Exceeded() {
		s.exceeded.remember(subject, rate, s.Now())
		return rate, RejectOverLimit(ctx, s.OverLimitDelay)
	}
	return rate, nil
}
