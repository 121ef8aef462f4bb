package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32

	// The bounds of Standard Webhooks.
	minSecretBytes = 24
	maxSecretBytes = 64
)

// ErrSecret is returned, wrapped, for an invalid signing secret. The error never
// contains the secret.
var ErrSecret = errors.New("webhook: unusable signing secret")

// GenerateSecret returns a new signing secret as displayed: "whsec_" and the base64 of 32
// bytes from rand, which is crypto/rand.Reader outside of tests. It fails only if rand does.
func GenerateSecret(rand io.Reader) (string, error) {
	var key [secretBytes]byte
	if _, err := io.ReadFull(rand, key[:]); err != nil {
		return "", fmt.Errorf("webhook: generate secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:]), nil
}

// ParseSecret returns the decoded bytes of a displayed secret, the key of the Standard
// Webhooks signature. It returns ErrSecret unless the text is "whsec_" and the padded
// base64 of 24 to 64 bytes.
func ParseSecret(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, fmt.Errorf("%w: it does not start with %s", ErrSecret, secretPrefix)
	}
	// The decoder skips line breaks, but Service-Signature's key is the text itself: one
	// key must not have two forms.
	if strings.ContainsAny(encoded, "\r\n") {
		return nil, fmt.Errorf("%w: it contains a line break", ErrSecret)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		// The decoder's error contains an offset into the secret.
		return nil, fmt.Errorf("%w: it is not base64", ErrSecret)
	}
	if len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, fmt.Errorf("%w: it holds %d bytes, not %d to %d", ErrSecret, len(key), minSecretBytes, maxSecretBytes)
	}
	return key, nil
}
