package service

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"millwright/models"
)

// Key rings without a common key: one must reject what the other signed.
const (
	fuzzRing  = "new:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=,old:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	otherRing = "new:MjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM="
	oldRing   = "old:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
)

func newTestVault(t testing.TB, ring string) *Vault {
	t.Helper()
	vault, err := NewVault(ring)
	if err != nil {
		t.Fatal(err)
	}
	return vault
}

// A cursor token is read as it was written, with the key in use and with one that is
// still known. No other text is accepted.
func FuzzCursorToken(f *testing.F) {
	f.Add("c", uint64(0), "wo_01jd8q4v6cf5e8hbbfwj0zq3tk", "x6c5e8hbbfwj", 0, "", int64(0), 0)
	f.Add("s", uint64(1)<<63, "", "", 7, "01927a5e-8f3c-4c7a-9d52-3f1c8d9b7a60", int64(1767323045), 3)
	f.Add("cs", uint64(42), "wo_\x00", "\xff", -1, "\x00", int64(-1), 40)
	keys, old, other := newTestVault(f, fuzzRing), newTestVault(f, oldRing), newTestVault(f, otherRing)
	f.Fuzz(func(t *testing.T, kind string, xid uint64, id, filter string, epoch int, nonce string, issued int64, at int) {
		made := cursorToken{Kind: kind, Xid: xid, ID: id, Filter: filter, Epoch: epoch, Watermark: nonce, Issued: issued}
		text := made.encode(keys)
		read, ok := parseCursorToken(text, keys)
		if !ok || utf8.ValidString(kind+id+filter+nonce) && read != made {
			t.Fatalf("%+v is read as %+v, %v", made, read, ok)
		}
		if _, ok := parseCursorToken(made.encode(old), keys); !ok {
			t.Error("a token of the previous key is rejected")
		}
		if _, ok := parseCursorToken(text, other); ok {
			t.Error("a token of other keys is accepted")
		}
		i := min(max(at, 0), len(text)-1)
		for _, forged := range []string{
			text[:i], text[i:] + "A", text[:i] + "A" + text[i:], swapped(text, i), text + "=", text[:i] + "\n" + text[i:],
		} {
			if _, ok := parseCursorToken(forged, keys); ok && forged != text {
				t.Errorf("%q is accepted; %q was written", forged, text)
			}
		}
	})
}

// swapped returns the text with another letter at i.
func swapped(text string, i int) string {
	other := byte('A')
	if text[i] == other {
		other = 'B'
	}
	return text[:i] + string(other) + text[i+1:]
}

