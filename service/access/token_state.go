package access

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// TokenState is the introspection response for a token (RFC 7662 section 2.2).
type TokenState struct {
	Active   bool
	ID       string
	ClientID string
	Subject  string
	Issuer   string
	Audience string
	Scopes   models.Scopes
	// IssuedAt and ExpiresAt are in seconds of Unix time.
	IssuedAt, ExpiresAt int64
}

// RevokeToken revokes a token of the client (RFC 7009): the next call with it is
// rejected. An invalid token, or another client's, is not an error. Errors:
// invalid_client, unavailable.
func (s *Access) RevokeToken(ctx context.Context, clientID, secret, token string) error {
	client, err := s.authenticate(ctx, clientID, secret)
	if err != nil {
		return err
	}
	claims, err := s.Tokens.Parse(token, s.Issuer, s.Now)
	if err != nil || claims.Subject != client.ID {
		return nil //nolint:nilerr // RFC 7009 section 2.2: an invalid token counts as revoked
	}
	_, err = ofCaller[revokedToken](ctx, s.Store, revokedTokens, clientID, nil, claims.ID, claims.ExpiresAt.UTC())
	return err
}

// revokedToken is the result of revokedTokens.
type revokedToken struct{ Revoked bool }

var revokedTokens = &batch.Statement{SQL: `
	WITH presented AS (
		SELECT * FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY u (id, expires_at, nth)
	), revoked AS (
		INSERT INTO revoked_tokens (id, expires_at) SELECT DISTINCT ON (id) id, expires_at FROM presented ORDER BY id
		ON CONFLICT DO NOTHING
	)
	SELECT nth, true AS revoked FROM presented`}

// tokenLimit is the number of calls that the plan allows in a minute, nil if a call with the
// token would not be admitted now.
type tokenLimit struct{ CallsPerMinute *int }

var tokenLimits = &batch.Statement{SQL: `
	SELECT u.nth, (
		SELECT p.calls_per_minute FROM integrations i
		JOIN organizations o ON o.id = i.organization_id
		JOIN plans p ON p.organization_id = i.organization_id
		WHERE i.id = u.subject AND i.token_epoch = u.epoch
			AND ` + UsableIntegration + `
			AND NOT EXISTS (SELECT FROM revoked_tokens WHERE id = u.token)) AS calls_per_minute
	FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY u (subject, epoch, token, nth)`}

// IntrospectToken returns whether a token of the client would be admitted now, and
// its claims (RFC 7662). Any other token is reported as not active. Errors:
// invalid_client, unavailable.
func (s *Access) IntrospectToken(ctx context.Context, clientID, secret, token string) (TokenState, error) {
	client, err := s.authenticate(ctx, clientID, secret)
	if err != nil {
		return TokenState{}, err
	}
	claims, err := s.Tokens.Parse(token, s.Issuer, s.Now)
	if err != nil || claims.Subject != client.ID {
		return TokenState{}, nil //nolint:nilerr // RFC 7662 section 2.2: no details of an inactive token
	}
	found, err := ofCaller[tokenLimit](ctx, s.Store, tokenLimits, clientID, nil, claims.Subject, claims.Epoch, claims.ID)
	if err != nil || found.CallsPerMinute == nil {
		return TokenState{}, err
	}
	scopes, _ := models.ParseScopes(claims.Scope)
	held, _ := models.ScopesOf(client.Scopes)
	return TokenState{
		Active: true, ID: claims.ID, ClientID: claims.ClientID, Subject: claims.Subject, Issuer: claims.Issuer,
		Audience: claims.Audience[0], Scopes: scopes.Intersect(held), IssuedAt: claims.IssuedAt.Unix(), ExpiresAt: claims.ExpiresAt.Unix(),
	}, nil
}
