package access

import (
	"context"

	"millwright/models"
	"millwright/service/store"
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
	_, err = store.LookUpAll[struct{}](ctx, s.Store, clientID, `INSERT INTO revoked_tokens (id, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`, claims.ID, claims.ExpiresAt.UTC())
	return err
}

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
	admissible, err := store.LookUpAll[admissionRow](ctx, s.Store, clientID, admissionQuery, claims.Subject, claims.Epoch, claims.ID)
	if err != nil || len(admissible) == 0 {
		return TokenState{}, err
	}
	scopes, _ := models.ParseScopes(claims.Scope)
	held, _ := models.ScopesOf(client.Scopes)
	return TokenState{
		Active: true, ID: claims.ID, ClientID: claims.ClientID, Subject: claims.Subject, Issuer: claims.Issuer,
		Audience: claims.Audience[0], Scopes: scopes.Intersect(held), IssuedAt: claims.IssuedAt.Unix(), ExpiresAt: claims.ExpiresAt.Unix(),
	}, nil
}
