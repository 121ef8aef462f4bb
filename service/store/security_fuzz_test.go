package store_test

import (
	"slices"
	"strings"
	"testing"

	"millwright/service/store"
)

// Key rings without a common key: one must reject what the other signed.
const (
	fuzzRing  = "new:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=,old:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	otherRing = "new:MjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM="
)

func newTestVault(t testing.TB, ring string) *store.Vault {
	t.Helper()
	vault, err := store.NewVault(ring)
	if err != nil {
		t.Fatal(err)
	}
	return vault
}

// A valid If-Match matches exactly if it is * or lists the tag: commas between quotes are part
// of a tag.
func FuzzETag(f *testing.F) {
	f.Add("*", []byte("{}"))
	f.Add(`"a", W/"b" ,,"c"`, []byte(""))
	f.Add(`"a,*,b"`, []byte(""))
	f.Add(store.ETag([]byte("{}")), []byte("{}"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		tag := store.ETag(body)
		matches := store.ETagMatches(header, tag)
		quoted := false
		listed := strings.FieldsFunc(header, func(r rune) bool {
			if r == '"' {
				quoted = !quoted
			}
			return !quoted && strings.ContainsRune(", \t", r)
		})
		if named := header == "*" || slices.Contains(listed, tag); store.ValidIfMatch(header) && matches != named {
			t.Errorf("If-Match: %q against %s is %v", header, tag, matches)
		}
		if store.ValidIfMatch(header) && (quoted || header != "*" && len(listed) == 0) || !store.ValidIfMatch(tag+" ,, W/"+tag) {
			t.Errorf("If-Match: %q is valid", header)
		}
		if !store.ETagMatches(header+", "+tag, tag) || store.ETagMatches("W/"+tag, tag) {
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
