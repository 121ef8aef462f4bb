package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is the maximum distance of a signature's time from the receiver's clock (api.md
// 6.6). It limits the future too, because a delivery signed far ahead could be
// replayed until then.
const Tolerance = 300 * time.Second

// The errors of Verify and VerifyRequest, which are wrapped with details.
var (
	// ErrMissing: the request has no Service-Signature.
	ErrMissing = errors.New("webhook: signature missing")
	// ErrMalformed: the signature header, or an authentic body, does not have the
	// documented form.
	ErrMalformed = errors.New("webhook: malformed")
	// ErrMismatch: no signature was made with this secret over this body.
	ErrMismatch = errors.New("webhook: signature does not match")
	// ErrStale: the signature is authentic, but its time is more than Tolerance before or
	// after now.
	ErrStale = errors.New("webhook: signature too old or too far ahead")
)

const (
	// The service sends at most three signatures; 1 KiB holds a dozen.
	maxSignatureHeader = 1024
	// Enough digits for any four-digit year, and few enough that package time cannot
	// overflow.
	maxTimeDigits = 12
)

// Verify checks that a delivery was signed with secret, the text displayed when the
// address was created. header is the request's, body its raw bytes before any parsing,
// now the receiver's clock. One matching v1 value is enough, so a receiver can replace
// its secret at any time during a rotation. Unknown schemes are ignored.
//
// It returns ErrMissing, ErrMalformed, ErrMismatch or ErrStale, or ErrSecret for an
// empty secret, which anyone could sign with.
func Verify(header http.Header, body []byte, secret string, now time.Time) error {
	if secret == "" {
		return fmt.Errorf("%w: it is empty", ErrSecret)
	}
	sig, err := parseSignature(header)
	if err != nil {
		return err
	}
	if !sig.matches(body, secret) {
		return ErrMismatch
	}
	// Checked last, so that ErrStale means an old delivery or a wrong clock, not a forgery.
	if age := now.Sub(sig.at); age > Tolerance || age < -Tolerance {
		return fmt.Errorf("%w: it was made at %s", ErrStale, sig.at.UTC().Format(time.RFC3339))
	}
	return nil
}

// signature is a parsed Service-Signature header.
type signature struct {
	unix string // as in the header, since this text was signed
	at   time.Time
	v1   []string
}

func parseSignature(header http.Header) (signature, error) {
	values := header.Values(HeaderSignature)
	if len(values) == 0 || values[0] == "" {
		return signature{}, ErrMissing
	}
	if len(values) > 1 {
		return signature{}, fmt.Errorf("%w: more than one %s header", ErrMalformed, HeaderSignature)
	}
	if len(values[0]) > maxSignatureHeader {
		return signature{}, fmt.Errorf("%w: %s is longer than %d bytes", ErrMalformed, HeaderSignature, maxSignatureHeader)
	}

	var sig signature
	for part := range strings.SplitSeq(values[0], ",") {
		scheme, value, ok := strings.Cut(part, "=")
		switch {
		case !ok:
			return signature{}, fmt.Errorf("%w: a part of %s is not name=value", ErrMalformed, HeaderSignature)
		case scheme == "t" && sig.unix != "":
			return signature{}, fmt.Errorf("%w: %s has two times", ErrMalformed, HeaderSignature)
		case scheme == "t":
			at, err := parseUnix(value)
			if err != nil {
				return signature{}, err
			}
			sig.unix, sig.at = value, at
		case scheme == "v1":
			sig.v1 = append(sig.v1, value)
		}
	}
	if sig.unix == "" || len(sig.v1) == 0 {
		return signature{}, fmt.Errorf("%w: %s needs t and v1", ErrMalformed, HeaderSignature)
	}
	return sig, nil
}

func parseUnix(text string) (time.Time, error) {
	seconds, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > maxTimeDigits {
		return time.Time{}, fmt.Errorf("%w: the time in %s is not Unix seconds", ErrMalformed, HeaderSignature)
	}
	return time.Unix(int64(seconds), 0), nil
}

// matches compares each v1 value in constant time.
func (sig signature) matches(body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(sig.unix + "."))
	mac.Write(body)
	want := hex.AppendEncode(nil, mac.Sum(nil))

	found := false
	for _, v1 := range sig.v1 {
		if hmac.Equal([]byte(v1), want) {
			found = true
		}
	}
	return found
}
