package people

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"

	"millwright/models"
)

// The parameters of argon2id: the OWASP recommendation with the least memory. A hash
// names its parameters, so that they can change.
const (
	argonMemory  = 19 * 1024 // KiB, unless Options say otherwise
	argonTime    = 2
	argonThreads = 1
	argonSalt    = 16
	argonKey     = 32
)

// hashesAtOnce limits the passwords that a process hashes at once: half of the CPUs, so
// that the others serve people and programs.
var hashesAtOnce = min(2, max(1, runtime.GOMAXPROCS(0)/2))

// Bounds of who waits for a password's hash in one process, in all and of one caller. Those in all
// are done in about ten seconds.
const (
	hashesWaiting   = 256
	hashesPerCaller = 16
)

// hashTurn orders who waits for a hash.
type hashTurn int

const (
	// turnOfKnown is of people who are signed in, have a link, or use a browser in which they have
	// signed in before.
	turnOfKnown hashTurn = iota
	// turnOfOthers is of client networks without a failure in this window, turnOfFailing of others.
	turnOfOthers
	turnOfFailing
)

// hashCaller is who has a password hashed: a person or a client network.
type hashCaller struct {
	name string
	turn hashTurn
}

// passwordHashing bounds the memory and CPU time that hashing passwords takes. Callers take turns,
// and when too many wait, the one whose turn is last is rejected: not who comes last, so that those
// who guess keep out neither people at their browsers nor networks without failures. The zero
// value is ready to use.
type passwordHashing struct {
	mu      sync.Mutex
	running int
	waiting []*hashWait
	// served is the round of the last hash, nth the number of the last that waited, granted how many were
	// granted.
	served, nth, granted int
}

// hashWait is a wait for a hash. In each round, every caller has one.
type hashWait struct {
	hashCaller
	round, nth int
	// granted gets true when the hash may be computed, false if it is rejected.
	granted chan bool
}

// compareTurns orders waits by their turns.
func compareTurns(a, b *hashWait) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.round, b.round), cmp.Compare(a.nth, b.nth))
}

// run computes hashes once it is the caller's turn. Errors: unavailable if too many wait.
func (h *passwordHashing) run(ctx context.Context, by hashCaller, compute func()) error {
	wanted := h.enter(by)
	select {
	case granted := <-wanted.granted:
		if !granted {
			return errTooManySignIns()
		}
	case <-ctx.Done():
		if h.withdraw(wanted) {
			return errTooManySignIns()
		}
	}
	defer h.leave()
	if ctx.Err() != nil {
		return errTooManySignIns()
	}
	compute()
	return nil
}

func errTooManySignIns() error {
	return models.Errorf(models.CodeUnavailable, "Too many people are signing in. Try again in a few seconds.")
}

// enter begins the wait of a caller.
func (h *passwordHashing) enter(by hashCaller) *hashWait {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nth++
	wanted := &hashWait{by, h.served, h.nth, make(chan bool, 1)}
	own := 0
	for _, w := range h.waiting {
		if w.name == by.name {
			own++
			wanted.round = max(wanted.round, w.round)
		}
	}
	wanted.round++
	h.waiting = append(h.waiting, wanted)
	if own >= hashesPerCaller {
		h.reject(wanted)
	} else if len(h.waiting) > hashesWaiting {
		h.reject(slices.MaxFunc(h.waiting, compareTurns))
	}
	h.grant()
	return wanted
}

// reject ends a wait without a hash. The caller holds h.mu.
func (h *passwordHashing) reject(w *hashWait) {
	h.remove(w)
	w.granted <- false
}

// remove reports whether the wait had not ended. The caller holds h.mu.
func (h *passwordHashing) remove(w *hashWait) bool {
	at := slices.Index(h.waiting, w)
	if at >= 0 {
		h.waiting = slices.Delete(h.waiting, at, at+1)
	}
	return at >= 0
}

// withdraw ends the wait of a caller that is gone. It returns false if the wait had ended with a hash that
// the caller has to leave.
func (h *passwordHashing) withdraw(w *hashWait) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.remove(w) || !<-w.granted
}

// leave ends a hash.
func (h *passwordHashing) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	h.grant()
}

// sharedEvery is the share of the hashes that go to others than people whom the service knows: these may
// be few who sign in again and again.
const sharedEvery = 3

// grant lets those whose turn it is compute. The caller holds h.mu.
func (h *passwordHashing) grant() {
	for h.running < hashesAtOnce && len(h.waiting) > 0 {
		choice := h.waiting
		if h.granted++; h.granted%sharedEvery == 0 {
			others := slices.DeleteFunc(slices.Clone(h.waiting), func(w *hashWait) bool { return w.turn == turnOfKnown })
			if len(others) > 0 {
				choice = others
			}
		}
		next := slices.MinFunc(choice, compareTurns)
		h.remove(next)
		h.served = max(h.served, next.round)
		h.running++
		next.granted <- true
	}
}

