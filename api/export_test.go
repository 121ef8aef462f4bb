package api

import (
	"context"
	"testing"
	"time"
)

// Deprecate deprecates an operation in the APIs that the test makes from now on.
func Deprecate(t *testing.T, operation string, since, sunset time.Time, link string) {
	t.Helper()
	deprecations[operation] = deprecation{since: since, sunset: sunset, link: link}
	t.Cleanup(func() { delete(deprecations, operation) })
}

// EnterParsing takes the slot in which the API parses the organization's large bodies.
func EnterParsing(ctx context.Context, a *API, organizationID string) (leave func(), err error) {
	return a.parsing.Enter(ctx, organizationID)
}
