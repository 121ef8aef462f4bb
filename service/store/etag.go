package store

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
)

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
