package service

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
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
	current string
	ciphers map[string]cipher.AEAD
	// cursorKeys are derived from the same keys and sign cursors and sync tokens:
	// the first signs, all are accepted.
	cursorKeys [][]byte
}

// NewVault returns a vault with the keys in text, written "name:base64 of 32 bytes"
// and separated by commas. The first key seals; all of them open.
func NewVault(text string) (*Vault, error) {
	keys, err := parseKeys(text)
	if err != nil {
		return nil, err
	}
	vault := &Vault{current: keys[0].name, ciphers: map[string]cipher.AEAD{}}
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
		vault.cursorKeys = append(vault.cursorKeys, derived)
	}
	return vault, nil
}

// Seal encrypts the secret for its owner, an id that Open needs too. The result is the
// key's name, a zero byte, the nonce and the ciphertext.
func (v *Vault) Seal(secret []byte, owner string, random io.Reader) ([]byte, error) {
	aead := v.ciphers[v.current]
	sealed := append([]byte(v.current), 0)
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
