package people_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// guesses sends wrong passwords from a network to an account and returns how many were checked.
func guesses(t *testing.T, s *service.Service, network, email string, n int) (checked int) {
	t.Helper()
	for i := range n {
		_, err := s.People.SignIn(t.Context(), people.SignInAttempt{Email: email, Password: fmt.Sprint("wrong ", i), Client: people.Client{Network: network}})
		if errors.Is(err, people.ErrSignInFailed) {
			checked++
		} else if !isLimited(err) {
			t.Fatalf("a guess from %s: %v", network, err)
		}
	}
	return checked
}

func isLimited(err error) bool {
	_, limited := errors.AsType[*people.TooManyAttemptsError](err)
	return limited
}

func counters(f *servicetest.Fixture) int {
	return servicetest.Value[int](f, `SELECT count(*) FROM rate_counters WHERE subject LIKE 'sign-in %'`)
}

// The right password from a network without failures signs in, whatever others did. What each
// attack may check is bounded by the networks that it has.
func TestGuessesLockNoOneOutElsewhere(t *testing.T) {
	t.Parallel()
	const ann, fresh = "ann@acme.example.com", "203.0.113.1"
	accounts := []string{ann, "bob@acme.example.com", "cat@acme.example.com", "dan@acme.example.com", "eve@acme.example.com", "pia@polar.example.com"}
	for name, c := range map[string]struct {
		attack func(t *testing.T, f *servicetest.Fixture) (checked int)
		most   int // guesses that are checked
		// refused are networks from which the right password is not checked, admitted others from which it is.
		refused, admitted []string
	}{
		"one network guesses one account, far over its limit": {
			attack: func(t *testing.T, f *servicetest.Fixture) int { return guesses(t, f.Service, "192.0.2.1", ann, 300) },
			most:   10, refused: []string{"192.0.2.1"}, admitted: []string{"192.0.2.2"},
		},
		"one network guesses many accounts": {
			attack: func(t *testing.T, f *servicetest.Fixture) (checked int) {
				for i := range 60 {
					checked += guesses(t, f.Service, "192.0.2.1", fmt.Sprintf("person%d@acme.example.com", i), 5)
				}
				return checked
			},
			most: 200, refused: []string{"192.0.2.1"}, admitted: []string{"192.0.2.2"},
		},
		"many networks guess one account": {
			attack: func(t *testing.T, f *servicetest.Fixture) (checked int) {
				for i := range 40 {
					checked += guesses(t, f.Service, fmt.Sprintf("198.51.100.%d", i), ann, 15)
				}
				return checked
			},
			most: 70 + 33*2, refused: []string{"198.51.100.0", "198.51.100.39"}, admitted: []string{"192.0.2.2"},
		},
		"one IPv6 site guesses from many of its networks": {
			attack: func(t *testing.T, f *servicetest.Fixture) (checked int) {
				for i := range 40 {
					checked += guesses(t, f.Service, fmt.Sprintf("2001:db8:1:%x::/64", i), ann, 2)
				}
				return checked
			},
			most: 10, refused: []string{"2001:db8:1:ffff::/64"}, admitted: []string{"2001:db8:2::/64"},
		},
		"six accounts of two organizations at a time": {
			attack: func(t *testing.T, f *servicetest.Fixture) (checked int) {
				results := make(chan int, len(accounts))
				var group sync.WaitGroup
				for _, email := range accounts {
					group.Go(func() { results <- guesses(t, f.Service, "192.0.2.1", email, 100) })
				}
				group.Wait()
				close(results)
				for n := range results {
					checked += n
				}
				return checked
			},
			most: 60, refused: []string{"192.0.2.1"}, admitted: []string{"192.0.2.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			for _, key := range []string{"ann", "bob", "cat", "dan", "eve", "pia"} {
				setPassword(t, f, key)
			}
			if checked := c.attack(t, f); checked > c.most {
				t.Errorf("%d guesses were checked, want at most %d", checked, c.most)
			}
			rows := counters(f)
			for _, network := range c.refused {
				if _, err := signInFrom(t, f, network, ann); !isLimited(err) {
					t.Errorf("the right password from %s: %v", network, err)
				}
			}
			for _, email := range accounts {
				for _, network := range append(c.admitted, fresh) {
					if _, err := signInFrom(t, f, network, email); err != nil {
						t.Errorf("the right password of %s from %s: %v", email, network, err)
					}
				}
			}
			servicetest.Expect(t, "rows after attempts that failed no check", counters(f), rows)
		})
	}
}

