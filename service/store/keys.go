package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"millwright/models"
)

// namedKey is a 32-byte key. Signatures and sealed secrets carry its name.
type namedKey struct {
	name string
	key  []byte
}

// parseKeys parses "name:base64,name:base64". The first key is in use, the others are
// still accepted. Errors never contain a key.
func parseKeys(text string) ([]namedKey, error) {
	var keys []namedKey
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, encoded, found := strings.Cut(strings.TrimSpace(part), ":")
		if !found || name == "" || len(name) > 64 {
			return nil, errors.New("keys are written name:base64, separated by commas")
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != 32 {
			return nil, fmt.Errorf("the key named %q is not the base64 of 32 bytes", name)
		}
		if seen[name] {
			return nil, fmt.Errorf("two keys are named %q", name)
		}
		seen[name] = true
		keys = append(keys, namedKey{name, key})
	}
	return keys, nil
}

// Vault encrypts ("seals") secrets that must be readable later, such as signing
// secrets, with AES-256-GCM. The ciphertext names its key, so keys can be rotated.
type Vault struct {
	Current string
	ciphers map[string]cipher.AEAD
	// CursorKeys are derived from the same keys and sign cursors and sync tokens:
	// the first signs, all are accepted.
	CursorKeys [][]byte
}

// NewVault returns a vault with the keys in text, written "name:base64 of 32 bytes"
// and separated by commas. The first key seals; all of them open.
func NewVault(text string) (*Vault, error) {
	keys, err := parseKeys(text)
	if err != nil {
		return nil, err
	}
	vault := &Vault{Current: keys[0].name, ciphers: map[string]cipher.AEAD{}}
	for _, k := range keys {
		block, err := aes.NewCipher(k.key)
		if err != nil {
			return nil, fmt.Errorf("create a cipher from the key named %q: %w", k.name, err)
		}
		if vault.ciphers[k.name], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("create a cipher from the key named %q: %w", k.name, err)
		}
		derived, err := hkdf.Key(sha256.New, k.key, nil, "millwright list marks", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("derive a key from the key named %q: %w", k.name, err)
		}
		vault.CursorKeys = append(vault.CursorKeys, derived)
	}
	return vault, nil
}

// Seal encrypts the secret for its owner, an id that Open needs too. The result is the
// key's name, a zero byte, the nonce and the ciphertext.
func (v *Vault) Seal(secret []byte, owner string, random io.Reader) ([]byte, error) {
	aead := v.ciphers[v.Current]
	sealed := append([]byte(v.Current), 0)
	nonce := make([]byte, aead.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("read random bytes for a nonce: %w", err)
	}
	sealed = append(sealed, nonce...)
	return aead.Seal(sealed, nonce, secret, []byte(owner)), nil
}

// Open decrypts what Seal returned for the same owner. It fails if the key is no
// longer known, the text was changed, or it was sealed for another owner.
func (v *Vault) Open(sealed []byte, owner string) ([]byte, error) {
	name, rest, found := strings.Cut(string(sealed), "\x00")
	aead := v.ciphers[name]
	if !found || aead == nil {
		return nil, errors.New("a secret is sealed with a key that SECRET_SEALING_KEYS does not name")
	}
	if len(rest) < aead.NonceSize() {
		return nil, errors.New("a sealed secret is cut short")
	}
	nonce, text := rest[:aead.NonceSize()], rest[aead.NonceSize():]
	secret, err := aead.Open(nil, []byte(nonce), []byte(text), []byte(owner))
	if err != nil {
		return nil, errors.New("a sealed secret cannot be opened: it was changed or sealed for another record")
	}
	return secret, nil
}

// TokenKeys signs access tokens with its first key and accepts tokens of all its keys.
type TokenKeys struct {
	keys []namedKey
	mu   sync.RWMutex // guards verified
	// verified caches the token claims whose signature was checked, by the hash of
	// the token. Expiry and revocation are still checked at every call.
	verified map[[sha256.Size]byte]Claims
}

