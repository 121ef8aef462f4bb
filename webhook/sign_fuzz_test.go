package webhook

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// A signed delivery verifies with both header families, within the tolerance and with
// each secret of a rotation. With a changed body, id, time, signature or secret it does not.
func FuzzSign(f *testing.F) {
	f.Add("evt_01jd8q4v6cf5e8hbbfwj0zq3tk", []byte(pingBody), int64(1767323045), int64(0), 0)
	f.Add("evt.1", []byte("12.body"), int64(12), int64(300), 1)
	f.Add("", []byte{}, int64(1<<33), int64(-301), 63)
	f.Add("a.b,c=d", []byte("t=1,v1=00"), int64(0), int64(301), 5)
	generate := func(seed byte) string {
		secret, err := GenerateSecret(bytes.NewReader(bytes.Repeat([]byte{seed}, secretBytes)))
		if err != nil {
			f.Fatal(err)
		}
		return secret
	}
	secrets, unrelated := []string{newSecret, oldSecret, generate(8)}, generate(7)
	signer := mustSigner(f, secrets...)
	f.Fuzz(func(t *testing.T, id string, body []byte, unix, age int64, at int) {
		unix, age = min(max(unix, 0), 1<<35), min(max(age, -1000), 1000)
		signedAt := time.Unix(unix, 0)
		header := signer.Header(id, "ping", signedAt, body)
		now := signedAt.Add(time.Duration(age) * time.Second)
		for _, secret := range secrets {
			err := Verify(header, body, secret, now)
			if fresh := age >= -300 && age <= 300; fresh != (err == nil) || !fresh && !errors.Is(err, ErrStale) {
				t.Errorf("%d seconds old: %v", age, err)
			}
		}
		reject := func(what string, header http.Header, body []byte, secret string) {
			t.Helper()
			if err := Verify(header, body, secret, signedAt); err == nil || errors.Is(err, ErrStale) {
				t.Errorf("%s verifies: %v", what, err)
			}
		}
		reject("another secret", header, body, unrelated)
		reject("a longer body", header, append(bytes.Clone(body), 'x'), newSecret)
		if len(body) > 0 {
			i := min(max(at, 0), len(body)-1)
			changed := bytes.Clone(body)
			changed[i] ^= 1
			reject("a changed body", header, changed, newSecret)
			// Digits must not move between the time and the body.
			reject("a body without its first byte", header, body[1:], newSecret)
		}
		service := header.Get(HeaderSignature)
		later := strings.Replace(service, "t="+strconv.FormatInt(unix, 10), "t="+strconv.FormatInt(unix+1, 10), 1)
		reject("another time", http.Header{HeaderSignature: {later}}, body, newSecret)
		first := strings.Index(service, "v1=") + len("v1=")
		i := first + min(max(at, 0), 2*32-1)
		if digit, err := hex.DecodeString("0" + service[i:i+1]); err == nil {
			changed := service[:i] + strconv.FormatInt(int64(digit[0]^1), 16) + service[i+1:first+64]
			reject("a changed signature", http.Header{HeaderSignature: {changed}}, body, newSecret)
		}
		if id != "" { // the library treats an empty header as missing
			checkStandardHeaders(t, header, body, secrets, unrelated)
		}
	})
}

// checkStandardHeaders verifies the standard headers with the reference library.
func checkStandardHeaders(t *testing.T, header http.Header, body []byte, secrets []string, unrelated string) {
	t.Helper()
	for _, secret := range append(secrets, unrelated) {
		receiver, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.VerifyIgnoringTimestamp(body, header); (err == nil) != (secret != unrelated) {
			t.Errorf("the reference library says %v with the secret %s", err, secret)
		}
		if err := receiver.VerifyIgnoringTimestamp(append(bytes.Clone(body), 'x'), header); err == nil {
			t.Error("the reference library accepts a changed body")
		}
		other := header.Clone()
		other.Set(HeaderStandardID, header.Get(HeaderStandardID)+"x")
		if err := receiver.VerifyIgnoringTimestamp(body, other); err == nil {
			t.Error("the reference library accepts a changed id")
		}
	}
}

// FuzzParseSecret checks that NewSigner accepts what ParseSecret accepts, and that an
// error does not contain the secret.
func FuzzParseSecret(f *testing.F) {
	f.Add(newSecret)
	f.Add("whsec_")
	f.Add("whsec_MTIz\nNDU2")
	f.Add("whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTJ=")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseSecret(text)
		if err != nil {
			if encoded := strings.TrimPrefix(text, secretPrefix); !errors.Is(err, ErrSecret) || len(encoded) > 8 && strings.Contains(err.Error(), encoded) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if signer, err := NewSigner(text); err != nil || len(key) < minSecretBytes || len(signer.keys) != 1 {
			t.Errorf("%q: %d bytes, %v", text, len(key), err)
		}
	})
}
