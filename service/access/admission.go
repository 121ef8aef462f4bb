package access

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// Rate counts the calls that a caller has made in the current window, a minute long
// (api.md 8.2).
type Rate struct {
	// Limit is the maximum of calls in a window, Calls the number made, up to one over the limit.
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
}

// admissionQuery reads the integration of a valid token as it is now, so that whatever
// invalidates a token takes effect at once (api.md 5.4).
//
// A token is valid while its epoch is the integration's token_epoch, which triggers
// raise (models/migrations/00001): integrations_epoch when the secret is renewed,
// the integration turned off, disabled or deleted, or a scope removed; plans_epoch
// when the plan loses the API; organizations_epoch on suspension.
const admissionQuery = `
	SELECT n.name, i.organization_id, g.name AS organization_name, o.read_only, i.client_id, i.scopes, p.name AS plan_name, p.calls_per_minute
	FROM integrations i
	JOIN organizations o ON o.id = i.organization_id
	JOIN plans p ON p.organization_id = i.organization_id
	JOIN identities n ON n.id = i.id
	JOIN identities g ON g.id = i.organization_id
	WHERE i.id = $1 AND i.token_epoch = $2 AND ` + UsableIntegration + `
		AND NOT EXISTS (SELECT FROM revoked_tokens WHERE id = $3)`

// Admit verifies a call's token, reads the current state of its integration and counts the call,
// unless it is over the limit. The record that the call reads, nil if it reads none, is read in the
// same round trip; it may be shown if the call is admitted. The call begins as by EnterCall, and the caller must call End
// after the response. Errors: invalid_token (the token is malformed, expired, revoked or
// invalidated), rate_limited (with the Rate), EnterCall's.
func (s *Access) Admit(ctx context.Context, token string, record store.RecordRead) (Caller, Rate, error) {
	claims, err := s.Tokens.Parse(token, s.Issuer, s.Now)
	if err != nil {
		return Caller{}, Rate{}, err
	}
	end, err := s.EnterCall(ctx, claims.OrganizationID)
	if err != nil {
		return Caller{}, Rate{}, err
	}
	caller, rate, err := s.admit(ctx, claims, record)
	if err != nil {
		end()
		return Caller{}, rate, err
	}
	caller.end = end
	return caller, rate, nil
}

// admit is Admit for the claims of a token.
func (s *Access) admit(ctx context.Context, claims store.Claims, record store.RecordRead) (Caller, Rate, error) {
	var row admissionRow
	granted, _ := models.ParseScopes(claims.Scope)
	actor := store.Actor{IdentityID: claims.Subject, OrganizationID: claims.OrganizationID, Kind: models.KindIntegration, ShowPeople: granted.Has(models.ScopePeopleRead)}
	if err := s.ReadSingles(ctx, claims.OrganizationID, func(pipeline *pgx.Batch) {
		store.QueueOne(pipeline, &row, store.InvalidToken(), admissionQuery, claims.Subject, claims.Epoch, claims.ID)
		if record != nil {
			record.Queue(pipeline, actor)
		}
	}); err != nil {
		return Caller{}, Rate{}, err
	}
	rate := s.calls.add(claims.Subject, row.CallsPerMinute, s.Now())
	if rate.Exceeded() {
		return Caller{}, rate, overLimit()
	}
	held, _ := models.ScopesOf(row.Scopes)
	scopes := granted.Intersect(held)
	actor.Name, actor.ReadsFeedback, actor.ReadsWorkOrders = row.Name, scopes.Has(models.ScopeIssuesRead), scopes.Has(models.ScopeWorkOrdersRead)
	return Caller{
		Actor: actor, ClientID: row.ClientID, OrganizationName: row.OrganizationName, ReadOnly: row.ReadOnly, PlanName: row.PlanName, Scopes: scopes,
	}, rate, nil
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
