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
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

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
var hashesAtOnce = max(1, runtime.GOMAXPROCS(0)/2)

// Bounds of who waits for a password's hash in one process, in all and from one client network.
const (
	hashesWaiting    = 64
	hashesPerNetwork = 8
)

// passwordHashing bounds the memory and CPUs that hashing passwords takes. The zero
// value is ready to use.
type passwordHashing struct {
	once    sync.Once
	running chan struct{}
	mu      sync.Mutex
	waiting map[string]int
	total   int
	// computed counts the hashes, for tests.
	computed int
}

// run computes one hash for a client of the network. Errors: unavailable if too many wait.
func (h *passwordHashing) run(ctx context.Context, network string, compute func()) error {
	h.once.Do(func() { h.running, h.waiting = make(chan struct{}, hashesAtOnce), map[string]int{} })
	h.mu.Lock()
	if h.total >= hashesWaiting || h.waiting[network] >= hashesPerNetwork {
		h.mu.Unlock()
		return models.Errorf(models.CodeUnavailable, "Too many people are signing in. Try again in a few seconds.")
	}
	h.total++
	h.waiting[network]++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.total--
		if h.waiting[network]--; h.waiting[network] == 0 {
			delete(h.waiting, network)
		}
	}()
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
		h.mu.Lock()
		h.computed++
		h.mu.Unlock()
		compute()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HashPassword returns the argon2id hash of a password that is to be stored. Errors: unavailable.
func HashPassword(ctx context.Context, s *People, network, password string) (hash string, err error) {
	salt := make([]byte, argonSalt)
	if _, err := io.ReadFull(s.Random, salt); err != nil {
		return "", fmt.Errorf("read random bytes for a salt: %w", err)
	}
	err = s.passwords.run(ctx, network, func() {
		hash = formatArgon(salt, argon2.IDKey([]byte(password), salt, argonTime, s.passwordMemory(), argonThreads, argonKey), s.passwordMemory())
	})
	return hash, err
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

// checkPassword reports whether the password has the hash, and whether the hash is to be
// replaced because it was made with other parameters. Errors: unavailable, internal if the hash
// is malformed.
func (s *People) checkPassword(ctx context.Context, network, password, hash string) (ok, outdated bool, err error) {
	var malformed error
	err = s.passwords.run(ctx, network, func() { ok, outdated, malformed = s.comparePassword(password, hash) })
	return ok, outdated, errors.Join(err, malformed)
}

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
	given := argon2.IDKey([]byte(password), salt, time, memory, threads, uint32(len(key))) //nolint:gosec // a few bytes
	outdated = memory != s.passwordMemory() || time != argonTime || threads != argonThreads
	return subtle.ConstantTimeCompare(given, key) == 1, outdated, nil
}

// IsPasswordTooLong reports whether a password has too many characters. Imports obey it too.
func IsPasswordTooLong(password string) bool {
	return utf8.RuneCountInString(password) > models.MaxPassword
}

// checkNewPassword returns what is wrong with a password that a person chose. email and
// name are the person's.
func checkNewPassword(password, email, name string) []models.FieldError {
	field := models.FieldError{Pointer: "/password"}
	lower := strings.ToLower(password)
	switch {
	case password == "":
		field.Code, field.Detail = "required", "Enter a password."
	case utf8.RuneCountInString(password) < models.MinPassword:
		field.Code, field.Detail = "too_short", fmt.Sprintf("A password has at least %d characters.", models.MinPassword)
	case IsPasswordTooLong(password):
		field.Code, field.Detail = "too_long", fmt.Sprintf("A password has at most %d characters.", models.MaxPassword)
	case !utf8.ValidString(password):
		field.Code, field.Detail = "value", "The password is not text."
	case strings.TrimLeft(lower, string([]rune(lower)[0])) == "" || strings.EqualFold(password, email) || strings.EqualFold(password, name):
		field.Code, field.Detail = "value", "Choose a password that is not your name, your e-mail address or one repeated character."
	default:
		return nil
	}
	return []models.FieldError{field}
}
