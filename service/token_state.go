package service

import (
	"context"
	"strings"

	"millwright/models"
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
func (s *Service) RevokeToken(ctx context.Context, clientID, secret, token string) error {
	client, err := s.authenticate(ctx, clientID, secret)
	if err != nil {
		return err
	}
	claims, err := s.Tokens.parse(token, s.Issuer, s.Now)
	if err != nil || claims.Subject != client.ID {
		return nil //nolint:nilerr // RFC 7009 section 2.2: an invalid token counts as revoked
	}
	_, err = s.pool.Exec(ctx, `INSERT INTO revoked_tokens (id, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
		claims.ID, claims.ExpiresAt.UTC())
	return s.translate(err)
}

var tokenActiveQuery = `
	SELECT EXISTS (
		SELECT FROM integrations i
		JOIN organizations o ON o.id = i.organization_id
		JOIN plans p ON p.organization_id = i.organization_id
		WHERE i.id = $1 AND i.token_epoch = $2
			AND ` + with(usableIntegration, "i", "i", "o", "o", "p", "p") + `
			AND NOT EXISTS (SELECT FROM revoked_tokens WHERE id = $3))`

// IntrospectToken returns whether a token of the client would be admitted now, and
// its claims (RFC 7662). Any other token is reported as not active. Errors:
// invalid_client, unavailable.
func (s *Service) IntrospectToken(ctx context.Context, clientID, secret, token string) (TokenState, error) {
	client, err := s.authenticate(ctx, clientID, secret)
	if err != nil {
		return TokenState{}, err
	}
	claims, err := s.Tokens.parse(token, s.Issuer, s.Now)
	if err != nil || claims.Subject != client.ID {
		return TokenState{}, nil //nolint:nilerr // RFC 7662 section 2.2: no details of an inactive token
	}
	var active bool
	if err := s.pool.QueryRow(ctx, tokenActiveQuery, claims.Subject, claims.Epoch, claims.ID).Scan(&active); err != nil {
		return TokenState{}, s.translate(err)
	}
	if !active {
		return TokenState{}, nil
	}
	scopes, _ := models.ScopesOf(strings.Fields(claims.Scope))
	held, _ := models.ScopesOf(client.Scopes)
	return TokenState{
		Active: true, ID: claims.ID, ClientID: claims.ClientID, Subject: claims.Subject, Issuer: claims.Issuer,
		Audience: claims.Audience[0], Scopes: scopes.Intersect(held), IssuedAt: claims.IssuedAt.Unix(), ExpiresAt: claims.ExpiresAt.Unix(),
	}, nil
}
