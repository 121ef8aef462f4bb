package api

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"

	"millwright/models"
	"millwright/service"
)

// recordAnswer is a record as the service encoded it, with the headers that go with it.
type recordAnswer struct {
	Status      int
	ContentType string `header:"Content-Type" hidden:"true"`
	ETag        string `header:"ETag" doc:"Changes with every change of the answer."`
	Body        []byte
}

// writeAnswer is what a write answers (huma finds Status and Body at the top only).
type writeAnswer struct {
	Status      int
	ContentType string `header:"Content-Type" hidden:"true"`
	ETag        string `header:"ETag" doc:"Changes with every change of the record."`
	Location    string `header:"Location" doc:"Path of the created record."`
	Replayed    string `header:"Idempotency-Replayed" doc:"true when the answer is a replay."`
	Body        []byte
}

// Conditional is the input of reads that can be answered with 304.
type Conditional struct {
	IfNoneMatch string `header:"If-None-Match" doc:"An ETag; when it still holds, the answer is 304 without a body."`
}

// answer answers a read with its ETag, or with 304 when the caller has it already.
func (in Conditional) answer(body []byte, err error) (*recordAnswer, error) {
	if err != nil {
		return nil, err
	}
	out := &recordAnswer{Status: http.StatusOK, ContentType: "application/json", ETag: service.ETag(body), Body: body}
	// If-None-Match compares weakly (RFC 9110 section 13.1.2).
	if service.ETagMatches(strings.ReplaceAll(in.IfNoneMatch, "W/", ""), out.ETag) {
		out.Status, out.ContentType, out.Body = http.StatusNotModified, "", nil
	}
	return out, nil
}

// Idempotent is the input of every write.
type Idempotent struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"Makes a retry of this write safe: kept for 24 hours, its answer is replayed."`
}

// call returns what makes a retry the same call. Errors: invalid_request for a malformed key.
func (in Idempotent) call(c *call) (service.Call, error) {
	key := in.IdempotencyKey
	if unquoted := strings.TrimSuffix(strings.TrimPrefix(key, `"`), `"`); len(unquoted) == len(key)-2 {
		key = unquoted
	}
	if in.IdempotencyKey != "" && !saneKey(key) {
		return service.Call{}, models.Errorf(models.CodeInvalidRequest,
			"An Idempotency-Key has 1 to 255 printable ASCII characters, bare or quoted.")
	}
	sum := sha256.Sum256(c.body)
	return service.Call{Key: key, Method: c.method, Path: c.path, Fingerprint: sum[:]}, nil
}

// Changing is the input of writes to a record that exists.
type Changing struct {
	Idempotent
	IfMatch string `header:"If-Match" doc:"ETags of the record as it was read; when it has moved on, the answer is 412 and nothing changes."`
}

func (in Changing) call(c *call) (service.Call, error) {
	call, err := in.Idempotent.call(c)
	call.IfMatch = in.IfMatch
	return call, err
}

// given takes the result of a write on a record that exists.
func given(answer service.WriteResult, err error) (*writeAnswer, error) {
	if err != nil {
		return nil, err
	}
	return written(answer, ""), nil
}

func saneKey(key string) bool {
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= models.MaxIdempotencyKey
}

// written answers a write.
func written(answer service.WriteResult, path string) *writeAnswer {
	out := &writeAnswer{Status: answer.Status, ContentType: "application/json", ETag: service.ETag(answer.Body), Body: answer.Body}
	if answer.Status == http.StatusCreated {
		out.Location = path + "/" + answer.RecordID
	}
	if answer.Replayed {
		out.Replayed = "true"
	}
	return out
}

func newBody(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }
