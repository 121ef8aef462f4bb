package people

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// ErrSignInFailed is returned if no person has the e-mail address and the password, or if
// the person cannot sign in. Callers must not be able to tell which.
var ErrSignInFailed = errors.New("the e-mail address or the password is wrong")

// ErrSuspended is returned for a correct password of someone whose organization is suspended.
// Only who knows the password learns it.
var ErrSuspended = errors.New("the organization is suspended")

// SignInAttempt is what a person signs in with.
type SignInAttempt struct {
	Email, Password string
	Client          Client
}

// Client is the browser that signs in.
type Client struct {
	// Network is the client network, as the limits count it.
	Network   string
	UserAgent string
	// Known is the mark that an earlier sign-in left in the browser (SignedIn.Known), if any.
	Known string
	// TimeZone is what the device is set to, "" if it was not sent. A person without a time zone gets it.
	TimeZone string
}

// SignedIn is the result of an attempt with a correct password.
type SignedIn struct {
	// Token is the session's token, "" if there are Choices.
	Token string
	// Choices are the organizations of the e-mail address with this password, if there are
	// several. Choice is passed to ChooseOrganization.
	Choices []OrganizationChoice
	Choice  string
	// Known marks the browser as one in which the person has signed in.
	Known string
}

// OrganizationChoice is an organization that a person can sign in to.
type OrganizationChoice struct{ PersonID, Name string }

// candidate is a person with the e-mail address of an attempt.
type candidate struct {
	PersonID     string
	PasswordHash string
	Organization string
	// May is whether the person can sign in at all, Suspended whether only the suspension of
	// the organization forbids it.
	May, Suspended bool
}

// minHashes is the minimum of hashes that an attempt checks, so that people of one
// organization and addresses of no one take the same work.
const minHashes = 2

// maxCandidates bounds the organizations of one e-mail address that an attempt checks.
const maxCandidates = 20

// SignIn signs a person in with a password. A password that is hashed in
// another way than new ones is hashed again. Errors: ErrSignInFailed, ErrSuspended, *TooManyAttemptsError, unavailable.
func (s *People) SignIn(ctx context.Context, attempt SignInAttempt) (SignedIn, error) {
	admitted, err := s.admit(ctx, attempt)
	if err != nil {
		return SignedIn{}, err
	}
	checked, err := s.checkPasswords(ctx, attempt, admitted)
	if err == nil {
		err = s.settle(ctx, admitted, checked)
	}
	if err != nil {
		return SignedIn{}, err
	}
	var matching []checkedPassword
	suspended := false
	for _, c := range checked {
		if c.ok && admitted.allows(c.PersonID) {
			suspended = suspended || c.Suspended
			if c.May {
				matching = append(matching, c)
			}
		}
	}
	if len(matching) == 0 {
		if admitted.limited == nil && suspended {
			return SignedIn{}, ErrSuspended
		}
		return SignedIn{}, cmp.Or(admitted.limited, ErrSignInFailed)
	}
	return s.enter(ctx, attempt, matching)
}

// enter signs the person in, or offers the choice among several with the password. Errors:
// ErrSignInFailed if the password has changed, unavailable.
func (s *People) enter(ctx context.Context, attempt SignInAttempt, matching []checkedPassword) (result SignedIn, err error) {
	var ids []string
	for i, c := range matching {
		ids = append(ids, c.PersonID)
		if c.outdated {
			if matching[i].PasswordHash, err = s.replaceHash(ctx, c.candidate, attempt); err != nil {
				return SignedIn{}, err
			}
		}
	}
	if result.Known, err = s.knownMark(ids...); err != nil {
		return SignedIn{}, err
	}
	if len(matching) == 1 {
		result.Token, err = s.startSession(ctx, ids[0], byPassword(s.Store, matching[0].PasswordHash), attempt.Client)
		return result, err
	}
	choice := pendingChoice{Until: s.CurrentTime().Add(choiceLifetime).Unix(), People: map[string][]byte{}}
	for _, c := range matching {
		result.Choices = append(result.Choices, OrganizationChoice{c.PersonID, c.Organization})
		choice.People[c.PersonID] = digest(c.PasswordHash)
	}
	result.Choice, err = s.sealText(choice, choiceUse)
	return result, err
}

// checkedPassword is someone's password that was compared with the one of an attempt.
type checkedPassword struct {
	candidate
	ok bool
	// outdated is whether the password is to be hashed again.
	outdated bool
}