func signInFrom(t *testing.T, f *servicetest.Fixture, network, email string) (people.SignedIn, error) {
	t.Helper()
	return f.People.SignIn(t.Context(), people.SignInAttempt{Email: email, Password: password, Client: people.Client{Network: network}})
}

// Who signs in again and again leaves no more sessions than the latest.
func TestSessionsOfAPersonHaveAMaximum(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	f.Exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent)
		SELECT sha256(n::text::bytea), 'ses_' || lpad(n::text, 26, '0'), $1, 'password', $2::timestamptz - n * interval '1 minute', $2, '192.0.2.1', '' FROM generate_series(1, 60) n`, f.ID("ann"), f.Clock.Now())
	f.Exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent)
		SELECT sha256('b'), 'ses_00000000000000000000000999', $1, 'password', $2::timestamptz - interval '1 day', $2, '192.0.2.1', ''`, f.ID("bob"), f.Clock.Now())
	servicetest.Must(t, servicetest.ErrorOf(signInFrom(t, f, "192.0.2.1", "ann@acme.example.com")))
	if got := servicetest.Value[string](f, `SELECT count(*) FILTER (WHERE person_id = $1) || ' ' || count(*) FILTER (WHERE person_id <> $1) || ' ' ||
		count(*) FILTER (WHERE id = 'ses_00000000000000000000000049') || ' ' || count(*) FILTER (WHERE id = 'ses_00000000000000000000000050') FROM sessions`, f.ID("ann")); got != "50 1 1 0" {
		t.Errorf("of her, of others, the last that stays, the first that ends: %s", got)
	}
}

// Made-up e-mail addresses leave as many rows as a network may fail, and none beyond.
func TestMadeUpAccountsLeaveFewRows(t *testing.T) {
	f := servicetest.New(t)
	for i := range 500 {
		guesses(t, f.Service, "192.0.2.1", fmt.Sprintf("no.one%d@example.com", i), 1)
	}
	if n := counters(f); n > 2*200+1 { // for account and network, for the account, and the network's
		t.Errorf("500 sign-ins of no one left %d rows", n)
	}
	mailing := f.NewInstance(servicetest.Mails)
	form := func(i int) error {
		return mailing.People.ForgotPassword(t.Context(), fmt.Sprint("form ", i), fmt.Sprintf("no.one%d@example.com", i), people.Client{Network: "192.0.2.1"})
	}
	before := counters(f)
	for i := range 100 {
		servicetest.Must(t, form(i))
	}
	if n := counters(f) - before; n > 31 {
		t.Errorf("100 forgotten passwords left %d rows", n)
	}
}

// Guesses at a time learn no more than guesses one after the other, on several servers too: the
// right password is not told once the limit was used up while it was checked.
func TestGuessesAtATimeAreWithinTheLimit(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	servers := []*service.Service{f.Service, f.NewInstance(), f.NewInstance()}
	release := f.People.HoldHashes()
	right := make(chan error, 1)
	go func() {
		_, err := signInFrom(t, f, "192.0.2.1", "ann@acme.example.com")
		right <- err
	}()
	servicetest.Await(t, "the right password waits for its hash", func() bool { return f.People.HashesWaiting() == 1 })
	results := make(chan error, 3*14)
	var group sync.WaitGroup
	for _, s := range servers[1:] {
		for i := range 14 {
			group.Go(func() {
				_, err := s.People.SignIn(t.Context(), people.SignInAttempt{Email: "ann@acme.example.com", Password: fmt.Sprint("wrong ", i), Client: people.Client{Network: "192.0.2.1"}})
				results <- err
			})
		}
	}
	group.Wait()
	close(results)
	told := 0
	for err := range results {
		if errors.Is(err, people.ErrSignInFailed) {
			told++
		} else if !isLimited(err) {
			t.Errorf("a guess: %v", err)
		}
	}
	servicetest.Expect(t, "guesses at a time that were told that they are wrong", told, 10)
	release()
	if err := <-right; !isLimited(err) {
		t.Errorf("the right password, checked while ten others failed: %v", err)
	}
	// Elsewhere the account is as it was.
	_, err := signInFrom(t, f, "192.0.2.2", "ann@acme.example.com")
	servicetest.WantCode(t, "from another network", err, "")
}

