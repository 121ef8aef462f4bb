package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"millwright/models"
	"millwright/service/store"
)

// response is a successful response. huma finds Status and Body only at the top
// level, and sends only the headers that are set.
type response struct {
	Status      int
	ContentType string `header:"Content-Type" hidden:"true"`
	ETag        string `header:"ETag"`
	Location    string `header:"Location"`
	Replayed    string `header:"Idempotency-Replayed"`
	Body        []byte
}

// ReadInput is part of the input of every read.
type ReadInput struct {
	IfNoneMatch string `header:"If-None-Match" doc:"An ETag. While it is current, the response is 304 without a body."`
}

// readInput is implemented by embedding ReadInput.
type readInput interface{ ifNoneMatch() string }

func (in ReadInput) ifNoneMatch() string { return in.IfNoneMatch }

// readResponse is the response of a read: the body with its ETag, or 304 if the
// caller has it already.
func readResponse(body []byte, ifNoneMatch string) *response {
	etag := store.ETag(body)
	// If-None-Match compares weakly (RFC 9110 section 13.1.2).
	if store.ETagMatches(strings.ReplaceAll(ifNoneMatch, "W/", ""), etag) {
		return &response{Status: http.StatusNotModified, ETag: etag}
	}
	return &response{Status: http.StatusOK, ContentType: "application/json", ETag: etag, Body: body}
}

// WriteInput is part of the input of every write. Its field is for the document: the
// key is read from the call, which knows whether the header was sent, and how often.
type WriteInput struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"Makes retries of this write safe: 1 to 255 printable ASCII characters. The key is kept for 24 hours; a retry with the same JSON value gets the original response, without people if its token lacks people:read, and 404 if its token may no longer read the record."`
}

// writeInput is implemented by embedding WriteInput or ChangeInput.
type writeInput interface {
	// serviceKey returns what makes a retry the same call, and the precondition of the
	// write. Errors: invalid_request for a malformed header.
	serviceKey(*call) (store.Key, error)
}

func (WriteInput) serviceKey(c *call) (store.Key, error) {
	key, digest, err := c.idempotencyKey()
	return store.ForCall(key, c.method, c.path, digest, ""), err
}

// idempotencyKey returns the call's key without quotes and the fingerprint of its body, "" and nil
// if it has no key. Errors: invalid_request for a malformed key.
func (c *call) idempotencyKey() (key string, digest []byte, err error) {
	switch len(c.idempotencyKeys) {
	case 0:
		return "", nil, nil
	case 1:
		key = c.idempotencyKeys[0]
	default:
		return "", nil, models.Errorf(models.CodeInvalidRequest, "The request has more than one Idempotency-Key.")
	}
	if unquoted := strings.TrimSuffix(strings.TrimPrefix(key, `"`), `"`); len(unquoted) == len(key)-2 {
		key = unquoted
	}
	if !validKey(key) {
		return "", nil, models.Errorf(models.CodeInvalidRequest,
			"An Idempotency-Key has 1 to 255 printable ASCII characters, with or without quotes.")
	}
	digest, err = fingerprint(c.body)
	return key, digest, err
}

// fingerprint returns a digest of the body's JSON value: bodies that differ in white
// space, in the order of members, or in how strings and numbers are written have the
// same (api.md 4.17). RFC 8785 would round numbers to 64 bits.
func fingerprint(body []byte) ([]byte, error) {
	canonical := body
	if len(body) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var value any
		err := decoder.Decode(&value)
		if err == nil {
			canonical, err = json.Marshal(canonicalNumbers(value)) // sorts members
		}
		if err != nil {
			return nil, fmt.Errorf("digest a body: %w", err)
		}
	}
	sum := sha256.Sum256(canonical)
	return sum[:], nil
}

// canonicalNumbers writes equal numbers in decoded JSON in the same way.
func canonicalNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, ok := models.ParseNumber(v); ok {
			return json.Number(n.Reduced().String())
		}
	case map[string]any:
		for name, field := range v {
			v[name] = canonicalNumbers(field)
		}
	case []any:
		for i, item := range v {
			v[i] = canonicalNumbers(item)
		}
	}
	return value
}

// ChangeInput is part of the input of every write to an existing record. Its field is for the
// document, as WriteInput's is.
type ChangeInput struct {
	WriteInput
	IfMatch string `header:"If-Match" doc:"ETags of the record as you read it, in their quotes, or *. An empty or malformed one is rejected. If the record has changed since, the response is 412 and the write is not made."`
}

// serviceKey also returns invalid_request for a malformed If-Match: an empty one, as of a
// client that has lost its ETag, must not mean "whatever it is now".
func (ChangeInput) serviceKey(c *call) (store.Key, error) {
	key, digest, err := c.idempotencyKey()
	ifMatch := ""
	if len(c.ifMatch) > 0 && err == nil {
		ifMatch = strings.TrimSpace(strings.Join(c.ifMatch, ","))
		if !store.ValidIfMatch(ifMatch) {
			err = models.Errorf(models.CodeInvalidRequest, "If-Match must be * or ETags in their quotes, as they were received.")
		}
	}
	return store.ForCall(key, c.method, c.path, digest, ifMatch), err
}

// validKey checks an Idempotency-Key (api.md 4.17).
func validKey(key string) bool {
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= models.MaxIdempotencyKey
}

// writeResponse is the response of a write to the path. A created record's
// Location is below it.
func writeResponse(result store.WriteResult, path string) *response {
	out := &response{Status: result.Status, ContentType: "application/json", ETag: store.ETag(result.Body), Body: result.Body}
	if result.Status == http.StatusCreated {
		out.Location = path + "/" + result.RecordID
	}
	if result.Replayed {
		out.Replayed = "true"
	}
	return out
}