// checkPasswords compares the password with the hashes of the e-mail address's people whom the
// admission allows, at least minHashes. Errors: unavailable.
func (s *People) checkPasswords(ctx context.Context, attempt SignInAttempt, admitted *admission) ([]checkedPassword, error) {
	candidates, err := s.candidates(ctx, attempt)
	if err != nil {
		return nil, err
	}
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return !admitted.allows(c.PersonID) })
	hasher := hashCaller{guesserOf(attempt.Client.Network), turnOfOthers}
	if admitted.failing {
		hasher.turn = turnOfFailing
	}
	for _, c := range candidates {
		if slices.Contains(admitted.known, c.PersonID) {
			hasher = hashCaller{c.PersonID, turnOfKnown}
		}
	}
	checked := make([]checkedPassword, len(candidates))
	var malformed error
	err = s.passwords.run(ctx, hasher, func() {
		for i, c := range candidates {
			ok, outdated, err := s.comparePassword(attempt.Password, c.PasswordHash)
			checked[i], malformed = checkedPassword{c, ok, outdated}, errors.Join(malformed, err)
		}
		for range minHashes - len(candidates) {
			_, _, err := s.comparePassword(attempt.Password, s.decoyHash())
			malformed = errors.Join(malformed, err)
		}
	})
	return checked, errors.Join(err, malformed)
}

// candidates returns the people with the e-mail address who have a password.
func (s *People) candidates(ctx context.Context, attempt SignInAttempt) ([]candidate, error) {
	if !models.IsText(attempt.Email) {
		return nil, nil
	}
	return store.LookUpAll[candidate](ctx, s.Store, attempt.Client.Network, `
		SELECT p.id AS person_id, p.password_hash, i.name AS organization, p.deactivated_at IS NULL AND NOT o.suspended AND NOT o.openid_required AS may,
			p.deactivated_at IS NULL AND o.suspended AND NOT o.openid_required AS suspended
		FROM people p JOIN organizations o ON o.id = p.organization_id JOIN identities i ON i.id = o.id
		WHERE p.folded_email = $1 AND p.password_hash IS NOT NULL
		ORDER BY i.sort_key, p.id LIMIT $2`, models.Fold(attempt.Email), maxCandidates)
}

// replaceHash stores a hash made with the current parameters, unless the password has changed, and
// returns it. The person's sessions stay.
func (s *People) replaceHash(ctx context.Context, c candidate, attempt SignInAttempt) (string, error) {
	hash, err := HashPassword(ctx, s, c.PersonID, attempt.Password)
	if err != nil {
		return "", err
	}
	stored, err := store.LookUpAll[struct{ ID string }](ctx, s.Store, attempt.Client.Network,
		`UPDATE people SET password_hash = $3 WHERE id = $1 AND password_hash = $2 RETURNING id`, c.PersonID, c.PasswordHash, hash)
	if err == nil && len(stored) == 0 {
		return c.PasswordHash, nil // startSession sees that it has changed
	}
	return hash, err
}

const (
	// choiceLifetime limits the time in which a person chooses an organization.
	choiceLifetime = 5 * time.Minute
	// choiceUse is what a pendingChoice is sealed for.
	choiceUse = "sign-in choice"
)

// pendingChoice is a correct password, or a verified account of an OpenID provider, of
// people of several organizations. It is sealed into the form.
type pendingChoice struct {
	Until int64 `json:"u"`
	// People are digests of the password hashes that were correct, by person.
	People  map[string][]byte `json:"p"`
	Account *OpenIDAccount    `json:"a,omitempty"`
}

// ChooseOrganization finishes a sign-in with choices. Errors: ErrSignInFailed (also when the
// choice has expired or the password has changed since), unavailable.
func (s *People) ChooseOrganization(ctx context.Context, choice, personID string, client Client) (string, error) {
	var pending pendingChoice
	if !s.openText(choice, choiceUse, &pending) || s.CurrentTime().Unix() > pending.Until {
		return "", ErrSignInFailed
	}
	wanted, offered := pending.People[personID]
	if !offered {
		return "", ErrSignInFailed
	}
	if pending.Account != nil {
		return s.startSession(ctx, personID, s.byOpenID(*pending.Account), client)
	}
	person, err := store.LookUp[struct{ PasswordHash string }](ctx, s.Store, client.Network, ErrSignInFailed,
		`SELECT password_hash FROM people WHERE id = $1 AND password_hash IS NOT NULL`, personID)
	if err == nil && !hmac.Equal(digest(person.PasswordHash), wanted) {
		err = ErrSignInFailed
	}
	if err != nil {
		return "", err
	}
	return s.startSession(ctx, personID, byPassword(s.Store, person.PasswordHash), client)
}