// HashPassword returns the argon2id hash of a password that is to be stored, for a person or
// network that may store it. Errors: unavailable.
func HashPassword(ctx context.Context, s *People, by, password string) (hash string, err error) {
	salt := make([]byte, argonSalt)
	if _, err := io.ReadFull(s.Random, salt); err != nil {
		return "", fmt.Errorf("read random bytes for a salt: %w", err)
	}
	err = s.passwords.run(ctx, hashCaller{by, turnOfKnown}, func() {
		s.hashed.Add(1)
		hash = formatArgon(salt, argon2.IDKey([]byte(opaque(password)), salt, argonTime, s.passwordMemory(), argonThreads, argonKey), s.passwordMemory())
	})
	return hash, err
}

// opaque returns the password in the form in which devices' keyboards make no difference (RFC 8265, OpaqueString), as it is
// if it has characters that are not allowed there: no new password has.
func opaque(password string) string {
	prepared, err := precis.OpaqueString.String(password)
	if err != nil {
		return password
	}
	return prepared
}

// IsPasswordOfText reports whether all characters of a password are allowed. Imports obey it too.
func IsPasswordOfText(password string) bool {
	_, err := precis.OpaqueString.String(password)
	return err == nil
}

// formatArgon writes a hash in the form of the reference implementation.
func formatArgon(salt, key []byte, memory uint32) string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, argonTime, argonThreads, encode(salt), encode(key))
}

// passwordMemory is the memory of a hash in KiB.
func (s *People) passwordMemory() uint32 { return cmp.Or(s.PasswordMemory, argonMemory) }

// decoyHash takes as long to check as a password's and matches none.
func (s *People) decoyHash() string {
	return formatArgon(make([]byte, argonSalt), make([]byte, argonKey), s.passwordMemory())
}

// comparePassword reports whether the password has the hash, and whether the hash is to be
// replaced because it was made with other parameters. Errors: internal if the hash is malformed.
func (s *People) comparePassword(password, hash string) (ok, outdated bool, err error) {
	var version, memory, time uint32
	var threads uint8
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, false, errors.New("a password's hash is malformed")
	}
	_, failed := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &time, &threads)
	salt, failedSalt := base64.RawStdEncoding.DecodeString(parts[4])
	key, failedKey := base64.RawStdEncoding.DecodeString(parts[5])
	if errors.Join(failed, failedSalt, failedKey) != nil || version != argon2.Version || len(key) == 0 ||
		time == 0 || threads == 0 || memory > 1<<20 || time > 100 {
		return false, false, errors.New("a password's hash is malformed")
	}
	s.hashed.Add(1)
	given := argon2.IDKey([]byte(opaque(password)), salt, time, memory, threads, uint32(len(key))) //nolint:gosec // a few bytes
	outdated = memory != s.passwordMemory() || time != argonTime || threads != argonThreads
	return subtle.ConstantTimeCompare(given, key) == 1, outdated, nil
}

// IsPasswordTooLong reports whether a password has too many characters. Imports obey it too.
func IsPasswordTooLong(password string) bool {
	return utf8.RuneCountInString(password) > models.MaxPassword
}

func isOneCharacter(text string) bool {
	return text == "" || strings.TrimLeft(text, string([]rune(text)[0])) == ""
}

// checkNewPassword returns what is wrong with a password that a person chose. email and
// name are the person's.
func checkNewPassword(password, email, name string) []models.FieldError {
	field := models.FieldError{Pointer: "/password"}
	folded := models.Fold(password)
	switch {
	case password == "":
		field.Code, field.Detail = "required", "Enter a password."
	case utf8.RuneCountInString(password) < models.MinPassword:
		field.Code, field.Detail = "too_short", fmt.Sprintf("A password has at least %d characters.", models.MinPassword)
	case IsPasswordTooLong(password):
		field.Code, field.Detail = "too_long", fmt.Sprintf("A password has at most %d characters.", models.MaxPassword)
	case !utf8.ValidString(password) || !IsPasswordOfText(password):
		field.Code, field.Detail = "value", "The password has characters that cannot be entered everywhere, such as control characters."
	case isOneCharacter(folded) || folded == models.Fold(email) || folded == models.Fold(name):
		field.Code, field.Detail = "value", "Choose a password that is not your name, your e-mail address or one repeated character."
	default:
		return nil
	}
	return []models.FieldError{field}
}
