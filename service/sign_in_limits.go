package service

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"millwright/models"
)

// Failed sign-ins that are allowed in a window. Beyond them an attempt is rejected before
// its password is checked. A browser in which the person has signed in before is only
// subject to its own limit, so guessing elsewhere locks no one out of it; in a new browser
// the link of "forgotten password" signs in whatever the limits say.
const (
	// failuresPerBrowser are of one known browser, for one account.
	failuresPerBrowser = 10
	// failuresPerNetwork are of one client network, for one account.
	failuresPerNetwork = 10
	// failuresPerAccount are of all unknown browsers, for one account.
	failuresPerAccount = 100
	// failuresOfNetwork are of one client network, for all accounts.
	failuresOfNetwork = 200

	shortWindow = 5 * time.Minute
	longWindow  = time.Hour
)

// TooManyAttemptsError rejects an attempt to sign in that no password can turn into a
// success.
type TooManyAttemptsError struct{ RetryAfter time.Duration }

// Error returns the sentence for people.
func (e *TooManyAttemptsError) Error() string {
	return fmt.Sprintf("Too many attempts to sign in have failed. Try again in %d minutes.", wholeMinutes(e.RetryAfter))
}

// wholeMinutes rounds a time to wait up.
func wholeMinutes(wait time.Duration) int {
	return max(1, int((wait+time.Minute-1)/time.Minute))
}

// attemptCount is what an attempt was counted for.
type attemptCount struct {
	subject string
	window  time.Time
	length  time.Duration
	limit   int
}

// countAttempt counts an attempt before its password is checked, so that concurrent ones
// cannot exceed a limit. Errors: *TooManyAttemptsError, unavailable.
func (s *Service) countAttempt(ctx context.Context, attempt SignInAttempt) ([]attemptCount, error) {
	return s.countAgainst(ctx, s.attemptCounts(attempt))
}

// countAgain adds to a counter, which begins again with each window.
const countAgain = `ON CONFLICT (subject) DO UPDATE SET window_start = excluded.window_start,
			calls = CASE WHEN rate_counters.window_start = excluded.window_start THEN rate_counters.calls + 1 ELSE 1 END`

// countAgainst counts an attempt. Errors: *TooManyAttemptsError, unavailable.
func (s *Service) countAgainst(ctx context.Context, counts []attemptCount) ([]attemptCount, error) {
	subjects, windows := make([]string, len(counts)), make([]time.Time, len(counts))
	for i, c := range counts {
		subjects[i], windows[i] = c.subject, c.window
	}
	// In order of the subjects, so that two attempts cannot wait for each other.
	rows, err := s.pool.Query(ctx, `
		INSERT INTO rate_counters (subject, window_start, calls)
		SELECT u.subject, u.at, 1 FROM unnest($1::text[], $2::timestamptz[]) u (subject, at) ORDER BY u.subject
		`+countAgain+`
		RETURNING subject, calls`, subjects, windows)
	if err != nil {
		return nil, s.translate(err)
	}
	defer rows.Close()
	made := map[string]int{}
	for rows.Next() {
		var subject string
		var calls int
		if err := rows.Scan(&subject, &calls); err != nil {
			return nil, s.translate(err)
		}
		made[subject] = calls
	}
	if err := rows.Err(); err != nil {
		return nil, s.translate(err)
	}
	var wait time.Duration
	for _, c := range counts {
		if made[c.subject] > c.limit {
			wait = max(wait, c.window.Add(c.length).Sub(s.Now()))
		}
	}
	if wait > 0 {
		return nil, &TooManyAttemptsError{wait}
	}
	return counts, nil
}

// forgiveAttempt takes an attempt back that succeeded.
func (s *Service) forgiveAttempt(ctx context.Context, counts []attemptCount) error {
	subjects := make([]string, len(counts))
	for i, c := range counts {
		subjects[i] = c.subject
	}
	_, err := s.pool.Exec(ctx, `
		UPDATE rate_counters SET calls = calls - 1
		WHERE subject = ANY (ARRAY(SELECT subject FROM rate_counters WHERE subject = ANY ($1) ORDER BY subject FOR UPDATE)) AND calls > 0`, subjects)
	return s.translate(err)
}

// attemptCounts are the counts that an attempt belongs to. Accounts are counted by digests
// of e-mail addresses, whether they exist or not.
func (s *Service) attemptCounts(attempt SignInAttempt) []attemptCount {
	email, network := normalEmail(attempt.Email), attempt.Client.Network
	if mark, known := s.isKnown(attempt.Client.Known, attempt.Email); known {
		return []attemptCount{s.attemptCount(failuresPerBrowser, shortWindow, "browser", mark, email)}
	}
	return []attemptCount{
		s.attemptCount(failuresPerNetwork, shortWindow, "network and account", network, email),
		s.attemptCount(failuresPerAccount, longWindow, "account", email),
		s.attemptCount(failuresOfNetwork, shortWindow, "network", network),
	}
}

// attemptCount is a count of a subject, which the parts identify.
func (s *Service) attemptCount(limit int, length time.Duration, parts ...string) attemptCount {
	return attemptCount{
		subject: "sign-in " + base64.RawURLEncoding.EncodeToString(digest(strings.Join(parts, "\x00"))),
		window:  s.Now().UTC().Truncate(length), length: length, limit: limit,
	}
}

func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// browserMark is sealed into a cookie of a browser in which a person has signed in.
type browserMark struct {
	ID    string `json:"i"`
	Email []byte `json:"e"`
}

// knownMark returns the mark of a browser in which the person with the e-mail address has
// signed in.
func (s *Service) knownMark(email string) (string, error) {
	id, err := s.newID(models.PrefixSession)
	if err != nil {
		return "", err
	}
	return s.sealText(browserMark{id, digest(normalEmail(email))}, "known browser")
}

// isKnown returns the id of a mark and whether it is for the e-mail address.
func (s *Service) isKnown(mark, email string) (id string, known bool) {
	var m browserMark
	if mark == "" || !s.openText(mark, "known browser", &m) {
		return "", false
	}
	return m.ID, sameDigest(m.Email, digest(normalEmail(email)))
}

func sameDigest(a, b []byte) bool { return hmac.Equal(a, b) }