// Sign returns the token with the claims, signed with the key in use.
func (k *TokenKeys) Sign(c Claims) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	token.Header["kid"] = k.keys[0].name
	token.Header["typ"] = "at+jwt"
	return token.SignedString(k.keys[0].key)
}

// Parse returns the claims of a token that this service signed and that has not
// expired. Errors: invalid_token.
func (k *TokenKeys) Parse(token, issuer string, now func() time.Time) (Claims, error) {
	hash := sha256.Sum256([]byte(token))
	k.mu.RLock()
	c, known := k.verified[hash]
	k.mu.RUnlock()
	if known && c.Issuer == issuer && now().Before(c.ExpiresAt.Time) {
		return c, nil
	}
	c = Claims{}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithIssuer(issuer), jwt.WithAudience(issuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(now),
		jwt.WithStrictDecoding()) // a signature has one spelling: its last bits are not ignored
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		for _, key := range k.keys {
			if t.Header["kid"] == key.name {
				return key.key, nil
			}
		}
		return nil, errors.New("unknown key")
	})
	if err != nil || !models.IsID(c.Subject, models.PrefixIdentity) || !models.IsID(c.ID, models.PrefixToken) || c.IssuedAt == nil {
		return c, InvalidToken()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.verified == nil || len(k.verified) >= maxVerified {
		k.verified = map[[sha256.Size]byte]Claims{}
	}
	k.verified[hash] = c
	return c, nil
}

// Claims are the token claims. Rights are not among them: they are read at every call.
type Claims struct {
	jwt.RegisteredClaims
	ClientID string `json:"client_id"`
	// OrganizationID is the integration's organization, which never changes.
	OrganizationID string `json:"organization_id"`
	Scope          string `json:"scope"`
	// Epoch is the integration's token_epoch when the token was issued. The triggers
	// integrations_epoch, plans_epoch and organizations_epoch raise that number, which
	// ends all its tokens (api.md 5.4).
	Epoch int `json:"epoch"`
}

// maxVerified bounds the cache of verified tokens to a few megabytes.
const maxVerified = 10_000

// InvalidToken is invalid_token.
func InvalidToken() *models.Error {
	return models.Errorf(models.CodeInvalidToken, "The access token is missing, expired or no longer valid.")
}

// SessionToken returns the token of a session of the random text, with a MAC: forged tokens
// are told without a look-up.
func (v *Vault) SessionToken(random string) string {
	return random + "." + base64.RawURLEncoding.EncodeToString(CursorMAC(v.CursorKeys[0], []byte(sessionPrefix+random)))
}

// IsSessionToken reports whether SessionToken made the token, with any of the keys.
func (v *Vault) IsSessionToken(token string) bool {
	random, sent, _ := strings.Cut(token, ".")
	mac, err := base64.RawURLEncoding.Strict().DecodeString(sent)
	return err == nil && slices.ContainsFunc(v.CursorKeys, func(key []byte) bool {
		return hmac.Equal(CursorMAC(key, []byte(sessionPrefix+random)), mac)
	})
}

// sessionPrefix keeps the MACs of sessions apart from the MACs of cursors, which begin with a brace.
const sessionPrefix = "session "

// CursorMAC returns the MAC of text under a cursor key.
func CursorMAC(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)[:CursorMACSize]
}

// CursorMACSize is the number of bytes of the HMAC-SHA256 that follow the JSON of a token.
const CursorMACSize = 16

// NewTokenKeys reads keys written "name:base64 of 32 bytes", separated by
// commas. To rotate, put the new key first and keep the old one for an hour.
func NewTokenKeys(text string) (*TokenKeys, error) {
	keys, err := parseKeys(text)
	if err != nil {
		return nil, err
	}
	return &TokenKeys{keys: keys}, nil
}
