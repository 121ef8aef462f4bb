package service

import (
	"context"
	"fmt"
	"strings"

	"millwright/models"
	"millwright/service/batch"
)

// resealBatch bounds the addresses that one transaction holds.
const resealBatch = 100

// Reseal seals every signing secret that is sealed with another key than the
// first of the vault anew with that, so that the other keys may be dropped. It
// returns how many addresses it changed. The error names the addresses whose
// secret does not open; the others are changed. Errors: unavailable.
func (s *Service) Reseal(ctx context.Context) (addresses int, err error) {
	var after string
	var closed []string
	for {
		var result resealed
		err := s.write(ctx, func(ctx context.Context, t *tx) (err error) {
			result, err = t.reseal(ctx, after)
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
		closed = append(closed, result.closed...)
	}
	if len(closed) > 0 {
		return addresses, fmt.Errorf("secrets do not open with any key of SECRET_SEALING_KEYS: add the key, or renew the secrets of %s", strings.Join(closed, ", "))
	}
	return addresses, nil
}

// resealed is what became of a batch.
type resealed struct {
	last    string
	changed int
	closed  []string
}

// reseal does it for the next addresses after the id.
func (t *tx) reseal(ctx context.Context, after string) (result resealed, err error) {
	var rows []struct {
		ID                  string
		SecretSealed        []byte
		PreviousSecret      []byte
		PreviousSecretUntil *models.Time
	}
	batch.QueueAll(t.Tx, &rows, `
		SELECT id, secret_sealed, previous_secret, previous_secret_until FROM webhooks
		WHERE id > $1 AND (substring(secret_sealed FOR length($2::bytea)) <> $2::bytea
			OR substring(previous_secret FOR length($2::bytea)) <> $2::bytea)
		ORDER BY id LIMIT $3 FOR UPDATE`, after, append([]byte(t.Vault.current), 0), resealBatch)
	if err := t.Flush(ctx); err != nil {
		return result, err
	}
	for _, row := range rows {
		result.last = row.ID
		secret, err := t.resealOne(row.SecretSealed, row.ID)
		if err != nil {
			result.closed = append(result.closed, row.ID)
			continue
		}
		// One that signs nothing any more goes.
		var previous []byte
		if row.PreviousSecretUntil != nil && row.PreviousSecretUntil.Time.After(t.at.Time) {
			if previous, err = t.resealOne(row.PreviousSecret, row.ID); err != nil {
				result.closed = append(result.closed, row.ID)
				continue
			}
		}
		t.Queue(`
			UPDATE webhooks SET secret_sealed = $2, previous_secret = $3,
				previous_secret_until = CASE WHEN $3::bytea IS NOT NULL THEN previous_secret_until END
			WHERE id = $1`, row.ID, secret, previous)
		result.changed++
	}
	return result, nil
}

func (t *tx) resealOne(sealed []byte, owner string) ([]byte, error) {
	secret, err := t.Vault.Open(sealed, owner)
	if err != nil {
		return nil, err
	}
	return t.Vault.Seal(secret, owner, t.Random)
}
