package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// SyncTokenLifetime is how long a sync token may be followed (contract, errors).
const SyncTokenLifetime = 30 * 24 * time.Hour

// mark is what a cursor or a sync token says. Both are opaque to clients, and
// signed: only what this service made is followed.
type mark struct {
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
	markCursor        = "c"
	markChangesCursor = "cs"
	markSync          = "s"
)

// markMACSize is how many bytes of the HMAC-SHA256 stand behind a mark.
const markMACSize = 16

// text writes the mark for clients, signed with the vault's first key.
func (m mark) text(keys *Vault) string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode a cursor: %v", err)) // plain texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(append(b, markMAC(keys.marks[0], b)...))
}

// readMark decodes what text made, false for anything else.
func readMark(text string, keys *Vault) (mark, bool) {
	var m mark
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < markMACSize || strings.ContainsAny(text, "\r\n") {
		return mark{}, false
	}
	b, sentMAC := b[:len(b)-markMACSize], b[len(b)-markMACSize:]
	signed := false
	for _, key := range keys.marks {
		if hmac.Equal(markMAC(key, b), sentMAC) {
			signed = true
		}
	}
	if !signed || json.Unmarshal(b, &m) != nil {
		return mark{}, false
	}
	return m, true
}

func markMAC(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)[:markMACSize]
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
