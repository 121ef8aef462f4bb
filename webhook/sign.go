package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The headers of a delivery, in the canonical form of http.Header.
const (
	HeaderEventID   = "Service-Event-Id"
	HeaderEventType = "Service-Event-Type"
	HeaderSignature = "Service-Signature"

	// The Standard Webhooks headers, signed with the same secret.
	HeaderStandardID        = "Webhook-Id"
	HeaderStandardTimestamp = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature"
)

// Signer returns the headers of deliveries to one webhook address. It decodes the
// address's secrets and sets up their keys once. Safe for concurrent use.
type Signer struct {
	keys   []signingKey
	states sync.Pool
}

// signingKey is a secret's two keys.
type signingKey struct {
	text []byte // the displayed secret, for Service-Signature
	raw  []byte // its decoded bytes, for Webhook-Signature
}

// NewSigner returns a signer for an address's valid secrets as displayed, the newest
// first: one, two during a rotation, three during two. It returns ErrSecret without secrets or if one of
// them is invalid.
func NewSigner(secrets ...string) (*Signer, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%w: no secret was given", ErrSecret)
	}
	s := &Signer{keys: make([]signingKey, len(secrets))}
	for i, secret := range secrets {
		raw, err := ParseSecret(secret)
		if err != nil {
			return nil, err
		}
		s.keys[i] = signingKey{text: []byte(secret), raw: raw}
	}
	s.states.New = func() any { return newSigningState(s.keys) }
	return s, nil
}

// Header returns the headers that identify and sign a delivery: event id and type and,
// for both families, the time in Unix seconds with a signature per secret (api.md
// 6.6). body must be sent byte for byte. The caller may add to the header.
func (s *Signer) Header(id, eventType string, at time.Time, body []byte) http.Header {
	state := s.states.Get().(*signingState)
	text, unixEnd, serviceEnd := state.sign(id, at, body)
	s.states.Put(state)

	// To save allocations, all values share one string and their slices one array.
	values := [...]string{id, eventType, text[:serviceEnd], id, text[len("t="):unixEnd], text[serviceEnd:]}
	names := [...]string{HeaderEventID, HeaderEventType, HeaderSignature, HeaderStandardID, HeaderStandardTimestamp, HeaderStandardSignature}
	backing := values[:]
	header := make(http.Header, len(names))
	for i, name := range names {
		header[name] = backing[i : i+1 : i+1]
	}
	return header
}

// signingState holds keyed hashes and buffers for one goroutine at a time. Keying is
// more than half of the cost of an HMAC of a short body.
type signingState struct {
	service, standard []hash.Hash
	text, prefix, sum []byte
}

func newSigningState(keys []signingKey) *signingState {
	state := &signingState{}
	for _, key := range keys {
		state.service = append(state.service, hmac.New(sha256.New, key.text))
		state.standard = append(state.standard, hmac.New(sha256.New, key.raw))
	}
	return state
}

// sign returns the concatenated values of Service-Signature and Webhook-Signature, the
// end of the time within the first value, and the end of the first value.
func (st *signingState) sign(id string, at time.Time, body []byte) (text string, unixEnd, serviceEnd int) {
	// The signed strings are "<t>.<body>" and "<id>.<t>.<body>", so the first prefix ends the
	// second.
	prefix := append(append(st.prefix[:0], id...), '.')
	servicePrefix := len(prefix)
	prefix = append(strconv.AppendInt(prefix, at.Unix(), 10), '.')
	unix := prefix[servicePrefix : len(prefix)-1]

	b := append(append(st.text[:0], "t="...), unix...)
	unixEnd = len(b)
	for _, h := range st.service {
		b = append(b, ",v1="...)
		b = hex.AppendEncode(b, st.mac(h, prefix[servicePrefix:], body))
	}
	serviceEnd = len(b)
	for i, h := range st.standard {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, "v1,"...)
		b = base64.StdEncoding.AppendEncode(b, st.mac(h, prefix, body))
	}
	st.text, st.prefix = b, prefix
	return string(b), unixEnd, serviceEnd
}

func (st *signingState) mac(h hash.Hash, prefix, body []byte) []byte {
	h.Reset()
	h.Write(prefix)
	h.Write(body)
	st.sum = h.Sum(st.sum[:0])
	return st.sum
}
