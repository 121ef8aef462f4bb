package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// resealBatchSize is the number of addresses that one transaction locks.
const resealBatchSize = 100

// Reseal seals every signing secret with the vault's first key, so that the other
// keys can be removed. It returns how many addresses it changed. The error names the
// addresses whose secret cannot be opened; the others are changed. Errors: unavailable.
func (s *Upkeep) Reseal(ctx context.Context) (addresses int, err error) {
	var after string
	var unopened []string
	for {
		var result resealResult
		var rows []sealedSecrets
		err := s.Run(ctx, "", store.Lock{}, func(reading *pgx.Batch) {
			store.QueueAll(reading, &rows, sealedQuery, after, append([]byte(s.Vault.Current), 0), resealBatchSize)
		}, func(t *store.Tx) error {
			result = reseal(t, rows)
			return nil
		})
		if err != nil {
			return addresses, err
		}
		if result.last == "" {
			break
		}
		after = result.last
		addresses += result.changed
		unopened = append(unopened, result.unopened...)
	}
	if len(unopened) > 0 {
		return addresses, fmt.Errorf("no key of SECRET_SEALING_KEYS opens some secrets: add the key, or renew the secrets of %s", strings.Join(unopened, ", "))
	}
	return addresses, nil
}

// resealResult is the result for one batch of addresses.
type resealResult struct {
	// last is the id of the last address, "" if there was none.
	last    string
	changed int
	// unopened are the addresses whose secret cannot be opened.
	unopened []string
}

// sealedSecrets are the secrets of an address.
type sealedSecrets struct {
	ID                                    string
	SecretSealed                          []byte
	PreviousSecret, OlderSecret           []byte
	PreviousSecretUntil, OlderSecretUntil *models.Time
}

// sealedQuery selects and locks the next addresses after $1 with a secret that another key than $2 sealed.
const sealedQuery = `
	SELECT id, secret_sealed, previous_secret, previous_secret_until, older_secret, older_secret_until FROM webhooks
	WHERE id > $1 AND (substring(secret_sealed FOR length($2::bytea)) <> $2::bytea
		OR substring(previous_secret FOR length($2::bytea)) <> $2::bytea
		OR substring(older_secret FOR length($2::bytea)) <> $2::bytea)
	ORDER BY id LIMIT $3 FOR UPDATE`

// reseal seals the secrets of the addresses.
func reseal(t *store.Tx, rows []sealedSecrets) (result resealResult) {
	for _, row := range rows {
		result.last = row.ID
		secret, err := resealOne(t, row.SecretSealed, row.ID)
		previous, previousErr := resealUntil(t, row.PreviousSecretUntil, row.PreviousSecret, row.ID)
		older, olderErr := resealUntil(t, row.OlderSecretUntil, row.OlderSecret, row.ID)
		if errors.Join(err, previousErr, olderErr) != nil {
			result.unopened = append(result.unopened, row.ID)
			continue
		}
		t.Queue(`
			UPDATE webhooks SET secret_sealed = $2,
				previous_secret = $3, previous_secret_until = CASE WHEN $3::bytea IS NOT NULL THEN previous_secret_until END,
				older_secret = $4, older_secret_until = CASE WHEN $4::bytea IS NOT NULL THEN older_secret_until END
			WHERE id = $1`, row.ID, secret, previous, older)
		result.changed++
	}
	return result
}

// resealUntil seals a secret that signs until then, and removes one that no longer does.
func resealUntil(t *store.Tx, until *models.Time, sealed []byte, owner string) ([]byte, error) {
	if until == nil || !until.Time.After(t.At.Time) {
		return nil, nil
	}
	return resealOne(t, sealed, owner)
}

func resealOne(t *store.Tx, sealed []byte, owner string) ([]byte, error) {
	secret, err := t.Vault.Open(sealed, owner)
	if err != nil {
		return nil, err
	}
	return t.Vault.Seal(secret, owner, t.Random)
}
