package people

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// Failed sign-ins that are allowed in a window. Only a password that was checked and is wrong
// counts, so what a limit rejects costs no account anything. A limit is for those who fail: a
// client network (guesserOf), or the browsers in which a person has signed in before, which may
// share a network with strangers. The failures of an account in all networks reject no one: its
// owner in a new network looks like a guesser there. They only lower the limit of each network.
// Someone with n networks checks n*failuresWhileGuessed passwords in a shortWindow, and at most
// what can be hashed (passwordHashing).
const (
	// failuresPerNetwork are of one client network, for one account.
	failuresPerNetwork = 10
	// failuresWhileGuessed takes its place while an account has had guessedAfter failures in a longWindow.
	failuresWhileGuessed = 2
	guessedAfter         = 70
	// failuresOfNetwork are of one client network, for all accounts.
	failuresOfNetwork = 200
	// failuresOfKnown are of all browsers in which a person has signed in before.
	failuresOfKnown = 30
	// failuresInSession are of all sessions of a person, who is asked for the password again.
	failuresInSession = 10

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

// attemptCount is a count of attempts in a window.
type attemptCount struct {
	subject string
	window  time.Time
	length  time.Duration
	limit   int
}

// newAttemptCount is a count of a subject, which the parts identify.
func newAttemptCount(s *store.Store, limit int, length time.Duration, parts ...string) attemptCount {
	return attemptCount{
		subject: "sign-in " + base64.RawURLEncoding.EncodeToString(digest(strings.Join(parts, "\x00"))),
		window:  s.Now().UTC().Truncate(length), length: length, limit: limit,
	}
}

// rejects returns the error of an attempt if the number counted before it reaches the limit.
func (c attemptCount) rejects(before int, now time.Time) error {
	if before < c.limit {
		return nil
	}
	return &TooManyAttemptsError{c.window.Add(c.length).Sub(now)}
}

// countAgain adds to a counter, which begins again with each window.
const countAgain = `ON CONFLICT (subject) DO UPDATE SET window_start = excluded.window_start,
			calls = CASE WHEN rate_counters.window_start = excluded.window_start THEN rate_counters.calls + 1 ELSE 1 END`

// count adds an attempt to some of the counts, of which the last is of its client network or person,
// and returns by subject how many each had before. Errors: unavailable.
func (s *People) count(ctx context.Context, counts []attemptCount, added ...attemptCount) (before map[string]int, err error) {
	subjects, windows, adds := make([]string, len(counts)), make([]time.Time, len(counts)), make([]bool, len(counts))
	for i, c := range counts {
		subjects[i], windows[i] = c.subject, c.window
		adds[i] = slices.ContainsFunc(added, func(a attemptCount) bool { return a.subject == c.subject })
	}
	// In order of the subjects, so that two attempts cannot wait for each other.
	counters, err := store.LookUpAll[struct {
		Subject string
		Calls   int
	}](ctx, s.Store, counts[len(counts)-1].subject, `
		WITH u AS (
			SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::boolean[]) u (subject, at, adds)
		), counted AS (
			INSERT INTO rate_counters (subject, window_start, calls)
			SELECT u.subject, u.at, 1 FROM u WHERE u.adds ORDER BY u.subject
			`+countAgain+`
			RETURNING subject, calls - 1 AS calls
		)
		SELECT u.subject, coalesce(n.calls, c.calls, 0) AS calls
		FROM u LEFT JOIN counted n ON n.subject = u.subject
			LEFT JOIN LATERAL (SELECT calls FROM rate_counters WHERE subject = u.subject AND window_start = u.at LIMIT 1) c ON true`,
		subjects, windows, adds)
	if err != nil {
		return nil, err
	}
	before = map[string]int{}
	for _, counter := range counters {
		before[counter.Subject] = counter.Calls
	}
	return before, nil
}

// countRequest counts a request before its work, against one limit. Errors: *TooManyAttemptsError,
// unavailable.
func (s *People) countRequest(ctx context.Context, c attemptCount) error {
	before, err := s.count(ctx, []attemptCount{c}, c)
	if err != nil {
		return err
	}
	return c.rejects(before[c.subject], s.Now())
}

// forgive takes a request back that succeeded. Errors: unavailable.
func (s *People) forgive(ctx context.Context, c attemptCount) error {
	_, err := store.LookUpAll[struct{ Calls int }](ctx, s.Store, c.subject, `UPDATE rate_counters SET calls = calls - 1 WHERE subject = $1 AND calls > 0 RETURNING calls`, c.subject)
	return err
}

// admission is which passwords an attempt may check, as of the failures before it.
type admission struct {
	network, account, total attemptCount
	// browsers are the counts of those who know the browser, by their ids.
	browsers map[string]attemptCount

	// limited is why the client network may not check everyone's password, nil if it may.
	limited error
	// known are those who know the browser and are below their limit.
	known []string
	// failing is whether the network has failed in this window.
	failing bool
}

// allows reports whether the person's password may be checked.
func (a *admission) allows(personID string) bool {
	return a.limited == nil || slices.Contains(a.known, personID)
}

// admit returns which passwords the attempt may check. It writes nothing. Errors:
// *TooManyAttemptsError if it may check no password, unavailable.
func (s *People) admit(ctx context.Context, attempt SignInAttempt) (*admission, error) {
	email, network := models.Fold(attempt.Email), guesserOf(attempt.Client.Network)
	a := &admission{
		network:  newAttemptCount(s.Store, failuresPerNetwork, shortWindow, "network and account", network, email),
		account:  newAttemptCount(s.Store, guessedAfter, longWindow, "account", email),
		total:    newAttemptCount(s.Store, failuresOfNetwork, shortWindow, "network", network),
		browsers: map[string]attemptCount{},
	}
	for _, id := range s.knownPeople(attempt.Client) {
		a.browsers[id] = newAttemptCount(s.Store, failuresOfKnown, longWindow, "known browsers", id)
	}
	if _, err := s.judge(ctx, a); err != nil {
		return nil, err
	}
	if a.limited != nil && len(a.known) == 0 {
		return nil, a.limited
	}
	return a, nil
}

// judge counts a failure for some of the attempt's counts, sets what those before it leave of the
// admission, and returns how many failures the account had. Errors: unavailable.
func (s *People) judge(ctx context.Context, a *admission, failed ...attemptCount) (account int, err error) {
	counts := slices.Collect(maps.Values(a.browsers))
	before, err := s.count(ctx, append(counts, a.network, a.account, a.total), failed...)
	if err != nil {
		return 0, err
	}
	account, a.failing = before[a.account.subject], before[a.total.subject] > 0
	if account >= guessedAfter {
		a.network.limit = failuresWhileGuessed
	}
	if a.limited = a.network.rejects(before[a.network.subject], s.Now()); a.limited == nil {
		a.limited = a.total.rejects(before[a.total.subject], s.Now())
	}
	a.known = nil
	for id, c := range a.browsers {
		if before[c.subject] < c.limit {
			a.known = append(a.known, id)
		}
	}
	return account, nil
}

// settle counts the wrong passwords of an attempt, and sets what the limits leave of its
// admission: of attempts at a time only as many learn about their password as one after the other.
// Errors: unavailable.
func (s *People) settle(ctx context.Context, a *admission, checked []checkedPassword) error {
	var failed []attemptCount
	var people []string
	wrong, right := false, false
	for _, c := range checked {
		people = append(people, c.PersonID)
		right = right || c.ok && c.May
		wrong = wrong || !c.ok
		if browser, known := a.browsers[c.PersonID]; known && !c.ok {
			failed = append(failed, browser)
		}
	}
	// A password that is right for one and wrong for another with the same e-mail address is a guess:
	// someone may have invited the address, and set what she guesses as that person's password.
	if a.limited == nil && (wrong || !right) {
		failed = append(failed, a.network, a.account, a.total)
	}
	account, err := s.judge(ctx, a, failed...)
	if err == nil && a.limited == nil && account == guessedAfter-1 && len(failed) > 0 && len(people) > 0 {
		s.Log.WarnContext(ctx, "many sign-ins to an account have failed within an hour", "people", people)
	}
	return err
}

// guesserOf returns the network whose failures are counted together: of IPv6 a /48. Sites and
// tunnels get one, and would otherwise have 65,536 times the limit.
func guesserOf(network string) string {
	prefix, err := netip.ParsePrefix(network)
	if err != nil || prefix.Addr().Is4() || prefix.Bits() < guesserBits {
		return network
	}
	return netip.PrefixFrom(prefix.Addr(), guesserBits).Masked().String()
}

const guesserBits = 48

// knownUse is what the ids of people are sealed for, in the cookie of a browser in which they have
// signed in. It does not name their e-mail address: someone else may invite it to another
// organization.
const knownUse = "known browser"

// knownMark returns the mark of a browser in which the people have signed in.
func (s *People) knownMark(people ...string) (string, error) { return s.sealText(people, knownUse) }

// knownPeople returns who has used the browser to sign in, if its mark is genuine.
func (s *People) knownPeople(client Client) (people []string) {
	s.openText(client.Known, knownUse, &people)
	return people
}

// KnownBrowser returns the id of someone who has used the browser to sign in, "" if its mark is not
// genuine.
func (s *People) KnownBrowser(client Client) string {
	for _, id := range s.knownPeople(client) {
		return id
	}
	return ""
}