// Behind one address with someone who guesses, people still sign in with their browsers, and go on
// in their sessions, which have their own limits.
func TestGuessesInTheSameNetworkLockNoOneOut(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	const ann, network = "ann@acme.example.com", "192.0.2.1"
	first, err := signInFrom(t, f, network, ann)
	servicetest.Must(t, err)
	viewer, err := f.People.Session(t.Context(), first.Token)
	servicetest.Must(t, err)
	guesses(t, f.Service, network, ann, 100)
	for i := range 50 {
		guesses(t, f.Service, network, fmt.Sprintf("person%d@acme.example.com", i), 10)
	}
	known := func(password string) error {
		_, err := f.People.SignIn(t.Context(), people.SignInAttempt{Email: ann, Password: password, Client: people.Client{Network: network, Known: first.Known}})
		return err
	}
	if _, err := signInFrom(t, f, network, ann); !isLimited(err) {
		t.Errorf("a new browser in the network: %v", err)
	}
	servicetest.WantCode(t, "her browser", known(password), "")
	servicetest.WantCode(t, "her session", f.People.SignInAgain(t.Context(), viewer, password), "")
	// Both are limited as well.
	limits := map[string]struct {
		guess func() error
		most  int
		reset time.Duration
	}{
		"her browser": {func() error { return known("wrong password") }, 30, time.Hour},
		"her session": {func() error { return f.People.SignInAgain(t.Context(), viewer, "wrong password") }, 10, 5 * time.Minute},
	}
	for name, limit := range limits {
		before := f.People.HashesComputed()
		for range 40 {
			_ = limit.guess()
		}
		if hashes := f.People.HashesComputed() - before; hashes < limit.most || hashes > 2*limit.most {
			t.Errorf("%s: %d hashes for 40 guesses, want about two each of %d", name, hashes, limit.most)
		}
	}
	if err := known(password); !isLimited(err) {
		t.Errorf("her browser after 30 guesses in it: %v", err)
	}
	if err := f.People.SignInAgain(t.Context(), viewer, password); !isLimited(err) {
		t.Errorf("her session after ten guesses in it: %v", err)
	}
	f.Clock.Advance(time.Hour)
	servicetest.WantCode(t, "an hour later",
		errors.Join(known(password), f.People.SignInAgain(t.Context(), viewer, password)), "")
}

// When the queue of passwords is full, those who guess wait or are rejected, and not people in
// their browsers or networks without failures.
func TestAFullQueueRejectsThoseWhoGuess(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	const ann = "ann@acme.example.com"
	first, err := signInFrom(t, f, "192.0.2.1", ann)
	servicetest.Must(t, err)
	var guessing []string
	for i := range 20 {
		guessing = append(guessing, fmt.Sprintf("198.51.100.%d", i))
		guesses(t, f.Service, guessing[i], "no.one@example.com", 1)
	}
	release := f.People.HoldHashes()
	defer release()
	rejected := make(chan error, 320)
	var group sync.WaitGroup
	for _, network := range guessing {
		for range 16 {
			group.Go(func() {
				_, err := signInFrom(t, f, network, "no.one@example.com")
				rejected <- err
			})
		}
	}
	servicetest.Await(t, "the queue is full", func() bool { return f.People.HashesWaiting() == 256 && len(rejected) == 64 })
	for range len(rejected) {
		servicetest.WantCode(t, "one too many", <-rejected, models.CodeUnavailable)
	}
	clients := map[string]people.Client{
		"a network without failures":        {Network: "192.0.2.2"},
		"a browser behind one that guesses": {Network: guessing[0], Known: first.Known},
	}
	signedIn := make(chan error, len(clients))
	for name, client := range clients {
		go func() {
			_, err := f.People.SignIn(t.Context(), people.SignInAttempt{Email: ann, Password: password, Client: client})
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			signedIn <- err
		}()
	}
	servicetest.Await(t, "guesses made room", func() bool { return len(rejected) == len(clients) })
	release()
	for range clients {
		if err := <-signedIn; err != nil {
			t.Error(err)
		}
	}
	group.Wait()
}

// An account that is guessed is reported once an hour, by the ids of its people.
func TestAGuessedAccountIsLogged(t *testing.T) {
	var log bytes.Buffer
	f := servicetest.New(t, func(o *store.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	setPassword(t, f, "ann")
	for i := range 20 {
		guesses(t, f.Service, fmt.Sprintf("198.51.100.%d", i), "ann@acme.example.com", 10)
		guesses(t, f.Service, fmt.Sprintf("198.51.101.%d", i), "no.one@acme.example.com", 10)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], "many sign-ins to an account have failed") || !strings.Contains(lines[0], f.ID("ann")) || strings.Contains(lines[0], "example.com") {
		t.Errorf("the log has %q, want one line about %s", lines, f.ID("ann"))
	}
}
