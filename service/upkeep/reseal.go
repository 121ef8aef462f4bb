package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"millwright/models"
	"millwright/service/batch"
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
		err := s.Write(ctx, func(ctx context.Context, t *store.Tx) (err error) {
			result, err = reseal(ctx, t, after)
			return err
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

// reseal seals the secrets of the next addresses after the id.
func reseal(ctx context.Context, t *store.Tx, after string) (result resealResult, err error) {
	var rows []struct {
		ID                                    string
		SecretSealed                          []byte
		PreviousSecret, OlderSecret           []byte
		PreviousSecretUntil, OlderSecretUntil *models.Time
	}
	batch.QueueAll(t.Tx, &rows, `
		SELECT id, secret_sealed, previous_secret, previous_secret_until, older_secret, older_secret_until FROM webhooks
		WHERE id > $1 AND (substring(secret_sealed FOR length($2::bytea)) <> $2::bytea
			OR substring(previous_secret FOR length($2::bytea)) <> $2::bytea
			OR substring(older_secret FOR length($2::bytea)) <> $2::bytea)
		ORDER BY id LIMIT $3 FOR UPDATE`, after, append([]byte(t.Vault.Current), 0), resealBatchSize)
	if err := t.Flush(ctx); err != nil {
		return result, err
	}
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
	return result, nil
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
