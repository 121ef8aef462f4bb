package api

import (
	"testing"
	"time"
)

// Deprecate deprecates an operation in the APIs that the test makes from now on.
func Deprecate(t *testing.T, operation string, since, sunset time.Time, link string) {
	t.Helper()
	deprecations[operation] = deprecation{since: since, sunset: sunset, link: link}
	t.Cleanup(func() { delete(deprecations, operation) })
}