// A token that a client makes up never begins a page; it is rejected with the codes of
// docs/contract.md, Lists.
func FuzzForgedCursorToken(f *testing.F) {
	keys := newTestVault(f, fuzzRing)
	unsigned, err := json.Marshal(cursorToken{Kind: kindCursor, ID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tk", Filter: "f"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(base64.RawURLEncoding.EncodeToString(unsigned), "")
	f.Add(base64.RawURLEncoding.EncodeToString(append(unsigned, make([]byte, cursorMACSize)...)), "2026-03-02T12:15:30Z")
	f.Add(cursorToken{Kind: kindSync, Filter: "g"}.encode(keys), cursorToken{Kind: kindCursor, Filter: "g"}.encode(keys))
	f.Add("", strings.Repeat("A", 500))
	f.Add("\x00", "0000-00-00T00:00:00Z")
	s := &Service{Options: Options{Vault: keys}}
	f.Fuzz(func(t *testing.T, cursor, since string) {
		start, err := s.pageStart(ListRequest{Cursor: cursor, ChangedSince: since}, "f")
		switch _, timeErr := time.Parse(time.RFC3339, since); {
		case err != nil:
			if models.CodeOf(err) != models.CodeInvalidRequest {
				t.Errorf("rejected with %v", err)
			}
		case cursor != "", since != "" && timeErr != nil:
			t.Errorf("cursor %q and changed_since %q begin a page at %+v", cursor, since, start.at)
		}
	})
}

// Only tokens that this service signed for its own issuer and that have not expired
// are valid.
func FuzzToken(f *testing.F) {
	keys, err := NewTokenKeys(fuzzRing)
	if err != nil {
		f.Fatal(err)
	}
	other, err := NewTokenKeys(otherRing)
	if err != nil {
		f.Fatal(err)
	}
	const issuer, subject, tokenID = "https://api.example.com", "idn_01jd8q4v6cf5e8hbbfwj0zq3tk", "tok_01jd8q4v6cf5e8hbbfwj0zq3tk"
	now := time.Date(2026, time.March, 2, 12, 15, 30, 0, time.UTC)
	good := func(k *TokenKeys, issuer, subject, id string, expires int64) string {
		text, err := k.sign(claims{RegisteredClaims: jwt.RegisteredClaims{
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
		if c, err := keys.parse(text, issuer, func() time.Time { return now }); err == nil {
			// Then it is one of ours: signing its claims again makes the same text.
			again, signErr := keys.sign(c)
			if signErr != nil || again != text {
				t.Errorf("%q is accepted as a token", text)
			}
		} else if models.CodeOf(err) != models.CodeInvalidToken {
			t.Errorf("rejected with %v", err)
		}
		made := good(keys, forIssuer, forSubject, id, expires)
		_, err := keys.parse(made, issuer, func() time.Time { return now })
		valid := forIssuer == issuer && models.IsID(forSubject, models.PrefixIdentity) && models.IsID(id, models.PrefixToken) &&
			expires > now.Unix() && expires < 1<<40
		if valid != (err == nil) && expires < 1<<40 {
			t.Errorf("a token of %q for %q, id %q, expiring %d: %v", forIssuer, forSubject, id, expires, err)
		}
		if _, err := keys.parse(good(other, issuer, subject, tokenID, inAnHour), issuer, func() time.Time { return now }); err == nil {
			t.Error("a token of another key is accepted")
		}
	})
}

// Any file is read or rejected with sentences, and stays within its limits: its
// aliases stand for no more values than a file may have.
func FuzzImportFile(f *testing.F) {
	for _, seed := range []string{
		"organization: {key: acme, name: Acme}\npeople:\n  - {key: ann, name: Ann, email: ann@example.com}\n",
		"organization: &o {key: acme}\nteams: [{key: t, members: [*o]}]\n",
		"inventory:\n  - &a {key: a, kind: location, children: [*a]}\n",
		"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "<<: *x", "? ? ?", "- - -", "{{{{", "\x00", "!!binary x", "\"\\u0000\"",
		"forms: [{key: f, questions: [{key: q, type: text, options: [{key: o}]}]}]",
		"organization: {key: a}\n---\norganization: {key: b}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := readImportFile(text)
		if err != nil {
			rejected, ok := errors.AsType[*ImportError](err)
			if !ok || len(rejected.Problems) == 0 || slices.Contains(rejected.Problems, "") {
				t.Fatalf("rejected without a sentence: %v", err)
			}
			return
		}
		if n := len(file.kinds); n > len(text) && n > maxImportValues {
			t.Errorf("%d bytes stand for %d keys", len(text), n)
		}
	})
}

// An If-Match matches exactly if it lists the tag or *.
func FuzzETag(f *testing.F) {
	f.Add("*", []byte("{}"))
	f.Add(`"a", W/"b" ,,"c"`, []byte(""))
	f.Add(ETag([]byte("{}")), []byte("{}"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		tag := ETag(body)
		matches := ETagMatches(header, tag)
		named := slices.ContainsFunc(strings.Split(header, ","), func(c string) bool {
			return strings.TrimSpace(c) == tag || strings.TrimSpace(c) == "*"
		})
		if matches != named {
			t.Errorf("If-Match: %q against %s is %v", header, tag, matches)
		}
		if !ETagMatches(header+", "+tag, tag) || ETagMatches("W/"+tag, tag) {
			t.Errorf("the tag %s is not distinguished from its weak form", tag)
		}
	})
}

// A sealed secret opens only for its owner, and not if a bit of it was changed.
func FuzzVault(f *testing.F) {
	f.Add([]byte("whsec_MTIzNDU2"), "whk_1", []byte("new\x00"), 5)
	f.Add([]byte{}, "", []byte{}, 0)
	f.Add([]byte("x"), "whk_1", []byte("old\x00short"), 40)
	keys, random := newTestVault(f, fuzzRing), strings.Repeat("r", 64)
	f.Fuzz(func(t *testing.T, secret []byte, owner string, junk []byte, at int) {
		if opened, err := keys.Open(junk, owner); err == nil {
			t.Errorf("%q opens as %q", junk, opened)
		}
		sealed, err := keys.Seal(secret, owner, strings.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := keys.Open(sealed, owner); err != nil || string(opened) != string(secret) {
			t.Errorf("%q opens as %q, %v", secret, opened, err)
		}
		if _, err := keys.Open(sealed, owner+"x"); err == nil {
			t.Error("a secret opens for another owner")
		}
		changed := slices.Clone(sealed)
		changed[min(max(at, 0), len(changed)-1)] ^= 1
		if _, err := keys.Open(changed, owner); err == nil {
			t.Error("a changed secret opens")
		}
	})
}
