package console

import (
	"context"

	"millwright/service"
)

// Service is what the console uses of the service. Reads and writes take an Actor and check
// its permissions; the others are about signing in and serve no records. A test keeps this so.
type Service interface {
	SignInService
}

// SignInService is about signing in.
type SignInService interface {
	SignIn(context.Context, service.SignInAttempt) (service.SignedIn, error)
	ChooseOrganization(ctx context.Context, choice, personID string, client service.Client) (string, error)
	Session(ctx context.Context, token string) (service.Viewer, error)
	SignOut(ctx context.Context, token string) error
}
