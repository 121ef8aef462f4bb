package lists_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/store"
)

// A cursor token is read as it was written, with the key in use and with one that is
// still known. No other text is accepted.
func FuzzCursorToken(f *testing.F) {
	f.Add("c", uint64(0), "wo_01jd8q4v6cf5e8hbbfwj0zq3tk", "x6c5e8hbbfwj", 0, "", int64(0), 0)
	f.Add("s", uint64(1)<<63, "", "", 7, "01927a5e-8f3c-4c7a-9d52-3f1c8d9b7a60", int64(1767323045), 3)
	f.Add("cs", uint64(42), "wo_\x00", "\xff", -1, "\x00", int64(-1), 40)
	keys, old, other := cursorVault(f, cursorRing), cursorVault(f, oldCursorRing), cursorVault(f, otherCursorRing)
	f.Fuzz(func(t *testing.T, kind string, xid uint64, id, filter string, epoch int, nonce string, issued int64, at int) {
		made := lists.CursorToken{Kind: kind, Xid: xid, ID: id, Filter: filter, Epoch: epoch, Watermark: nonce, Issued: issued}
		text := made.Encode(keys)
		read, ok := lists.ParseCursorToken(text, keys)
		if !ok || utf8.ValidString(kind+id+filter+nonce) && read != made {
			t.Fatalf("%+v is read as %+v, %v", made, read, ok)
		}
		if _, ok := lists.ParseCursorToken(made.Encode(old), keys); !ok {
			t.Error("a token of the previous key is rejected")
		}
		if _, ok := lists.ParseCursorToken(text, other); ok {
			t.Error("a token of other keys is accepted")
		}
		i := min(max(at, 0), len(text)-1)
		for _, forged := range []string{
			text[:i], text[i:] + "A", text[:i] + "A" + text[i:], swapped(text, i), text + "=", text[:i] + "\n" + text[i:],
		} {
			if _, ok := lists.ParseCursorToken(forged, keys); ok && forged != text {
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
// api.md 4.13.
func FuzzForgedCursorToken(f *testing.F) {
	keys := cursorVault(f, cursorRing)
	unsigned, err := json.Marshal(lists.CursorToken{Kind: lists.KindCursor, ID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tk", Filter: "f"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(base64.RawURLEncoding.EncodeToString(unsigned), "")
	f.Add(base64.RawURLEncoding.EncodeToString(append(unsigned, make([]byte, store.CursorMACSize)...)), "2026-03-02T12:15:30Z")
	f.Add(lists.CursorToken{Kind: lists.KindSync, Filter: "g"}.Encode(keys), lists.CursorToken{Kind: lists.KindCursor, Filter: "g"}.Encode(keys))
	f.Add("", strings.Repeat("A", 500))
	f.Add("\x00", "0000-00-00T00:00:00Z")
	s := &store.Store{Options: store.Options{Vault: keys}}
	f.Fuzz(func(t *testing.T, cursor, since string) {
		start, err := lists.NewPageStart(s, lists.ListRequest{Cursor: cursor, ChangedSince: since}, "f")
		switch _, timeErr := time.Parse(time.RFC3339, since); {
		case err != nil:
			if models.CodeOf(err) != models.CodeInvalidRequest {
				t.Errorf("rejected with %v", err)
			}
		case cursor != "", since != "" && timeErr != nil:
			t.Errorf("cursor %q and changed_since %q begin a page at %+v", cursor, since, start.At)
		}
	})
}

// Key rings without a common key: one must reject what the other signed.
const (
	cursorRing      = "new:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=,old:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	otherCursorRing = "new:MjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM="
	oldCursorRing   = "old:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
)

func cursorVault(f *testing.F, ring string) *store.Vault {
	f.Helper()
	vault, err := store.NewVault(ring)
	if err != nil {
		f.Fatal(err)
	}
	return vault
}
