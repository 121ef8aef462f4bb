package store

import (
	"crypto/sha256"
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// encoding are the options of all responses and events. Numbers of answers keep their digits, and
// omitempty means what it means in encoding/json, which decodes and documents the same structs.
var encoding = json.JoinOptions(
	json.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsonv1.OmitEmptyWithLegacySemantics(true),
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, n stdjson.Number) error { return e.WriteValue(jsontext.Value(n)) })),
)

// Encode writes a record as JSON, as every response and event shows it.
func Encode(record any) ([]byte, error) {
	body, err := json.Marshal(record, encoding)
	if err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return body, nil
}

// ETag returns the strong entity tag of an encoded record: equal tags mean equal bytes.
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

// An entity tag and a list of them, as RFC 9110 has them in sections 8.8.3 and 5.6.1: a tag may
// contain commas, a list empty members.
const (
	entityTag  = `(?:W/)?"[^"\x00-\x20\x7f]*"`
	entityTags = `^[ \t,]*` + entityTag + `(?:[ \t]*,[ \t]*(?:` + entityTag + `)?)*[ \t]*$`
)

var (
	aTag   = regexp.MustCompile(entityTag)
	ifTags = regexp.MustCompile(entityTags)
)

// ValidIfMatch reports whether an If-Match header is "*" or a list of entity tags.
func ValidIfMatch(header string) bool { return header == "*" || ifTags.MatchString(header) }

// ETagMatches reports whether an If-Match header names the tag. The comparison is
// strong (RFC 9110, section 13.1.1): a weak tag never matches.
func ETagMatches(header, tag string) bool {
	return header == "*" || slices.Contains(aTag.FindAllString(header, -1), tag)
}
