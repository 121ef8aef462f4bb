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

// Names of the headers of a delivery, in the canonical form of http.Header.
const (
	HeaderEventID   = "Service-Event-Id"
	HeaderEventType = "Service-Event-Type"
	HeaderSignature = "Service-Signature"

	// The Standard Webhooks headers, under the same secret.
	HeaderStandardID        = "Webhook-Id"
	HeaderStandardTimestamp = "Webhook-Timestamp"
	HeaderStandardSignature = "Webhook-Signature"
)

// Signer makes the headers of deliveries to one webhook address. It decodes the
// address's secrets and prepares their keys once. Safe for concurrent use.
type Signer struct {
	keys   []signingKey
	states sync.Pool
}

// signingKey is one secret in the two forms it signs with.
type signingKey struct {
	text []byte // the displayed secret, for Service-Signature
	raw  []byte // its decoded bytes, for Webhook-Signature
}

// NewSigner returns a signer for an address's valid secrets as displayed, the
// newest first: one, or more while a rotation lasts. It returns ErrSecret when
// there is none or one of them cannot be used.
func NewSigner(secrets ...string) (*Signer, error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrSecret)
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

// Header returns the headers that identify and sign one delivery: event id,
// event type, and in both header families the time in Unix seconds with one
// signature per secret (spec section 6). The body is what will be sent, byte
// for byte. The header is the caller's to extend.
func (s *Signer) Header(id, eventType string, at time.Time, body []byte) http.Header {
	state := s.states.Get().(*signingState)
	text, unixEnd, serviceEnd := state.sign(id, at, body)
	s.states.Put(state)

	// All values are cut from one string, and their slices from one array.
	values := [...]string{id, eventType, text[:serviceEnd], id, text[len("t="):unixEnd], text[serviceEnd:]}
	names := [...]string{HeaderEventID, HeaderEventType, HeaderSignature, HeaderStandardID, HeaderStandardTimestamp, HeaderStandardSignature}
	backing := values[:]
	header := make(http.Header, len(names))
	for i, name := range names {
		header[name] = backing[i : i+1 : i+1]
	}
	return header
}

// signingState is what one goroutine at a time needs to sign: keyed hashes,
// whose keying is more than half of an HMAC's cost for a short body, and
// buffers.
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

// sign returns the values of Service-Signature and Webhook-Signature, one right
// after the other, with the end of the time in the former and its own end.
func (st *signingState) sign(id string, at time.Time, body []byte) (text string, unixEnd, serviceEnd int) {
	// Signed are "<t>.<body>" and "<id>.<t>.<body>": the former's prefix is the
	// end of the latter's.
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
