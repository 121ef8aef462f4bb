package lists

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"millwright/service/store"
)

// CursorToken is the content of a cursor or sync token. Both are opaque to clients
// and signed, so that clients cannot make their own.
type CursorToken struct {
	Kind string `json:"k"`
	// Xid and ID are the position of the last row of the page.
	Xid uint64 `json:"x,omitempty"`
	ID  string `json:"i,omitempty"`
	// Filter is the digestOf the list.
	Filter string `json:"f"`
	// Epoch is the actor's access epoch.
	Epoch int `json:"e,omitempty"`
	// Watermark is the nonce of a watermark at or above the position, "" in a list by id.
	Watermark string `json:"b,omitempty"`
	// Issued is the Unix time in seconds.
	Issued int64 `json:"t,omitempty"`
}

// The kinds of CursorToken: a cursor of a list by id, one of a list of changes, and
// a sync token.
const (
	KindCursor        = "c"
	kindChangesCursor = "cs"
	KindSync          = "s"
)

// Encode writes the token for clients, signed with the vault's first key.
func (c CursorToken) Encode(keys *store.Vault) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode a cursor: %v", err)) // impossible: strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(append(b, store.CursorMAC(keys.CursorKeys[0], b)...))
}

// ParseCursorToken decodes what Encode returned. It reports false for anything else.
func ParseCursorToken(text string, keys *store.Vault) (CursorToken, bool) {
	var c CursorToken
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < store.CursorMACSize || strings.ContainsAny(text, "\r\n") {
		return CursorToken{}, false
	}
	b, sentMAC := b[:len(b)-store.CursorMACSize], b[len(b)-store.CursorMACSize:]
	signed := slices.ContainsFunc(keys.CursorKeys, func(key []byte) bool { return hmac.Equal(store.CursorMAC(key, b), sentMAC) })
	if !signed || json.Unmarshal(b, &c) != nil {
		return CursorToken{}, false
	}
	return c, true
}

// digestOf identifies a list by its table, its reader and its filters. A cursor
// belongs to one such list.
func digestOf(table, actorID string, filter any) string {
	b, err := json.Marshal(filter)
	if err != nil {
		panic(fmt.Sprintf("encode a filter: %v", err)) // impossible: strings and times
	}
	sum := sha256.Sum256(append([]byte(table+" "+actorID+" "), b...))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
