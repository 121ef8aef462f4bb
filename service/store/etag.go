package store

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"millwright/models"
)

// ETag returns the strong entity tag of an encoded record: equal tags mean equal bytes.
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

// ETagMatches reports whether an If-Match header names the tag. The comparison is
// strong (RFC 9110, section 13.1.1): a weak tag never matches.
func ETagMatches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		if candidate = strings.TrimSpace(candidate); candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}

// matches rejects a call whose If-Match does not name the record as it is now.
// Errors: precondition_failed.
func (c RequestKey) matches(record any) error {
	if c.IfMatch == "" {
		return nil
	}
	body, err := Encode(record)
	if err != nil {
		return err
	}
	if !ETagMatches(c.IfMatch, ETag(body)) {
		return models.Errorf(models.CodePreconditionFailed, "The record has changed since the ETag of If-Match was read.")
	}
	return nil
}
