package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// cursorToken is the content of a cursor or sync token. Both are opaque to clients
// and signed, so that clients cannot make their own.
type cursorToken struct {
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

// The kinds of cursorToken: a cursor of a list by id, one of a list of changes, and
// a sync token.
const (
	kindCursor        = "c"
	kindChangesCursor = "cs"
	kindSync          = "s"
)

// cursorMACSize is the number of bytes of the HMAC-SHA256 that follow the JSON of a token.
const cursorMACSize = 16

// encode writes the token for clients, signed with the vault's first key.
func (c cursorToken) encode(keys *Vault) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode a cursor: %v", err)) // impossible: strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(append(b, cursorMAC(keys.cursorKeys[0], b)...))
}

// parseCursorToken decodes what encode returned. It reports false for anything else.
func parseCursorToken(text string, keys *Vault) (cursorToken, bool) {
	var c cursorToken
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < cursorMACSize || strings.ContainsAny(text, "\r\n") {
		return cursorToken{}, false
	}
	b, sentMAC := b[:len(b)-cursorMACSize], b[len(b)-cursorMACSize:]
	signed := false
	for _, key := range keys.cursorKeys {
		if hmac.Equal(cursorMAC(key, b), sentMAC) {
			signed = true
		}
	}
	if !signed || json.Unmarshal(b, &c) != nil {
		return cursorToken{}, false
	}
	return c, true
}

// SessionToken returns the token of a session of the random text, with a MAC: forged tokens
// are told without a look-up.
func (v *Vault) SessionToken(random string) string {
	return random + "." + base64.RawURLEncoding.EncodeToString(cursorMAC(v.cursorKeys[0], []byte(sessionPrefix+random)))
}

// sessionPrefix keeps the MACs of sessions apart from the MACs of cursors, which begin with a brace.
const sessionPrefix = "session "

// isSessionToken reports whether SessionToken made the token, with any of the keys.
func (v *Vault) isSessionToken(token string) bool {
	random, sent, _ := strings.Cut(token, ".")
	mac, err := base64.RawURLEncoding.Strict().DecodeString(sent)
	return err == nil && slices.ContainsFunc(v.cursorKeys, func(key []byte) bool {
		return hmac.Equal(cursorMAC(key, []byte(sessionPrefix+random)), mac)
	})
}

func cursorMAC(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)[:cursorMACSize]
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
