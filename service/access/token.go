package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// Token is an access token as the token endpoint returns it.
type Token struct {
	AccessToken string
	ExpiresIn   time.Duration
	Scopes      models.Scopes
}

// HashSecret returns the digest that is stored of a client secret. A secret has 256
// random bits, so the digest needs no salt and no slow hash.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// tokenClient is an integration as the token endpoint needs it.
type tokenClient struct {
	ID, OrganizationID string
	SecretHash         []byte
	// PreviousSecretHash is nil without a secret before that one (models.Integration).
	PreviousSecretHash  []byte
	PreviousSecretUntil *models.Time
	Scopes              []string
	// TokenEpoch goes into the token's claims.
	TokenEpoch int
	Deleted    bool
	// Usable is whether the integration may use the service.
	Usable bool
}

// tokenClientQuery reads an integration by its client id.
const tokenClientQuery = `
	SELECT i.id, i.organization_id, i.secret_hash, i.previous_secret_hash, i.previous_secret_until, i.scopes, i.token_epoch, i.deleted_at IS NOT NULL AS deleted,
		` + UsableIntegration + ` AS usable
	FROM (SELECT id FROM integrations WHERE client_id = $1 LIMIT 1) c
	JOIN integrations i ON i.id = c.id
	JOIN organizations o ON o.id = i.organization_id
	JOIN plans p ON p.organization_id = i.organization_id`

// authenticate returns the client with the id and secret. An unknown client takes as
// long as a wrong secret. Errors: invalid_client, unavailable.
func (s *Access) authenticate(ctx context.Context, clientID, secret string) (tokenClient, error) {
	if !models.IsText(clientID) {
		clientID = "" // no client has an empty id
	}
	client, err := store.LookUp[tokenClient](ctx, s.Store, clientID, pgx.ErrNoRows, tokenClientQuery, clientID)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return client, err
	}
	known, previous := make([]byte, sha256.Size), make([]byte, sha256.Size)
	copy(known, client.SecretHash)
	if until := client.PreviousSecretUntil; until != nil && s.CurrentTime().Before(until.Time) {
		copy(previous, client.PreviousSecretHash)
	}
	hash := HashSecret(secret)
	matches := subtle.ConstantTimeCompare(hash, known)|subtle.ConstantTimeCompare(hash, previous) == 1
	if err != nil || !matches || client.Deleted {
		return client, models.Errorf(models.CodeInvalidClient, "The client id or the client secret is wrong.")
	}
	return client, nil
}

// IssueToken returns a new token (api.md 5.1). scope is the
// requested scope, nil if the request had none. Errors: invalid_client,
// unauthorized_client, invalid_scope, unavailable.
func (s *Access) IssueToken(ctx context.Context, clientID, secret string, scope *string) (Token, error) {
	client, err := s.authenticate(ctx, clientID, secret)
	if err != nil {
		return Token{}, err
	}
	if !client.Usable {
		return Token{}, models.Errorf(models.CodeUnauthorizedClient,
			"The integration is turned off, or its organization or plan does not allow the API.")
	}
	granted, unknown := models.ScopesOf(client.Scopes)
	if unknown != "" {
		return Token{}, fmt.Errorf("integration %s has an unknown scope", client.ID)
	}
	if scope != nil {
		wanted, unknown := models.ParseScopes(*scope)
		if unknown != "" || len(wanted) == 0 || !granted.HasAll(wanted) {
			return Token{}, models.Errorf(models.CodeInvalidScope, "The integration does not have the requested scope.")
		}
		granted = wanted
	}
	id, err := s.NewID(models.PrefixToken)
	if err != nil {
		return Token{}, err
	}
	now := s.Now()
	signed, err := s.Tokens.Sign(store.Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			ID:        id,
			Issuer:    s.Issuer,
			Audience:  jwt.ClaimStrings{s.Issuer},
			Subject:   client.ID,
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(models.TokenLifetime)),
		},
		ClientID:       clientID,
		OrganizationID: client.OrganizationID,
		Scope:          granted.String(),
		Epoch:          client.TokenEpoch,
	})
	if err != nil {
		return Token{}, fmt.Errorf("sign a token: %w", err)
	}
	return Token{AccessToken: signed, ExpiresIn: models.TokenLifetime, Scopes: granted}, nil
}
