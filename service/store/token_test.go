package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"millwright/models"
	"millwright/service/store"
)

// Token claims that are signed but that no token of this service has, and other
// spellings of a signature, are invalid tokens, never errors of the database.
func TestOnlyOwnTokensAreAccepted(t *testing.T) {
	keys, err := store.NewTokenKeys(fuzzRing)
	if err != nil {
		t.Fatal(err)
	}
	const issuer = "https://api.example.com"
	now := time.Date(2026, time.March, 2, 12, 15, 30, 0, time.UTC)
	signed := func(change func(*store.Claims)) string {
		c := store.Claims{RegisteredClaims: jwt.RegisteredClaims{
			ID: "tok_01jd8q4v6cf5e8hbbfwj0zq3tk", Issuer: issuer, Audience: jwt.ClaimStrings{issuer}, Subject: "idn_01jd8q4v6cf5e8hbbfwj0zq3tk",
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour)),
		}}
		change(&c)
		text, err := keys.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := signed(func(*store.Claims) {})
	if _, err := keys.Parse(good, issuer, func() time.Time { return now }); err != nil {
		t.Fatalf("a token as it is issued is rejected: %v", err)
	}
	tokens := map[string]string{
		"NUL in jti":     signed(func(c *store.Claims) { c.ID = "tok_1\x00" }),
		"no jti":         signed(func(c *store.Claims) { c.ID = "" }),
		"another id":     signed(func(c *store.Claims) { c.ID = "wo_01jd8q4v6cf5e8hbbfwj0zq3tk" }),
		"no issue time":  signed(func(c *store.Claims) { c.IssuedAt = nil }),
		"another person": signed(func(c *store.Claims) { c.Subject = "idn_\x00" }),
	}
	// 32 bytes are 43 letters of base64: the last two bits of the last one are unused.
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(letters, good[len(good)-1])
	for bits := 1; bits < 4; bits++ {
		tokens["unused bits "+string(rune('0'+bits))] = good[:len(good)-1] + string(letters[last^bits])
	}
	for name, text := range tokens {
		if _, err := keys.Parse(text, issuer, func() time.Time { return now }); models.CodeOf(err) != models.CodeInvalidToken {
			t.Errorf("%s: %v, want invalid_token", name, err)
		}
	}
}

// Only tokens that this service signed for its own issuer and that have not expired
// are valid.
func FuzzToken(f *testing.F) {
	keys, err := store.NewTokenKeys(fuzzRing)
	if err != nil {
		f.Fatal(err)
	}
	other, err := store.NewTokenKeys(otherRing)
	if err != nil {
		f.Fatal(err)
	}
	const issuer, subject, tokenID = "https://api.example.com", "idn_01jd8q4v6cf5e8hbbfwj0zq3tk", "tok_01jd8q4v6cf5e8hbbfwj0zq3tk"
	now := time.Date(2026, time.March, 2, 12, 15, 30, 0, time.UTC)
	good := func(k *store.TokenKeys, issuer, subject, id string, expires int64) string {
		text, err := k.Sign(store.Claims{RegisteredClaims: jwt.RegisteredClaims{
			ID: id, Issuer: issuer, Audience: jwt.ClaimStrings{issuer}, Subject: subject, IssuedAt: jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(time.Unix(expires, 0)),
		}})
		if err != nil {
			return ""
		}
		return text
	}
	inAnHour := now.Add(time.Hour).Unix()
	sample := good(keys, issuer, subject, tokenID, inAnHour)
	head, rest, _ := strings.Cut(sample, ".")
	body, _, _ := strings.Cut(rest, ".")
	f.Add(sample, issuer, subject, tokenID, inAnHour)
	f.Add(good(other, issuer, subject, tokenID, inAnHour), "", "", "", int64(0))
	f.Add("eyJhbGciOiJub25lIiwia2lkIjoibmV3In0."+body+".", issuer, subject, "x", now.Unix())
	f.Add(head+"."+body+".", issuer, "idn_", "tok", int64(1)<<60)
	f.Add("..", "https://elsewhere.example.com", subject, tokenID, inAnHour)
	f.Fuzz(func(t *testing.T, text, forIssuer, forSubject, id string, expires int64) {
		if c, err := keys.Parse(text, issuer, func() time.Time { return now }); err == nil {
			// Then it is one of ours: signing its claims again makes the same text.
			again, signErr := keys.Sign(c)
			if signErr != nil || again != text {
				t.Errorf("%q is accepted as a token", text)
			}
		} else if models.CodeOf(err) != models.CodeInvalidToken {
			t.Errorf("rejected with %v", err)
		}
		made := good(keys, forIssuer, forSubject, id, expires)
		_, err := keys.Parse(made, issuer, func() time.Time { return now })
		valid := forIssuer == issuer && models.IsID(forSubject, models.PrefixIdentity) && models.IsID(id, models.PrefixToken) &&
			expires > now.Unix() && expires < 1<<40
		if valid != (err == nil) && expires < 1<<40 {
			t.Errorf("a token of %q for %q, id %q, expiring %d: %v", forIssuer, forSubject, id, expires, err)
		}
		if _, err := keys.Parse(good(other, issuer, subject, tokenID, inAnHour), issuer, func() time.Time { return now }); err == nil {
			t.Error("a token of another key is accepted")
		}
	})
}