// authentication is how a person showed who it is.
type authentication struct {
	method models.SignInMethod
	// at is when, the zero time if that is not known.
	at time.Time
	// hash is the password hash that was correct, "" if no password was used.
	hash string
	// account is the linked account that was used.
	account OpenIDAccount
}

func byPassword(s *store.Store, hash string) authentication {
	return authentication{method: models.SignedInByPassword, at: s.Now(), hash: hash}
}

// startSession creates a session of a person who can sign in and returns its token. The
// person is locked, so what ends the password or the account that was used either ends the
// session or prevents it. Errors: ErrSignInFailed, unavailable.
func (s *People) startSession(ctx context.Context, personID string, by authentication, client Client) (string, error) {
	var token string
	err := s.Transaction(ctx, "", store.NoKey, func(t *store.Tx) (err error) {
		token, err = insertSession(t, personID, by, client)
		return err
	})
	return token, err
}

// maxSessions limits the sessions of a person; the oldest end.
const maxSessions = 50

func insertSession(t *store.Tx, personID string, by authentication, client Client) (string, error) {
	_, err := store.ScanOne[string](t, ErrSignInFailed, `
		SELECT p.id FROM people p JOIN organizations o ON o.id = p.organization_id
		WHERE p.id = ? AND p.deactivated_at IS NULL AND NOT o.suspended AND (NOT o.openid_required OR ? = 'openid') AND (? = '' OR p.password_hash = ?)
		FOR SHARE`, personID, by.method, by.hash, by.hash)
	if err == nil && by.method == models.SignedInByOpenID {
		_, err = store.ScanOne[string](t, ErrSignInFailed, `SELECT person_id FROM openid_accounts WHERE person_id = ? AND issuer = ? AND subject = ?`,
			personID, by.account.Issuer, by.account.Subject)
	}
	if err != nil {
		return "", err
	}
	if client.TimeZone != "" && isTimeZone(client.TimeZone) {
		if err := t.Exec(`UPDATE people SET time_zone = ? WHERE id = ? AND time_zone IS NULL`, client.TimeZone, personID); err != nil {
			return "", err
		}
	}
	text, err := t.NewSecret()
	if err != nil {
		return "", err
	}
	// Who signs in again and again leaves no more than these.
	if err := t.Exec(`DELETE FROM sessions WHERE id = ANY (ARRAY(SELECT id FROM sessions WHERE person_id = ? ORDER BY created_at DESC, id DESC OFFSET ?))`,
		personID, maxSessions-1); err != nil {
		return "", err
	}
	token := t.Vault.SessionToken(text + sessionPerson + personID)
	id, err := t.NewID(models.PrefixSession)
	if err != nil {
		return "", err
	}
	session := models.Session{
		TokenHash: digest(token), ID: id, PersonID: personID, Method: by.method, CreatedAt: t.At, SeenAt: t.At,
		Network: client.Network, UserAgent: firstRunes(strings.Map(withoutControl, strings.ToValidUTF8(client.UserAgent, "")), maxUserAgent),
	}
	if !by.at.IsZero() {
		at, until := models.TimeOf(by.at), models.TimeOf(by.at.Add(models.RecentSignIn))
		session.AuthenticatedAt, session.RecentUntil = &at, &until
	}
	return token, t.DB.Create(&session).Error
}

const maxUserAgent = 200

// withoutControl removes control characters, which Postgres or a terminal would interpret.
func withoutControl(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

func firstRunes(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n])
	}
	return text
}

// digest is what is stored of a token: it has 256 random bits, so it needs no salt.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// sealText encrypts a value for one use, so that a browser can keep it.
func (s *People) sealText(value any, use string) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sealed, err := s.Vault.Seal(text, use, s.Random)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// openText decrypts what sealText returned for the same use, and reports whether it did.
func (s *People) openText(sealed, use string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return false
	}
	text, err := s.Vault.Open(raw, use)
	return err == nil && json.Unmarshal(text, into) == nil
}
