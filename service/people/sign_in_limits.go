package people

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// Failed sign-ins that are allowed in a window. Beyond them an attempt is rejected before
// its password is checked. A browser in which the person has signed in before is subject to
// the limits of known browsers too, so guessing elsewhere locks no one out of it; in a new
// browser the link of "forgotten password" signs in whatever the limits say. An account thus
// takes failuresPerAccount and failuresOfKnown guesses in an hour at most, 100 in all.
const (
	// failuresPerBrowser are of one known browser, for one person.
	failuresPerBrowser = 10
	// failuresOfKnown are of all known browsers, for one person.
	failuresOfKnown = 30
	// failuresPerNetwork are of one client network, for one account.
	failuresPerNetwork = 10
	// failuresPerAccount are of all unknown browsers, for one account.
	failuresPerAccount = 70
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

// admission is which passwords an attempt may check, and what it was counted for.
type admission struct {
	// everyone is whether the limits of unknown browsers allow the attempt.
	everyone bool
	// people are those who know the browser, if the limits of known browsers allow the attempt.
	people []string
	// unknown and known are the counts of the limits of unknown and of known browsers.
	unknown, known []attemptCount
	// limited is why the other passwords are not checked, nil if all are.
	limited error
}

// allows reports whether the person's password may be checked.
func (a admission) allows(personID string) bool {
	return a.everyone || slices.Contains(a.people, personID)
}

// countAttempt counts an attempt before its password is checked, so that concurrent ones
// cannot exceed a limit. Errors: *TooManyAttemptsError, unavailable.
func (s *People) countAttempt(ctx context.Context, attempt SignInAttempt) (admission, error) {
	email, network := normalEmail(attempt.Email), attempt.Client.Network
	unknown, limited := s.countAgainst(ctx, []attemptCount{
		newAttemptCount(s.Store, failuresPerNetwork, shortWindow, "network and account", network, email),
		newAttemptCount(s.Store, failuresPerAccount, longWindow, "account", email),
		newAttemptCount(s.Store, failuresOfNetwork, shortWindow, "network", network),
	})
	if _, ok := errors.AsType[*TooManyAttemptsError](limited); limited != nil && !ok {
		return admission{}, limited
	}
	result := admission{everyone: limited == nil, unknown: unknown, limited: limited}
	var mark browserMark
	if !s.openText(attempt.Client.Known, markUse, &mark) { // no one has signed in here
		return result, limited
	}
	counts := []attemptCount{newAttemptCount(s.Store, failuresPerBrowser, shortWindow, "browser", mark.ID, email)}
	for _, id := range mark.People {
		counts = append(counts, newAttemptCount(s.Store, failuresOfKnown, longWindow, "known browsers", id, email))
	}
	counts, err := s.countAgainst(ctx, counts)
	if _, ok := errors.AsType[*TooManyAttemptsError](err); ok {
		return result, limited
	}
	result.people, result.known = mark.People, counts
	return result, err
}

// countAgain adds to a counter, which begins again with each window.
const countAgain = `ON CONFLICT (subject) DO UPDATE SET window_start = excluded.window_start,
			calls = CASE WHEN rate_counters.window_start = excluded.window_start THEN rate_counters.calls + 1 ELSE 1 END`

// countAgainst counts an attempt. Errors: *TooManyAttemptsError, unavailable.
func (s *People) countAgainst(ctx context.Context, counts []attemptCount) ([]attemptCount, error) {
	subjects, windows := make([]string, len(counts)), make([]time.Time, len(counts))
	for i, c := range counts {
		subjects[i], windows[i] = c.subject, c.window
	}
	// In order of the subjects, so that two attempts cannot wait for each other.
	counters, err := store.LookUpAll[struct {
		Subject string
		Calls   int
	}](ctx, s.Store, counts[0].subject, `
		INSERT INTO rate_counters (subject, window_start, calls)
		SELECT u.subject, u.at, 1 FROM unnest($1::text[], $2::timestamptz[]) u (subject, at) ORDER BY u.subject
		`+countAgain+`
		RETURNING subject, calls`, subjects, windows)
	if err != nil {
		return nil, err
	}
	made := map[string]int{}
	for _, counter := range counters {
		made[counter.Subject] = counter.Calls
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
func (s *People) forgiveAttempt(ctx context.Context, counts []attemptCount) error {
	subjects := make([]string, len(counts))
	for i, c := range counts {
		subjects[i] = c.subject
	}
	_, err := s.Pool.Exec(ctx, `
		UPDATE rate_counters SET calls = calls - 1
		WHERE subject = ANY (ARRAY(SELECT subject FROM rate_counters WHERE subject = ANY ($1) ORDER BY subject FOR UPDATE)) AND calls > 0`, subjects)
	return s.Translate(err)
}

// newAttemptCount is a count of a subject, which the parts identify.
func newAttemptCount(s *store.Store, limit int, length time.Duration, parts ...string) attemptCount {
	return attemptCount{
		subject: "sign-in " + base64.RawURLEncoding.EncodeToString(digest(strings.Join(parts, "\x00"))),
		window:  s.Now().UTC().Truncate(length), length: length, limit: limit,
	}
}

func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// browserMark is sealed into a cookie of a browser in which people have signed in. It names
// them by their ids: someone else may invite their e-mail address to another organization.
type browserMark struct {
	ID     string   `json:"i"`
	People []string `json:"p"`
}

const markUse = "known browser"

// knownMark returns the mark of a browser in which the people have signed in.
func (s *People) knownMark(people ...string) (string, error) {
	id, err := s.NewID(models.PrefixSession)
	if err != nil {
		return "", err
	}
	return s.sealText(browserMark{id, people}, markUse)
}
