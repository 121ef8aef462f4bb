package people

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

const (
	// OpenIDLifetime limits the time of a sign-in at the OpenID provider.
	OpenIDLifetime = 10 * time.Minute
	// openIDsOfNetwork are the sign-ins that a client network may begin in a shortWindow and
	// not finish.
	openIDsOfNetwork = 200
	// openIDUse is what an openIDAttempt is sealed for.
	openIDUse = "openid attempt"
)

// openIDAttempt is what the browser keeps of a sign-in at the provider, sealed, so that no one
// can make one up.
type openIDAttempt struct {
	At    int64           `json:"a"`
	State json.RawMessage `json:"s"`
}

func (s *People) openIDCount(client Client) attemptCount {
	return newAttemptCount(s.Store, openIDsOfNetwork, shortWindow, "openid network", client.Network)
}

// BeginOpenID seals the state of a sign-in at the OpenID provider for the browser. The state
// has to contain something random. Errors: *TooManyAttemptsError, unavailable.
func (s *People) BeginOpenID(ctx context.Context, state any, client Client) (string, error) {
	if err := s.countRequest(ctx, s.openIDCount(client)); err != nil {
		return "", err
	}
	text, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	return s.sealText(openIDAttempt{s.Now().Unix(), text}, openIDUse)
}

// RedeemOpenID returns the state that BeginOpenID sealed, once: a second request to the
// provider for it would be an attacker's. Errors: ErrSignInFailed, unavailable.
func (s *People) RedeemOpenID(ctx context.Context, sealed string, into any) error {
	var attempt openIDAttempt
	if !s.openText(sealed, openIDUse, &attempt) {
		return ErrSignInFailed
	}
	began := time.Unix(attempt.At, 0).UTC()
	if s.Now().Sub(began) > OpenIDLifetime || json.Unmarshal(attempt.State, into) != nil {
		return ErrSignInFailed
	}
	once := newAttemptCount(s.Store, 1, OpenIDLifetime, "openid redeemed", string(attempt.State))
	once.window = began // the same for every try
	err := s.countRequest(ctx, once)
	if _, again := errors.AsType[*TooManyAttemptsError](err); again {
		return ErrSignInFailed
	}
	return err
}

// FinishOpenID takes back what BeginOpenID counted: a sign-in that succeeds is not counted.
// Errors: unavailable.
func (s *People) FinishOpenID(ctx context.Context, client Client) error {
	return s.forgive(ctx, s.openIDCount(client))
}
