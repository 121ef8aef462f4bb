package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// cursorToken is what a cursor or a sync token says. Both are opaque to clients, and
// signed: only what this service made is followed.
type cursorToken struct {
	// Kind is "c" for a cursor, "s" for a sync token, "cs" for a cursor of changes.
	Kind    string `json:"k"`
	Xid     uint64 `json:"x,omitempty"`
	ID      string `json:"i,omitempty"`
	Filter  string `json:"f"`
	Epoch   int    `json:"e,omitempty"`
	Cluster int64  `json:"c,omitempty"`
	Issued  int64  `json:"t,omitempty"`
}

const (
	kindCursor        = "c"
	kindChangesCursor = "cs"
	kindSyncToken     = "s"
)

// cursorMACSize is how many bytes of the HMAC-SHA256 stand behind a mark.
const cursorMACSize = 16

// printable writes the mark for clients, signed with the vault's first key.
func (m cursorToken) encode(keys *Vault) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode a cursor: %v", err)) // plain texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(append(b, cursorMAC(keys.marks[0], b)...))
}

// parseCursorToken decodes what text made, false for anything else.
func parseCursorToken(text string, keys *Vault) (cursorToken, bool) {
	var m cursorToken
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < cursorMACSize || strings.ContainsAny(text, "\r\n") {
		return cursorToken{}, false
	}
	b, sentMAC := b[:len(b)-cursorMACSize], b[len(b)-cursorMACSize:]
	signed := false
	for _, key := range keys.marks {
		if hmac.Equal(cursorMAC(key, b), sentMAC) {
			signed = true
		}
	}
	if !signed || json.Unmarshal(b, &m) != nil {
		return cursorToken{}, false
	}
	return m, true
}

func cursorMAC(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)[:cursorMACSize]
}

// digestOf ties a cursor to its list, the one who reads it and the filters.
func digestOf(table, actorID string, filter any) string {
	b, err := json.Marshal(filter)
	if err != nil {
		panic(fmt.Sprintf("encode a filter: %v", err)) // plain texts and times
	}
	sum := sha256.Sum256(append([]byte(table+" "+actorID+" "), b...))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
