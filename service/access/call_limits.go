package access

import (
	"crypto/sha256"
	"fmt"

	"millwright/models"
)

// overLimit is rate_limited.
func overLimit() error {
	return models.Errorf(models.CodeRateLimited, "Too many calls in this minute. Try again when the window ends.")
}

// CountAddress counts a call without a valid token by its client address. Errors:
// rate_limited (with the Rate).
func (s *Access) CountAddress(address string) (Rate, error) {
	return s.count("address "+address, s.AddressCallsPerMinute)
}

// UncountedRate is the rate of a call that is counted nowhere: the limit of calls without a
// token, unused.
func (s *Access) UncountedRate() Rate { return s.addresses.rate("", s.AddressCallsPerMinute, s.Now()) }

// maxTokenFailures bounds the wrong secrets that one address sends for one client id
// in a minute. A right secret is always accepted, so a client cannot be locked out.
const maxTokenFailures = 30

// CountTokenFailure counts a token request from an address that did not authenticate
// its client, and counts it for the client id that it named, if any. Beyond the
// address's limit it counts no client ids, so guesses are counted for few subjects.
// Errors: rate_limited (with the Rate).
func (s *Access) CountTokenFailure(clientID, address string) (Rate, error) {
	rate, err := s.count("token "+address, s.AddressCallsPerMinute)
	if err != nil || clientID == "" {
		return rate, err
	}
	return s.count(tokenSubject(clientID, address), maxTokenFailures)
}

// TokenFailures returns how many token requests for a client id from an address have
// failed in this window.
func (s *Access) TokenFailures(clientID, address string) Rate {
	return s.addresses.rate(tokenSubject(clientID, address), maxTokenFailures, s.Now())
}

// tokenSubject is what failed token requests of an address for a client id are counted for.
func tokenSubject(clientID, address string) string {
	return fmt.Sprintf("token %s %x", address, sha256.Sum256([]byte(clientID)))
}

// count counts a call of the subject. Errors: rate_limited.
func (s *Access) count(subject string, limit int) (Rate, error) {
	rate := s.addresses.add(subject, limit, s.Now())
	if rate.Exceeded() {
		return rate, overLimit()
	}
	return rate, nil
}
